package io.nrt4j.proxy;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import java.util.concurrent.atomic.AtomicLongArray;

/**
 * The barrier between ranks of one process: counters in memory. Rank 0 leads.
 *
 * <p>Threads: {@code arrived} has one element a rank, written by that rank's worker and read by the leader's; {@code released} is
 * written by the leader's worker and read by the others'; both count rounds and never go back. {@code gone} is written once by whoever
 * leaves first and read by all; a rank looks at the counters again after it has seen it, since the one that left may have counted
 * just before.
 */
public final class ProcessBarrier {
    private final AtomicLongArray arrived;
    private volatile long released;
    private volatile NrtException gone;

    /**
     * Makes a barrier.
     *
     * @param ranks number of ranks, at least 1.
     */
    public ProcessBarrier(final int ranks) {
        arrived = new AtomicLongArray(ranks);
    }

    /**
     * A rank's side.
     *
     * @param rank from 0.
     * @return to be used by one rank.
     */
    public HostBarrier of(final int rank) {
        if (rank < 0 || rank >= arrived.length()) {
            throw new NrtException(NrtStatus.INVALID, "no rank " + rank + " among " + arrived.length());
        }
        return new Side(rank);
    }

    private boolean allArrived(final long round) {
        for (int rank = 0; rank < arrived.length(); rank++) {
            if (arrived.get(rank) <= round) {
                return false;
            }
        }
        return true;
    }

    private synchronized void leave(final int rank) {
        if (gone == null) {
            gone = new NrtException(NrtStatus.CLOSED, "rank " + rank + " left the barrier after " + arrived.get(rank)
                + " arrivals; " + released + " rounds were complete");
        }
    }

    private final class Side implements HostBarrier {
        private final int rank;

        Side(final int rank) {
            this.rank = rank;
        }

        @Override
        public boolean isLeader() {
            return rank == 0;
        }

        @Override
        public boolean arrive(final long round) {
            arrived.set(rank, round + 1);
            return !isLeader() || allArrived(round) || someoneLeft() && decided(allArrived(round));
        }

        @Override
        public boolean depart(final long round) {
            if (isLeader()) {
                released = round + 1;
            }
            return released > round || someoneLeft() && decided(released > round);
        }

        private boolean someoneLeft() {
            return gone != null;
        }

        /** Somebody left: the round is complete all the same, or never will be. */
        private boolean decided(final boolean complete) {
            if (!complete) {
                throw new NrtException(gone.status(), gone.getMessage(), gone);
            }
            return true;
        }

        @Override
        public void close() {
            leave(rank);
        }
    }
}
