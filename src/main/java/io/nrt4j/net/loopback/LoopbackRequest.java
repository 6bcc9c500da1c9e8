package io.nrt4j.net.loopback;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;

/**
 * One posted send, receive or flush. Made once with its end, used again and again.
 *
 * <p>Threads: all fields but {@code state}, {@code sizeBytes} and {@code failure} are written by the end's own data path when the
 * request is posted or finished, the former under the channel's lock, and read by it, and by the peer under the channel's lock.
 * {@code sizeBytes} and {@code failure} are written by whichever end completes the match, under the channel's lock and before the
 * release store of {@code state}; the end's own test reads them after its acquire load of {@code state}, without the lock.
 */
final class LoopbackRequest {
    static final int FREE = 0;
    static final int PENDING = 1;
    static final int DONE = 2;
    static final int FAILED = 3;

    private static final VarHandle STATE;

    static {
        try {
            STATE = MethodHandles.lookup().findVarHandle(LoopbackRequest.class, "state", int.class);
        } catch (final ReflectiveOperationException ex) {
            throw new ExceptionInInitializerError(ex);
        }
    }

    final LoopbackEnd end;
    final int slot;
    /** Part of the request's handle; 0 while the request is free. */
    long generation;
    Registration registration;
    long offset;
    long lengthBytes;
    /** Of a fault plan: what posted it, the hold that keeps it from completing (0 is none), the tests that it still waits for. */
    FaultPlan.Operation operation;
    long hold;
    int testsToWait;

    private long sizeBytes;
    private String failure;
    @SuppressWarnings("unused") // through STATE
    private int state;

    LoopbackRequest(final LoopbackEnd end, final int slot) {
        this.end = end;
        this.slot = slot;
    }

    /** Makes it a pending request. By its end, under the channel's lock. */
    void arm(final long newGeneration, final Registration over, final long address, final long length) {
        generation = newGeneration;
        registration = over;
        offset = over.offsetOf(address);
        lengthBytes = length;
        hold = 0;
        testsToWait = 0;
        failure = null;
        STATE.setRelease(this, PENDING);
    }

    /** Ends it well. Under the channel's lock. */
    void complete(final long bytes) {
        sizeBytes = bytes;
        STATE.setRelease(this, DONE);
    }

    /** Ends it badly. Under the channel's lock. */
    void fail(final String why) {
        failure = why;
        STATE.setRelease(this, FAILED);
    }

    /** Makes it free. By its end. */
    void free() {
        generation = 0;
        registration = null;
        STATE.setRelease(this, FREE);
    }

    int state() {
        return (int) STATE.getAcquire(this);
    }

    /** Bytes moved; meaningful once DONE. */
    long sizeBytes() {
        return sizeBytes;
    }

    /** Why it failed; meaningful once FAILED. */
    String failure() {
        return failure;
    }
}
