package io.nrt4j.sendrecv;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.NrtTensor;
import io.nrt4j.Placement;

/**
 * The application's half of a post, on its own thread. Ports {@code enc_async_sr_post_op} (0xec0c0).
 *
 * <p>The gate that keeps the order of a communicator: a post goes to the transport at once only if its memory is registered
 * already <em>and</em> the stash is empty. Once anything is stashed, everything after it is stashed too, so that the service
 * thread, which drains in order, cannot be overtaken.
 */
final class Poster {
    private Poster() {
    }

    /** Why a post cannot be, whatever its communicator's state; null when nothing speaks against it. */
    static String objectionToComm(final CommType type, final NrtTensor tensor, final Communicator comm) {
        final LncContext context = comm.context();
        if (comm.type() != type) {
            return type.word() + " on a " + comm;
        }
        if (context.fatal() != null) {
            return type.word() + ": the service thread of lnc " + context.lnc() + " has failed: " + context.fatal();
        }
        if (tensor.placement() == Placement.DEVICE && tensor.deviceIndex() != context.vtpbIndex()) {
            return type.word() + " on " + comm + ": " + tensor + " is not on the LNC's device " + context.vtpbIndex();
        }
        return null;
    }

    /** Why this range cannot be posted with this handle; null when nothing speaks against it. Allocates nothing then. */
    static String objectionToRange(
        final CommType type,
        final NrtTensor tensor,
        final long offset,
        final long length,
        final Communicator comm,
        final SendRecvRequest request) {
        final LncContext context = comm.context();
        if (offset < 0 || length < 0 || offset > tensor.sizeBytes() - length) {
            return type.word() + " on " + comm + ": transfer of " + length + " bytes from offset " + offset
                + " is out of bounds of " + tensor;
        }
        if (length > context.transport().maxMessageBytes()) {
            return type.word() + " on " + comm + ": " + length + " bytes are more than the "
                + context.transport().maxMessageBytes() + " that " + context.transport().name() + " carries in a message";
        }
        if (type == CommType.RECV_COMM && tensor.isReadOnly()) {
            return type.word() + " on " + comm + ": " + tensor + " is read-only";
        }
        if (request.isActive()) {
            return type.word() + " on " + comm + ": the request handle still names " + request.slot();
        }
        return null;
    }

    /**
     * Posts, or stashes for the service thread.
     *
     * @return false when the pool is exhausted; the handle is untouched then.
     * @throws RuntimeException when the tensor is closed or the transport refuses; the handle is untouched then, too.
     */
    static boolean post(
        final NrtTensor tensor,
        final long offset,
        final long length,
        final Communicator comm,
        final SendRecvRequest request) {
        if (!tensor.storage().retain()) {
            throw new NrtException(NrtStatus.FAILURE, tensor + " is closed");
        }
        final RequestSlot slot = comm.freelist().pop();
        if (slot == null) {
            tensor.storage().release();
            return false;
        }
        final long free = slot.stateWord();
        final LncContext context = comm.context();
        // The clock costs as much as half a post: it is read here where there is a time limit, else when the request is not done at once.
        slot.describe(tensor, offset, length, context.requestTimeoutNs() > 0 ? context.clock().nanoTime() : RequestSlot.UNKNOWN_NS);
        if (!postNow(slot, comm, free)) {
            slot.startClock();
            stash(slot, comm);
        }
        request.fill(slot, RequestSlot.generationOf(free));
        return true;
    }

    /** Fast path, behind the gate. */
    private static boolean postNow(final RequestSlot slot, final Communicator comm, final long free) {
        if (!comm.stash().isEmpty()) {
            return false;
        }
        final long registration = comm.mrCache().find(slot.tensor().storage());
        if (registration == MrCache.NONE) {
            return false;
        }
        final LncContext context = comm.context();
        try {
            if (!context.net().post(slot, registration)) {
                return false;
            }
        } catch (final RuntimeException ex) {
            giveBack(slot, comm, free);
            throw ex;
        }
        context.signal().postedToTransport();
        return true;
    }

    /** Slow path. Ports {@code async_sr_queue_sendrecv_task}. */
    private static void stash(final RequestSlot slot, final Communicator comm) {
        final long stashed = slot.stash();
        final TaskSignal signal = comm.context().signal();
        signal.add();
        if (!comm.pushStashed(slot)) {
            signal.retire();
            giveBack(slot, comm, stashed);
            throw new NrtException(NrtStatus.CLOSED, "lnc " + comm.context().lnc() + " is closed");
        }
    }

    /**
     * Returns a slot that nobody else has used; unless the closer, who sees every slot, was faster. So the state that it must still
     * be in is the one that the poster gave it, not the one that it has now.
     */
    private static void giveBack(final RequestSlot slot, final Communicator comm, final long own) {
        if (slot.finish(own)) {
            final NrtTensor tensor = slot.clear();
            comm.freelist().push(slot);
            tensor.storage().release();
        }
    }
}
