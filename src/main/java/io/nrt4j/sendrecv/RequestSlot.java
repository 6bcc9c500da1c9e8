package io.nrt4j.sendrecv;

import io.nrt4j.NrtTensor;
import io.nrt4j.net.NetTransport;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;

/**
 * One of a communicator's 128 requests, recycled for ever.
 *
 * <p>The state word joins status and generation, so that one load tells both: {@code generation << 2 | status}. The
 * generation grows each time the slot goes back to the pool, and a handle remembers the one that it was filled with: a stale
 * handle can neither see nor finish the slot's next owner.
 *
 * <p>Threads: a FREE slot that was taken from the pool belongs to the poster, which writes all fields and then the state word
 * with release; a STASHED one to the service thread, which writes {@code netRequest} and then the state word; an OFI_POSTED
 * one to whoever holds the LNC's data-path lock; an ERROR one to whoever wins the compare-and-set to FREE. Readers load the
 * state word with acquire and use the fields only while it still carries their generation.
 *
 * <p>Ports {@code nrt_async_sendrecv_request}.
 */
final class RequestSlot {
    private static final VarHandle STATE;
    private static final int STATUS_BITS = 2;
    private static final int STATUS_MASK = (1 << STATUS_BITS) - 1;

    static {
        try {
            STATE = MethodHandles.lookup().findVarHandle(RequestSlot.class, "state", long.class);
        } catch (final ReflectiveOperationException ex) {
            throw new ExceptionInInitializerError(ex);
        }
    }

    /** No time. */
    static final long UNKNOWN_NS = Long.MIN_VALUE;

    private final Communicator comm;
    private final int index;
    private NrtTensor tensor;
    private long offset;
    private long lengthBytes;
    private long netRequest = NetTransport.NOT_YET;
    private long postedNs;
    private Throwable failure;
    @SuppressWarnings("unused") // through STATE
    private volatile long state;

    RequestSlot(final Communicator comm, final int index) {
        this.comm = comm;
        this.index = index;
    }

    Communicator comm() {
        return comm;
    }

    NrtTensor tensor() {
        return tensor;
    }

    long address() {
        return tensor.address() + offset;
    }

    long lengthBytes() {
        return lengthBytes;
    }

    /** NOTYPE while the slot is free, and its communicator's direction otherwise: a field for it would be written for nothing. */
    RequestType type() {
        return statusOf(stateWord()) == RequestStatus.FREE ? RequestType.NOTYPE : RequestType.of(comm.type());
    }

    long netRequest() {
        return netRequest;
    }

    /**
     * Since when its time counts, by the LNC's clock: since it was posted where there is a time limit, or was stashed; else since it was
     * first found not to be done. Before that {@link #UNKNOWN_NS}.
     */
    long postedNs() {
        return postedNs;
    }

    /** Poster, before it is stashed; poller, under the data-path lock, of a posted one. */
    void startClock() {
        if (postedNs == UNKNOWN_NS) {
            postedNs = comm.context().clock().nanoTime();
        }
    }

    /** What made it ERROR; meaningful in that state only. */
    Throwable failure() {
        return failure;
    }

    /** The state word, with acquire. */
    long stateWord() {
        return (long) STATE.getAcquire(this);
    }

    static RequestStatus statusOf(final long stateWord) {
        return RequestStatus.fromCode((int) stateWord & STATUS_MASK);
    }

    static long generationOf(final long stateWord) {
        return stateWord >>> STATUS_BITS;
    }

    /** Poster, on a slot from the pool: what is to be moved. Nothing is published yet. */
    void describe(final NrtTensor what, final long offsetBytes, final long length, final long nowNs) {
        tensor = what;
        offset = offsetBytes;
        lengthBytes = length;
        postedNs = nowNs;
    }

    /** Poster: FREE to STASHED; returns the new state word, since the closer may change it at once. */
    long stash() {
        return publish(RequestStatus.FREE, RequestStatus.STASHED);
    }

    /** Under the data-path lock: FREE (fast path) or STASHED (drain) to OFI_POSTED, with the transport's request. */
    void posted(final long request, final RequestStatus from) {
        netRequest = request;
        publish(from, RequestStatus.OFI_POSTED);
    }

    /** Service thread: STASHED to ERROR. */
    void fail(final Throwable cause) {
        failure = cause;
        publish(RequestStatus.STASHED, RequestStatus.ERROR);
    }

    private long publish(final RequestStatus from, final RequestStatus to) {
        final long seen = (long) STATE.get(this);
        if (statusOf(seen) != from) {
            throw new BrokenMachineException(
                "request " + index + " of " + comm + " cannot go from " + statusOf(seen) + " to " + to);
        }
        final long next = seen & ~STATUS_MASK | to.code();
        STATE.setRelease(this, next);
        return next;
    }

    /**
     * Ends this use of the slot, if it still is what was seen: next generation, FREE. The winner then owns the slot, whose
     * fields it must clear with {@link #clear()} before the slot goes back to the pool.
     */
    boolean finish(final long seen) {
        return STATE.compareAndSet(this, seen, (generationOf(seen) + 1) << STATUS_BITS | RequestStatus.FREE.code());
    }

    /**
     * Empties the record, by the thread that finished it.
     *
     * @return the tensor, whose use the caller gives back.
     */
    NrtTensor clear() {
        final NrtTensor had = tensor;
        tensor = null;
        offset = 0;
        lengthBytes = 0;
        netRequest = NetTransport.NOT_YET;
        failure = null;
        return had;
    }

    @Override
    public String toString() {
        final long seen = stateWord();
        return "request " + index + "." + generationOf(seen) + " " + statusOf(seen) + " of " + comm;
    }
}
