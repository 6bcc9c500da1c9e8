package io.nrt4j.sendrecv;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.concurrent.Uninterrupted;
import io.nrt4j.net.NetTransport;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;

/**
 * The data path of one LNC: every post and test goes through its lock, and so does the end of both.
 *
 * <p>Threads: any. What a post or a test does to the transport and to the request's slot is one step under the lock; once
 * {@link #close} returned true, no thread is inside the transport's data path for this LNC and none will be. {@code closed} is
 * written by the closer and read under the lock, as a volatile: a thread that does not come back must not keep it from the others.
 *
 * <p>Ports {@code async_sr_ofi_isend_locked}, {@code _irecv_locked}, {@code _iflush_locked}, {@code _test_locked} and
 * {@code async_sr_ofi_mutex[lnc]}. The control path (connect, accept, close) goes to the transport without this lock.
 */
final class LockedNet {
    private final NetTransport transport;
    private final int lnc;
    private final ReentrantLock lock = new ReentrantLock();
    private volatile boolean closed;

    LockedNet(final NetTransport transport, final int lnc) {
        this.transport = transport;
        this.lnc = lnc;
    }

    NetTransport transport() {
        return transport;
    }

    /** Begins a step on the data path. */
    void lock() {
        lock.lock();
    }

    /** Ends the step. */
    void unlock() {
        lock.unlock();
    }

    /** Under the lock: whether the LNC is closed. */
    boolean isClosed() {
        return closed;
    }

    /**
     * Poster: posts a slot from the pool and marks it, or leaves it as it was.
     *
     * @return false when the transport has no room.
     */
    boolean post(final RequestSlot slot, final long registration) {
        lock.lock();
        try {
            final long request = postOperation(slot, registration);
            if (request == NetTransport.NOT_YET) {
                return false;
            }
            slot.posted(request, RequestStatus.FREE);
            return true;
        } finally {
            lock.unlock();
        }
    }

    /**
     * Service thread: posts the request at the head of a stash, takes it off the ring and marks it, in this order and in one
     * step. Marking it before the ring moved on would let its next use find the ring full; moving on outside the lock would
     * let a later post overtake it.
     *
     * @return false when the transport has no room; the request stays at the head.
     */
    boolean postStashed(final RequestSlot slot, final long registration) {
        lock.lock();
        try {
            final long request = postOperation(slot, registration);
            if (request == NetTransport.NOT_YET) {
                return false;
            }
            slot.comm().stash().advance();
            slot.posted(request, RequestStatus.STASHED);
            return true;
        } finally {
            lock.unlock();
        }
    }

    /** The {@code post_operation} of the slot's communicator: isend on SEND, irecv on RECV. */
    private long postOperation(final RequestSlot slot, final long registration) {
        checkOpen();
        final Communicator comm = slot.comm();
        return comm.type() == CommType.SEND_COMM
            ? transport.isend(comm.netComm(), slot.address(), slot.lengthBytes(), registration)
            : transport.irecv(comm.netComm(), slot.address(), slot.lengthBytes(), registration);
    }

    /** Posts a fence, or answers {@link NetTransport#NOT_YET}. */
    long iflush(final long comm, final long address, final long lengthBytes, final long registration) {
        lock.lock();
        try {
            checkOpen();
            return transport.iflush(comm, address, lengthBytes, registration);
        } finally {
            lock.unlock();
        }
    }

    /** Tests a fence. */
    long test(final long request) {
        lock.lock();
        try {
            checkOpen();
            return transport.test(request);
        } finally {
            lock.unlock();
        }
    }

    private void checkOpen() {
        if (closed) {
            throw new NrtException(NrtStatus.CLOSED, "lnc " + lnc + " is closed");
        }
    }

    /**
     * Ends the data path; waits for the step that is under way.
     *
     * @return false if that step did not come back from the transport in time.
     */
    boolean close(final long timeoutNs) {
        closed = true;
        final boolean quiet = Uninterrupted.await(timeoutNs, leftNs -> lock.tryLock(leftNs, TimeUnit.NANOSECONDS));
        if (quiet) {
            lock.unlock();
        }
        return quiet;
    }

    /** After {@link #close}: waits for the step that is under way, however long it takes. */
    void awaitQuiet() {
        lock.lock();
        lock.unlock();
    }
}
