package io.nrt4j.sendrecv;

/**
 * Handle of a request: made by the caller, filled by {@link NrtAsyncSendRecv#sendTensor} or
 * {@link NrtAsyncSendRecv#recvTensor}, and asked with {@link NrtAsyncSendRecv#testRequest}. Reusable once its request is done.
 *
 * <p>It remembers slot and generation, so that a stale handle never sees the slot's next owner.
 *
 * <p>Threads: one at a time; handing it to another thread is the caller's to order. Ports the
 * {@code nrt_async_sendrecv_request_t *} of the C API together with the out-parameters of its test.
 */
public final class SendRecvRequest {
    private RequestSlot slot;
    private long generation;
    private boolean done;
    private long sizeBytes;

    /** An empty handle. */
    public SendRecvRequest() {
    }

    /**
     * Whether the last test found the transfer complete.
     *
     * @return false from the post on, true after the test that found it complete.
     */
    public boolean done() {
        return done;
    }

    /**
     * Bytes that the transfer moved.
     *
     * @return meaningful once {@link #done()}; for a receive, what the sender sent.
     */
    public long size() {
        return sizeBytes;
    }

    RequestSlot slot() {
        return slot;
    }

    long generation() {
        return generation;
    }

    void fill(final RequestSlot filled, final long filledGeneration) {
        if (slot != filled) { // the pool hands out the last slot first: most often it is the same again
            slot = filled;
        }
        generation = filledGeneration;
        done = false;
        sizeBytes = 0;
    }

    void outcome(final boolean isDone, final long bytes) {
        done = isDone;
        sizeBytes = bytes;
    }

    /** Whether it names a request whose end the application has not seen. */
    boolean isActive() {
        final RequestSlot named = slot;
        return named != null && !named.comm().isDead() && RequestSlot.generationOf(named.stateWord()) == generation;
    }

    @Override
    public String toString() {
        return slot == null ? "empty request handle"
            : isActive() ? "handle of " + slot : done ? "handle of a done request, " + sizeBytes + " bytes" : "stale request handle";
    }
}
