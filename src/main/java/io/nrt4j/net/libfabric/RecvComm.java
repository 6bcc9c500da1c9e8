package io.nrt4j.net.libfabric;

import java.util.ArrayList;
import java.util.List;

/** A receive communicator. Threads: under the engine's lock. */
final class RecvComm extends Comm {
    /** Number of the next receive to announce. */
    int announced;
    /** Posted length of each receive, which its announcement may outlive the request to tell. */
    final long[] posted = new long[RING];
    /** Kind under which each receive is announced. */
    final byte[] kind = new byte[RING];
    /** Whether the message of each receive has arrived whole; its sender may not know when this communicator closes. */
    final boolean[] received = new boolean[RING];
    boolean announcing;
    RecvComm nextAnnouncing;
    /** The sender waits for this receive to be posted with the provider. */
    boolean demanded;
    int demandedNumber;
    RecvComm nextDemanding;
    /** The demanded receive is posted: to be announced again. */
    boolean goDue;
    /** Short messages that came ahead of their receives. */
    final LibraryBuffer[] early = new LibraryBuffer[RING];
    /** Offset of the data in the early buffer. */
    final int[] earlyAt = new int[RING];
    final int[] earlyLength = new int[RING];
    /** At close: announced receives that were taken back (number, length); the sender may have sent to them. */
    final List<long[]> takenBack = new ArrayList<>(0);

    RecvComm(final int id, final long handle, final Peer peer) {
        super(id, handle, peer);
    }

    @Override
    String direction() {
        return "receive";
    }
}
