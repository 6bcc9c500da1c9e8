package io.nrt4j.net.opfifo;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.net.NetTransport;

/**
 * A rank's communicators of the transport: one to and one from each peer for each stream, where there are any. The streams of one
 * pair of ranks need links of their own, because a link matches sends and receives by their order.
 *
 * <p>The links belong to whoever made them. Set up by one thread before the links are handed to {@link OpFifoProxy#openComm}.
 */
public final class PeerLinks {
    private final int ranks;
    private final int streams;
    private final long[] sendComms;
    private final long[] recvComms;

    /**
     * Makes room for links without any.
     *
     * @param ranks   ranks of the communicator.
     * @param streams 1 to 4.
     */
    public PeerLinks(final int ranks, final int streams) {
        this.ranks = ranks;
        this.streams = streams;
        sendComms = new long[ranks * streams];
        recvComms = new long[ranks * streams];
    }

    /**
     * Adds the way to a peer.
     *
     * @param stream   from 0.
     * @param peer     from 0.
     * @param sendComm send communicator.
     * @return this.
     */
    public PeerLinks sendTo(final int stream, final int peer, final long sendComm) {
        sendComms[index(stream, peer)] = sendComm;
        return this;
    }

    /**
     * Adds the way from a peer.
     *
     * @param stream   from 0.
     * @param peer     from 0.
     * @param recvComm receive communicator.
     * @return this.
     */
    public PeerLinks receiveFrom(final int stream, final int peer, final long recvComm) {
        recvComms[index(stream, peer)] = recvComm;
        return this;
    }

    /** The way to a peer; INVALID if there is none. */
    long sendComm(final int stream, final int peer) {
        return found(sendComms[index(stream, peer)], "to", stream, peer);
    }

    /** The way from a peer; INVALID if there is none. */
    long recvComm(final int stream, final int peer) {
        return found(recvComms[index(stream, peer)], "from", stream, peer);
    }

    int streams() {
        return streams;
    }

    private static long found(final long comm, final String way, final int stream, final int peer) {
        if (comm == NetTransport.NOT_YET) {
            throw new NrtException(NrtStatus.INVALID, "there is no link " + way + " rank " + peer + " on stream " + stream);
        }
        return comm;
    }

    private int index(final int stream, final int peer) {
        if (stream < 0 || stream >= streams || peer < 0 || peer >= ranks) {
            throw new NrtException(NrtStatus.INVALID, "rank " + peer + " on stream " + stream + " is not among " + ranks
                + " ranks and " + streams + " streams");
        }
        return stream * ranks + peer;
    }
}
