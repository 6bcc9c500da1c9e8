package io.nrt4j.net.loopback;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.net.NetTransport;
import java.util.HashSet;
import java.util.Set;

/**
 * One end of a channel: a send or a receive communicator, with its requests and registrations.
 *
 * <p>A request's handle names the end's place, the request's slot, and a generation that is never used twice at that place:
 *
 * <pre>
 *   63  62  61 ................. 26  25 .. 18  17 ...... 0
 *  | 0 | 1 | generation             | slot    | end's index |
 * </pre>
 *
 * <p>Threads: the free slots are used by the end's data path alone, one thread at a time. {@code closed} is written and read under
 * the channel's lock. {@code registrations} is guarded by its own monitor, and null once the end is closed.
 */
final class LoopbackEnd extends HandleTable.Entry {
    /** Most ends of a JVM, as many as a request's handle can name. */
    static final int MAX_ENDS = 1 << 18;

    private static final int SLOT_SHIFT = 18;
    private static final int SLOT_MASK = 0xff;
    private static final int GENERATION_SHIFT = 26;
    private static final long GENERATION_MASK = (1L << 36) - 1;
    private static final long REQUEST_TAG = 1L << 62;
    private static final int DATA_SLOTS = LoopbackChannel.CAPACITY;
    private static final int FLUSH_SLOTS = 8;

    private final LoopbackTransport transport;
    private final LoopbackChannel channel;
    private final boolean sending;
    private final int nic;
    private final LoopbackRequest[] requests = new LoopbackRequest[DATA_SLOTS + FLUSH_SLOTS];
    private final LoopbackRequest tombstone = new LoopbackRequest(this, -1);
    private final byte[] freeData = new byte[DATA_SLOTS];
    private final byte[] freeFlush = new byte[FLUSH_SLOTS];
    private int freeDataTop;
    private int freeFlushTop;
    private long generation;
    private boolean closed;
    private Set<Registration> registrations = new HashSet<>();
    private final Object registrationsMonitor = new Object();

    LoopbackEnd(final LoopbackTransport transport, final LoopbackChannel channel, final boolean sending, final int nic) {
        this.transport = transport;
        this.channel = channel;
        this.sending = sending;
        this.nic = nic;
        for (int i = 0; i < requests.length; i++) {
            requests[i] = new LoopbackRequest(this, i);
        }
        for (int i = DATA_SLOTS; i > 0; i--) {
            freeData[freeDataTop++] = (byte) (i - 1);
        }
        for (int i = requests.length; i > DATA_SLOTS; i--) {
            freeFlush[freeFlushTop++] = (byte) (i - 1);
        }
    }

    /** Takes over the generation that the last end at this place ended with. Once, after it was put into the table. */
    void begin() {
        generation = baton();
    }

    LoopbackTransport transport() {
        return transport;
    }

    LoopbackChannel channel() {
        return channel;
    }

    boolean isSending() {
        return sending;
    }

    /** Whether this request only keeps a place in the order for one that was given up. */
    boolean isTombstone(final LoopbackRequest request) {
        return request == tombstone;
    }

    /**
     * Posts a send or receive.
     *
     * @return request, or NOT_YET.
     */
    long post(
        final FaultPlan.Operation operation, final Registration registration, final long address, final long lengthBytes,
        final FaultPlan plan) {
        final SpinLock lock = channel.lock();
        lock.lock();
        try {
            check(operation, registration);
            if (channel.peerOf(this).closed) {
                throw channel.peerClosed(operation.call(), this);
            }
            if (freeDataTop == 0 || channel.isFull(sending)) {
                return NetTransport.NOT_YET;
            }
            final LoopbackRequest request = requests[freeData[--freeDataTop] & SLOT_MASK];
            arm(request, registration, address, lengthBytes);
            if (plan != null) {
                plan.posted(operation, handle(), address, request);
            }
            channel.enqueue(request, sending);
            return handleOf(request);
        } finally {
            lock.unlock();
        }
    }

    /**
     * Posts a flush, which is complete at once: the bytes were moved by a processor, and the lock is a fence.
     *
     * @return request, or NOT_YET.
     */
    long flush(final Registration registration, final long address, final long lengthBytes, final FaultPlan plan) {
        final SpinLock lock = channel.lock();
        lock.lock();
        try {
            check(FaultPlan.Operation.IFLUSH, registration);
            if (freeFlushTop == 0) {
                return NetTransport.NOT_YET;
            }
            final LoopbackRequest request = requests[freeFlush[--freeFlushTop] & SLOT_MASK];
            arm(request, registration, address, lengthBytes);
            if (plan != null) {
                plan.posted(FaultPlan.Operation.IFLUSH, handle(), address, request);
            }
            request.complete(lengthBytes);
            return handleOf(request);
        } finally {
            lock.unlock();
        }
    }

    /**
     * The request with this handle.
     *
     * @return null if the handle names none that is in use.
     */
    static LoopbackRequest request(final HandleTable<LoopbackEnd> ends, final LoopbackTransport owner, final long handle) {
        if (handle >>> 62 != 1) {
            return null;
        }
        final LoopbackEnd end = ends.at((int) handle & MAX_ENDS - 1);
        final int slot = (int) (handle >>> SLOT_SHIFT) & SLOT_MASK;
        if (end == null || end.transport != owner || slot >= end.requests.length) {
            return null;
        }
        final LoopbackRequest request = end.requests[slot];
        return request.generation == (handle >>> GENERATION_SHIFT & GENERATION_MASK) && request.generation != 0 ? request : null;
    }

    /** Tests a request in use, and frees it if it is done. */
    long test(final LoopbackRequest request) {
        int state = request.state();
        if (state == LoopbackRequest.PENDING) {
            if (channel.help() == 0) {
                return NetTransport.PENDING;
            }
            state = request.state();
        }
        switch (state) {
            case LoopbackRequest.DONE:
                final long sizeBytes = request.sizeBytes();
                recycle(request);
                return sizeBytes;
            case LoopbackRequest.FAILED:
                final String why = request.failure();
                final long lengthBytes = request.lengthBytes;
                recycle(request);
                throw new NrtException(NrtStatus.FAILURE,
                    "loopback test of a request of " + lengthBytes + " bytes on " + this + ": " + why);
            default:
                return NetTransport.PENDING;
        }
    }

    /** Gives a request up, whatever its state: its memory is not touched any more, and what is matched with it fails. */
    void giveUp(final LoopbackRequest request) {
        final SpinLock lock = channel.lock();
        lock.lock();
        try {
            if (request.state() == LoopbackRequest.PENDING) {
                channel.withdraw(request, tombstone);
            }
            recycle(request);
        } finally {
            lock.unlock();
        }
    }

    /** Registers memory for this end; null if the end is closed. */
    Registration register(final HandleTable<Registration> table, final long address, final long sizeBytes) {
        final Registration registration = new Registration(this, address, sizeBytes);
        synchronized (registrationsMonitor) {
            if (registrations == null) {
                return null;
            }
            table.add(registration);
            registrations.add(registration);
            return registration;
        }
    }

    /** Ends a registration; false if it has been ended. */
    boolean deregister(final HandleTable<Registration> table, final Registration registration) {
        synchronized (registrationsMonitor) {
            if (registrations == null || !registrations.remove(registration)) {
                return false;
            }
            table.remove(registration);
        }
        channel.lock().lock();
        try {
            registration.invalidate();
        } finally {
            channel.lock().unlock();
        }
        return true;
    }

    /** Gives the requests up, fails the peer's, drops the registrations. Idempotent. */
    void close(final HandleTable<Registration> table) {
        final SpinLock lock = channel.lock();
        lock.lock();
        try {
            if (closed) {
                return;
            }
            closed = true;
            channel.close(this);
            for (final LoopbackRequest request : requests) {
                request.free();
            }
            handOn(generation);
        } finally {
            lock.unlock();
        }
        synchronized (registrationsMonitor) {
            // No request is left that could use them, so there is no need to end each under the lock.
            registrations.forEach(table::remove);
            registrations = null;
        }
    }

    /** Under the lock. */
    private void check(final FaultPlan.Operation operation, final Registration registration) {
        if (closed) {
            throw new NrtException(NrtStatus.INVALID_HANDLE, "loopback " + operation.call() + " on closed " + this);
        }
        if (!registration.isLive()) {
            throw new NrtException(NrtStatus.INVALID,
                "loopback " + operation.call() + " on " + this + ": the registration has been ended: " + registration);
        }
    }

    private void arm(
        final LoopbackRequest request, final Registration registration, final long address, final long lengthBytes) {
        generation = generation + 1 & GENERATION_MASK;
        if (generation == 0) {
            generation = 1;
        }
        request.arm(generation, registration, address, lengthBytes);
    }

    private long handleOf(final LoopbackRequest request) {
        return REQUEST_TAG | request.generation << GENERATION_SHIFT | (long) request.slot << SLOT_SHIFT | index();
    }

    private void recycle(final LoopbackRequest request) {
        request.free();
        if (request.slot < DATA_SLOTS) {
            freeData[freeDataTop++] = (byte) request.slot;
        } else {
            freeFlush[freeFlushTop++] = (byte) request.slot;
        }
    }

    @Override
    public String toString() {
        return (sending ? "send" : "receive") + " communicator 0x" + Long.toHexString(handle()) + " (nic " + nic + ")";
    }
}
