package io.nrt4j.net.libfabric;

import io.nrt4j.NrtStatus;

/**
 * The sending half of the message protocol. Threads: under the engine's lock. Allocates nothing unless something fails.
 */
final class Sending {
    private final MessageEngine engine;
    private final Outbox outbox;
    private final Outcomes outcomes;
    private final int directLimit;

    Sending(final MessageEngine engine, final FabricEndpoint endpoint, final Outbox outbox, final Outcomes outcomes) {
        this.engine = engine;
        this.outbox = outbox;
        this.outcomes = outcomes;
        // One peer that is stopped must not fill the provider's queue.
        directLimit = (int) Math.max(16, Math.min(256, endpoint.info().txSize() / 4));
    }

    /** Posts a send; answers its slot, or NONE. */
    int post(final SendComm comm, final long address, final long length, final Registration registration) {
        final int slot = comm.takeSlot(address, length, registration);
        if (slot == Comm.NONE) {
            return slot;
        }
        outcomes.begin();
        if (!comm.ready && comm.transmit == comm.number[slot] && !transmit(comm) && comm.peer.alive()) {
            comm.peer.addReady(comm);
            engine.addWork(comm.peer);
        }
        return slot;
    }

    /** Transmits what may be transmitted; false when it must be called again, since there was no room. */
    boolean transmit(final SendComm comm) {
        while (comm.transmit != comm.next && comm.brokenCause == null) {
            final int at = comm.transmit & Comm.RING_MASK;
            final int slot = comm.slotOf[at];
            final byte kind = comm.announcedKind[at];
            final long length = comm.length[slot];
            final boolean goOn;
            if (kind == 0) {
                if (length > comm.peer.eagerLimit || comm.peer.early >= comm.peer.earlyLimit) {
                    return true; // its announcement goes on from here
                }
                goOn = sendEarly(comm, at, slot);
            } else if (length > comm.announcedLength[at]) {
                goOn = refuse(comm, at, slot);
            } else if (kind == Wire.POSTED_DIRECT) {
                goOn = sendDirect(comm, slot);
            } else if (length <= comm.peer.eagerLimit) {
                goOn = outbox.sendData(comm, slot);
                if (goOn) {
                    outcomes.complete(comm, slot, length);
                }
            } else {
                if (!comm.asked) {
                    comm.asked = outbox.sendItem(comm, Wire.DEMAND, comm.transmit, length);
                }
                return comm.asked;
            }
            if (!goOn) {
                return false;
            }
            comm.sentDirect[at] = kind == Wire.POSTED_DIRECT && length <= comm.announcedLength[at];
            comm.announcedKind[at] = 0;
            comm.asked = false;
            comm.transmit++;
        }
        return true;
    }

    private boolean sendEarly(final SendComm comm, final int at, final int slot) {
        if (!outbox.sendData(comm, slot)) {
            return false;
        }
        comm.sentEarly[at] = true;
        comm.peer.early++;
        return true;
    }

    private boolean refuse(final SendComm comm, final int at, final int slot) {
        final long posted = comm.announcedLength[at];
        if (!outbox.sendItem(comm, Wire.TOO_LONG, comm.transmit, comm.length[slot])) {
            return false;
        }
        outcomes.fail(comm, slot, NrtStatus.FAILURE, tooLong(comm.length[slot], posted));
        return true;
    }

    static String tooLong(final long length, final long posted) {
        return "a message of " + length + " bytes is longer than its receive of " + posted + " bytes; nothing was written";
    }

    private boolean sendDirect(final SendComm comm, final int slot) {
        final Peer peer = comm.peer;
        if (peer.directSends >= directLimit) {
            return false;
        }
        final Registration registration = comm.registration[slot];
        final OpTable ops = peer.endpoint.ops();
        final int op = ops.take(OpTable.DIRECT_SEND, comm, slot, registration);
        if (op == OpTable.NONE) {
            return false;
        }
        final long rc = peer.endpoint.path().send(comm.address[slot], comm.length[slot], registration.descriptor, peer.address,
            Wire.directTag(comm.remoteId, comm.number[slot]), ops.context(op));
        if (rc == 0) {
            comm.op[slot] = op;
            peer.directSends++;
            return true;
        }
        ops.release(op);
        if (rc == -FiLayout.EAGAIN || rc == -FiLayout.ENOMEM) {
            return false;
        }
        engine.failPeer(peer, engine.endpoint().describe("fi_tsend of " + comm.length[slot] + " bytes", rc));
        return false;
    }

    /** The receiver announces posted receives. */
    void onAnnounced(final SendComm comm, final int kind, final int first, final int count, final long posted) {
        for (int number = first; number != first + count; number++) {
            final int at = number & Comm.RING_MASK;
            if (number - comm.transmit >= 0) {
                comm.announcedKind[at] = (byte) kind;
                comm.announcedLength[at] = posted;
            } else if (comm.sentEarly[at]) {
                comm.sentEarly[at] = false;
                comm.peer.early--;
                final int slot = comm.slotOf[at];
                if (slot == Comm.NONE) {
                    continue; // given up meanwhile
                }
                if (comm.length[slot] <= posted) {
                    outcomes.complete(comm, slot, comm.length[slot]);
                } else {
                    outcomes.fail(comm, slot, NrtStatus.FAILURE, tooLong(comm.length[slot], posted));
                }
            }
        }
        if (comm.transmit != comm.next && !comm.ready && comm.brokenCause == null) {
            comm.peer.addReady(comm);
            engine.addWork(comm.peer);
        }
    }

    /** The provider is done with a long message; a cause says that it failed. */
    void onDirectDone(final SendComm comm, final int slot, final String cause) {
        comm.peer.directSends--;
        comm.peer.directSent += cause == null ? 1 : 0;
        comm.op[slot] = OpTable.NONE;
        if (comm.state[slot] == Comm.HELD) {
            outcomes.finish(comm, slot);
        } else if (cause == null) {
            outcomes.complete(comm, slot, comm.length[slot]);
        } else {
            outcomes.fail(comm, slot, NrtStatus.FAILURE, cause);
        }
        if (cause != null) { // also of a communicator that closes: its receiver counts on what was transmitted
            engine.control().abortReceive(comm, comm.number[slot], cause);
        }
    }
}
