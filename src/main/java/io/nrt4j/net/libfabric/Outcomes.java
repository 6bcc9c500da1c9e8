package io.nrt4j.net.libfabric;

import io.nrt4j.NrtStatus;
import java.util.concurrent.TimeUnit;

/**
 * How requests end. Threads: under the engine's lock. Allocates nothing.
 */
final class Outcomes {
    /** How long the requests of a broken communicator wait for the provider to give their memory up. */
    static final long HOLD_NS = TimeUnit.MILLISECONDS.toNanos(500);

    private static final long GIVE_UP_PAUSE_NS = HOLD_NS / 10;

    private final DataLinks links;
    /** Requests that are neither done nor failed. */
    private int active;
    /** Those of them that are decided, but whose memory the provider has. */
    private int held;
    private long giveUpAgainNs = System.nanoTime();

    Outcomes(final DataLinks links) {
        this.links = links;
    }

    int active() {
        return active;
    }

    /** The endpoint is closed: nothing is under way any more. */
    void reset() {
        active = 0;
        held = 0;
    }

    void begin() {
        active++;
    }

    void complete(final Comm comm, final int slot, final long moved) {
        comm.moved[slot] = moved;
        if (comm instanceof RecvComm recv) {
            recv.received[comm.number[slot] & Comm.RING_MASK] = true;
        }
        decide(comm, slot);
    }

    void fail(final Comm comm, final int slot, final NrtStatus status, final String cause) {
        comm.cause[slot] = cause;
        comm.causeStatus[slot] = status;
        decide(comm, slot);
    }

    /** The outcome is known; the request is answered once the provider has given the memory up. */
    private void decide(final Comm comm, final int slot) {
        comm.retire(comm.number[slot]);
        if (comm.op[slot] == OpTable.NONE) {
            finish(comm, slot);
            return;
        }
        comm.state[slot] = Comm.HELD;
        held++;
        if (comm instanceof RecvComm) {
            final FabricEndpoint at = comm.peer.endpoint;
            at.path().cancel(at.ops().context(comm.op[slot]));
        }
    }

    /** The request may be answered. */
    void finish(final Comm comm, final int slot) {
        held -= comm.state[slot] == Comm.HELD ? 1 : 0;
        comm.state[slot] = comm.cause[slot] == null ? Comm.DONE : Comm.FAILED;
        active--;
    }

    /**
     * Answers a held request without the provider. The operation, its registration and its context stay until the provider
     * gives them up or the endpoint is closed; so must the memory, unless the peer's data path is severed.
     */
    void orphan(final Comm comm, final int slot) {
        comm.peer.endpoint.ops().owner[comm.op[slot]] = null;
        comm.op[slot] = OpTable.NONE;
        comm.inUse[slot] = !links.severed(comm.peer);
        comm.leftInUse |= comm.inUse[slot];
        if (comm instanceof SendComm) {
            comm.peer.directSends--;
        }
        finish(comm, slot);
    }

    /** The same for all of a communicator that the provider has. */
    void orphanAll(final Comm comm) {
        for (int slot = 0; slot < Comm.SLOTS; slot++) {
            if (comm.op[slot] != OpTable.NONE) {
                orphan(comm, slot);
            }
        }
    }

    /** Answers what has been held for long enough, so that nobody is kept awake by requests that nobody tests. */
    void giveUp(final Comm[] comms) {
        if (held == 0) {
            return;
        }
        final long now = System.nanoTime();
        if (now - giveUpAgainNs < 0) {
            return;
        }
        giveUpAgainNs = now + GIVE_UP_PAUSE_NS;
        for (final Comm comm : comms) {
            for (int slot = 0; comm != null && slot < Comm.SLOTS; slot++) {
                if (isOverdue(comm, slot, now)) {
                    orphan(comm, slot);
                }
            }
        }
    }

    /** Whether a request is to be answered without the provider: only where nobody is left who could move its bytes. */
    boolean isOverdue(final Comm comm, final int slot, final long now) {
        return comm.state[slot] == Comm.HELD && !comm.peer.alive() && now - comm.giveUpAtNs >= 0
            && now - comm.giveUpAtNs >= links.patienceNs(comm.peer);
    }

    /** Fails what is pending from a post on; later posts throw. */
    void failComm(final Comm comm, final int from, final NrtStatus status, final String cause) {
        if (comm.brokenCause == null) {
            comm.brokenCause = cause;
            comm.brokenStatus = status;
        }
        comm.giveUpAtNs = System.nanoTime() + HOLD_NS;
        for (int number = from; number - comm.next < 0; number++) { // the other end may be further than we are
            final int slot = comm.slotOf[number & Comm.RING_MASK];
            if (slot != Comm.NONE) {
                fail(comm, slot, status, cause);
            }
        }
    }
}
