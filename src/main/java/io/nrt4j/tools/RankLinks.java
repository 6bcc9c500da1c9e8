package io.nrt4j.tools;

import io.nrt4j.net.Connecting;
import io.nrt4j.net.NetTransport;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;

/**
 * A rank's links to its neighbours in the ring, and, where the barrier goes over the network too, those between rank 0 and every
 * other rank. Connected by one thread; closed with {@link #close()}.
 */
final class RankLinks implements AutoCloseable {
    private final NetTransport transport;
    private final int rank;
    private final Meeting meeting;
    private final List<Link> links = new ArrayList<>();
    private final Link toNext;
    private final Link fromPrevious;
    private final long[] barrierSends;
    private final long[] barrierReceives;

    /** One direction of one pair of ranks. */
    private final class Link {
        private final String name;
        private final boolean outbound;
        private byte[] handle;
        private long listener;
        private long comm;

        Link(final String kind, final int from, final int to) {
            name = kind + "-" + from + "-" + to;
            outbound = from == rank;
        }

        void begin() {
            if (!outbound) {
                final byte[] own = new byte[NetTransport.HANDLE_BYTES];
                listener = transport.listen(transport.nicOf(rank), own);
                meeting.leave(name, own);
            }
        }

        /** One attempt; true when it is connected. */
        boolean step() {
            if (comm != NetTransport.NOT_YET) {
                return true;
            }
            if (!outbound) {
                comm = transport.accept(listener);
            } else {
                if (handle == null) {
                    handle = meeting.find(name);
                }
                comm = handle == null ? NetTransport.NOT_YET : transport.connect(transport.nicOf(rank), handle);
            }
            return comm != NetTransport.NOT_YET;
        }

        void close() {
            if (listener != NetTransport.NOT_YET) {
                transport.closeListen(listener);
            }
            if (comm == NetTransport.NOT_YET) {
                if (handle != null) {
                    transport.abandonConnect(transport.nicOf(rank), handle);
                }
            } else if (outbound) {
                transport.closeSend(comm);
            } else {
                transport.closeRecv(comm);
            }
        }
    }

    private RankLinks(final NetTransport transport, final int rank, final int ranks, final Meeting meeting, final boolean barrier) {
        this.transport = transport;
        this.rank = rank;
        this.meeting = meeting;
        toNext = add(new Link("ring", rank, (rank + 1) % ranks));
        fromPrevious = add(new Link("ring", (rank + ranks - 1) % ranks, rank));
        barrierSends = new long[ranks];
        barrierReceives = new long[ranks];
        if (barrier) {
            for (int peer = 0; peer < ranks; peer++) {
                if (peer != rank && (rank == 0 || peer == 0)) {
                    add(new Link("barrier", rank, peer));
                    add(new Link("barrier", peer, rank));
                }
            }
        }
    }

    private Link add(final Link link) {
        links.add(link);
        return link;
    }

    /**
     * Connects a rank.
     *
     * @param barrier whether to connect the barrier's links as well.
     * @param limit   longest wait for the other ranks.
     * @param gate    tells when one of them has failed.
     */
    static RankLinks connect(
        final NetTransport transport, final int rank, final int ranks, final Meeting meeting, final boolean barrier,
        final Duration limit, final RankGate gate) {
        final RankLinks made = new RankLinks(transport, rank, ranks, meeting, barrier);
        try {
            made.links.forEach(Link::begin);
            made.connectAll(limit, gate);
            return made;
        } catch (final RuntimeException ex) {
            made.close();
            throw ex;
        }
    }

    private void connectAll(final Duration limit, final RankGate gate) {
        Connecting.await(transport, System.nanoTime() + limit.toNanos(), () -> {
            gate.check();
            return stepAll();
        },
            () -> "rank " + rank + " was not connected (missing: " + links.stream().filter(link -> link.comm == NetTransport.NOT_YET)
                .map(link -> link.name).collect(Collectors.joining(", ")) + "; limit " + limit.toMillis() + " ms)");
        takeBarrierLinks();
    }

    private boolean stepAll() {
        boolean all = true;
        for (final Link link : links) {
            all &= link.step();
        }
        return all;
    }

    /** The barrier owns its links from now on. */
    private void takeBarrierLinks() {
        int at = 2;
        for (int peer = 0; peer < barrierSends.length && links.size() > 2; peer++) {
            if (peer != rank && (rank == 0 || peer == 0)) {
                barrierSends[peer] = links.get(at++).comm;
                barrierReceives[peer] = links.get(at++).comm;
            }
        }
    }

    long toNext() {
        return toNext.comm;
    }

    long fromPrevious() {
        return fromPrevious.comm;
    }

    /** Send communicators of the barrier, by peer. */
    long[] barrierSends() {
        return barrierSends;
    }

    /** Receive communicators of the barrier, by peer. */
    long[] barrierReceives() {
        return barrierReceives;
    }

    /** Closes every link; one that was closed already is passed over by the transport. */
    @Override
    public void close() {
        links.forEach(Link::close);
    }
}
