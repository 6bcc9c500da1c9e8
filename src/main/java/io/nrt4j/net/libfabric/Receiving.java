package io.nrt4j.net.libfabric;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import java.nio.ByteBuffer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The receiving half of the message protocol. Threads: under the engine's lock. Allocates nothing unless something fails.
 */
final class Receiving {
    /** Compared by identity. */
    private static final String NO_ROOM = "the endpoint has as many operations under way as it may have";

    private static final Logger LOG = LoggerFactory.getLogger(Receiving.class);
    /** Receives that are not announced yet, from which on they go without waiting for a message to ride on. */
    private static final int MANY = 16;
    /** Long ones, from which on they go whatever else there is to do: whoever always has something to copy would be idle too late. */
    private static final int MANY_LONG = 4;

    private final MessageEngine engine;
    private final FabricEndpoint endpoint;
    private final LibraryBuffers buffers;
    private final Outcomes outcomes;
    private RecvComm demandHead;
    private RecvComm demandTail;

    Receiving(final MessageEngine engine, final FabricEndpoint endpoint, final LibraryBuffers buffers, final Outcomes outcomes) {
        this.engine = engine;
        this.endpoint = endpoint;
        this.buffers = buffers;
        this.outcomes = outcomes;
    }

    /** Posts a receive; answers its slot, or NONE. */
    int post(final RecvComm comm, final long address, final long length, final Registration registration) {
        final int slot = comm.takeSlot(address, length, registration);
        if (slot == Comm.NONE) {
            return slot;
        }
        outcomes.begin();
        final Peer peer = comm.peer;
        final int number = comm.number[slot];
        final int at = number & Comm.RING_MASK;
        final LibraryBuffer early = comm.early[at];
        comm.posted[at] = length;
        comm.received[at] = false;
        comm.kind[at] = (byte) (length <= peer.eagerLimit ? Wire.POSTED_SHORT : Wire.POSTED_ASK);
        if (early != null) {
            comm.early[at] = null;
            deliver(comm, slot, early.bytes, comm.earlyAt[at], comm.earlyLength[at]);
            buffers.repostLater(early);
        } else if (length > peer.eagerLimit && peer.endpoint.directReceives < speculativeLimit() && postDirect(comm, slot)) {
            comm.kind[at] = Wire.POSTED_DIRECT;
        }
        if (peer.announceHead == null) {
            peer.flushAtNs = System.nanoTime() + engine.flushDelayNs();
        }
        peer.addAnnouncing(comm);
        if (comm.kind[at] != Wire.POSTED_SHORT || comm.next - comm.announced >= MANY) {
            peer.urgent = true;
        }
        if (comm.kind[at] != Wire.POSTED_SHORT && comm.next - comm.announced >= MANY_LONG) {
            peer.overdue = true;
        }
        engine.addWork(peer);
        return slot;
    }

    private int hardLimit() {
        return Math.max(8, (int) Math.min(endpoint.info().rxSize() - engine.postedBuffers() - 16, 1 << 14));
    }

    /** The rest is for receives whose sender is known to have a message. */
    private int speculativeLimit() {
        return hardLimit() / 4 * 3;
    }

    /** Gives a receive to the provider; false when there is no room. */
    private boolean postDirect(final RecvComm comm, final int slot) {
        final Registration registration = comm.registration[slot];
        final OpTable ops = comm.peer.endpoint.ops();
        final int op = ops.take(OpTable.DIRECT_RECV, comm, slot, registration);
        if (op == OpTable.NONE) {
            return false;
        }
        final long rc = comm.peer.endpoint.path().recv(comm.address[slot], comm.length[slot], registration.descriptor,
            Wire.directTag(comm.id, comm.number[slot]), 0, ops.context(op));
        if (rc == 0) {
            comm.op[slot] = op;
            comm.peer.endpoint.directReceives++;
            return true;
        }
        ops.release(op);
        if (rc != -FiLayout.EAGAIN && rc != -FiLayout.ENOMEM) {
            engine.failPeer(comm.peer, endpoint.describe("fi_trecv of " + comm.length[slot] + " bytes", rc));
        }
        return false;
    }

    /** A short message came. Answers true if its buffer is kept until the receive is posted. */
    boolean onData(final RecvComm comm, final int number, final LibraryBuffer buffer, final int offset, final int length) {
        final int at = number & Comm.RING_MASK;
        if (number - comm.next >= 0) {
            if (comm.closed || comm.early[at] != null) {
                return false;
            }
            comm.early[at] = buffer;
            comm.earlyAt[at] = offset;
            comm.earlyLength[at] = length;
            return true;
        }
        final int slot = comm.slotOf[at];
        if (slot != Comm.NONE) {
            deliver(comm, slot, buffer.bytes, offset, length);
        }
        return false;
    }

    private void deliver(final RecvComm comm, final int slot, final ByteBuffer bytes, final int at, final int length) {
        if (length <= comm.length[slot]) {
            comm.registration[slot].copyTo(comm.address[slot], bytes, at, length);
            outcomes.complete(comm, slot, length);
        } else {
            outcomes.fail(comm, slot, NrtStatus.FAILURE, Sending.tooLong(length, comm.length[slot]));
        }
    }

    /** The sender has a message that is too long for its receive. */
    void onTooLong(final RecvComm comm, final int number, final long length) {
        final int slot = comm.slotOf[number & Comm.RING_MASK];
        if (slot != Comm.NONE) {
            outcomes.fail(comm, slot, NrtStatus.FAILURE, Sending.tooLong(length, comm.length[slot]));
        }
    }

    /** The sender has a long message for a receive that the provider does not have. */
    void onDemand(final RecvComm comm, final int number) {
        if (comm.slotOf[number & Comm.RING_MASK] == Comm.NONE || comm.demanded) {
            return;
        }
        comm.demanded = true;
        comm.demandedNumber = number;
        comm.nextDemanding = null;
        if (demandTail == null) {
            demandHead = comm;
        } else {
            demandTail.nextDemanding = comm;
        }
        demandTail = comm;
    }

    /** Gives demanded receives to the provider as far as there is room; answers how many. */
    int serveDemands() {
        int served = 0;
        while (demandHead != null) {
            final RecvComm comm = demandHead;
            final int slot = comm.slotOf[comm.demandedNumber & Comm.RING_MASK];
            if (slot != Comm.NONE && comm.brokenCause == null) {
                if (comm.op[slot] == OpTable.NONE && (comm.peer.endpoint.directReceives >= hardLimit() || !postDirect(comm, slot))) {
                    return served;
                }
                comm.goDue = true;
                comm.peer.urgent = true;
                comm.peer.addAnnouncing(comm);
                engine.addWork(comm.peer);
                served++;
            }
            demandHead = comm.nextDemanding;
            if (demandHead == null) {
                demandTail = null;
            }
            comm.demanded = false;
        }
        return served;
    }

    boolean hasDemands() {
        return demandHead != null;
    }

    /** The provider is done with a receive; a cause says that it failed or was cancelled. */
    void onDirectDone(final RecvComm comm, final int slot, final long length, final String cause) {
        comm.peer.endpoint.directReceives--;
        comm.peer.directReceived += cause == null ? 1 : 0;
        comm.op[slot] = OpTable.NONE;
        if (cause == null && comm.closed) {
            // Not taken back after all: nothing of it is left that a sink would swallow.
            comm.takenBack.removeIf(post -> (int) post[0] == comm.number[slot]);
        }
        if (comm.state[slot] == Comm.HELD) {
            outcomes.finish(comm, slot);
        } else if (cause == null) {
            outcomes.complete(comm, slot, length);
        } else {
            outcomes.fail(comm, slot, NrtStatus.FAILURE, cause);
        }
    }

    /**
     * Posts a receive that swallows a message which was sent to a receive that is gone. Where it cannot be posted, the peer is given
     * up: a message that nobody takes would keep the sender's memory, and its place in the provider, for ever.
     *
     * @return false when the provider has no room now, before the deadline: try again.
     */
    boolean postSink(final RecvComm comm, final int number, final long length, final long deadlineNs) {
        final String failure = tryPostSink(comm, number, length);
        if (failure == NO_ROOM && System.nanoTime() - deadlineNs < 0) {
            return false;
        }
        if (failure != null) {
            final String cause = "a message of up to " + length + " bytes, which came too late for its receive, cannot be taken: "
                + failure;
            LOG.warn("{}: {}", comm, cause);
            engine.failPeer(comm.peer, cause);
        }
        return true;
    }

    /** Answers null, or why it cannot; {@link #NO_ROOM} itself when it may succeed later. */
    private String tryPostSink(final RecvComm comm, final int number, final long length) {
        final FabricEndpoint at = comm.peer.endpoint;
        final OpTable ops = at.ops();
        final long memory = com.sun.jna.Native.malloc(Math.max(1, length));
        if (memory == 0) {
            return "there is no memory for it";
        }
        final Registration registration;
        try {
            final long registered = at.needsRegistration() ? at.register(memory, Math.max(1, length)) : 0;
            registration = new Registration(0, comm.handle, memory, Math.max(1, length), at, registered);
        } catch (final NrtException ex) {
            Memory.free(memory);
            return ex.getMessage();
        }
        final int op = ops.take(OpTable.SINK, null, Comm.NONE, registration);
        registration.close(); // the operation holds it
        if (op == OpTable.NONE) {
            Memory.free(memory);
            return NO_ROOM;
        }
        ops.memory[op] = memory;
        final long rc = at.path().recv(memory, length, registration.descriptor, Wire.directTag(comm.id, number), 0, ops.context(op));
        if (rc != 0) {
            ops.release(op);
            return rc == -FiLayout.EAGAIN || rc == -FiLayout.ENOMEM ? NO_ROOM
                : endpoint.describe("fi_trecv of " + length + " bytes", rc);
        }
        at.directReceives++;
        return null;
    }

    @Override
    public String toString() {
        return demandHead == null ? "no receives demanded" : "receives demanded";
    }
}
