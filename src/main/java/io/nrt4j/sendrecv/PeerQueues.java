package io.nrt4j.sendrecv;

import java.util.Arrays;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;

/**
 * The communicators of one direction that connect: a queue for each peer, in the order of the peers. To go through them allocates
 * nothing, unlike going through a map; to add a peer or to remove one copies the array of queues.
 *
 * <p>Threads: the service thread, or a test in its place, writes and reads; {@code lines} is volatile, its arrays are never written
 * again, and its queues are concurrent, only for those who print them meanwhile. Ports the two
 * {@code std::map<pair<string, int>, queue>} of {@code async_sr_service_thread_fn}.
 */
final class PeerQueues {
    private static final Line[] NONE = {};

    private volatile Line[] lines = NONE;

    /** Those of one peer, in the order in which they were made. */
    private record Line(PeerKey peer, Queue<Communicator> waiting) {
    }

    /** Number of peers. */
    int size() {
        return lines.length;
    }

    /** The communicator whose turn it is, of the n-th peer. */
    Communicator first(final int index) {
        return lines[index].waiting.element();
    }

    /** Behind those of the same peer. */
    void add(final Communicator comm) {
        final Line[] before = lines;
        int at = 0;
        while (at < before.length && before[at].peer.compareTo(comm.peer()) < 0) {
            at++;
        }
        if (at == before.length || !before[at].peer.equals(comm.peer())) {
            final Line[] after = new Line[before.length + 1];
            System.arraycopy(before, 0, after, 0, at);
            after[at] = new Line(comm.peer(), new ConcurrentLinkedQueue<>());
            System.arraycopy(before, at, after, at + 1, before.length - at);
            lines = after;
        }
        lines[at].waiting.add(comm);
    }

    /**
     * Removes the first communicator of the n-th peer.
     *
     * @return whether it was the peer's last, so that the next peer is the n-th now.
     */
    boolean removeFirst(final int index) {
        final Line[] before = lines;
        before[index].waiting.remove();
        if (!before[index].waiting.isEmpty()) {
            return false;
        }
        final Line[] after = Arrays.copyOf(before, before.length - 1);
        System.arraycopy(before, index + 1, after, index, after.length - index);
        lines = after;
        return true;
    }

    @Override
    public String toString() {
        return Arrays.stream(lines).map(Line::waiting).toList().toString();
    }
}
