package io.nrt4j.net.libfabric;

/** A send communicator. Threads: under the engine's lock. */
final class SendComm extends Comm {
    /** Number of the next post to transmit; posts are transmitted in order. */
    int transmit;
    /** The post at {@link #transmit} has asked for its receive to be posted. */
    boolean asked;
    boolean ready;
    SendComm nextReady;
    /** Transmitted ahead of the announcement of their receives. */
    final boolean[] sentEarly = new boolean[RING];
    /** Transmitted as long messages, straight into their receives. */
    final boolean[] sentDirect = new boolean[RING];
    /** Announced receives: kind (0 is none) and posted length. */
    final byte[] announcedKind = new byte[RING];
    final long[] announcedLength = new long[RING];

    SendComm(final int id, final long handle, final Peer peer) {
        super(id, handle, peer);
    }

    @Override
    String direction() {
        return "send";
    }
}
