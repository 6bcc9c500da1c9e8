package io.nrt4j.sendrecv;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.Placement;
import io.nrt4j.net.NetTransport;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/**
 * A network that does nothing but keep account. It connects at once and moves no memory; a request is done when it is tested, unless the
 * test holds them back.
 *
 * <p>Threads: any; the order of posts is written under the data-path lock of the LNC, as by any transport, and read by an arbiter.
 */
final class StubTransport implements NetTransport {
    final AtomicInteger registrations = new AtomicInteger();
    final AtomicInteger deregistrations = new AtomicInteger();
    final AtomicInteger endsClosed = new AtomicInteger();
    /** Something that a transport must not be asked for: a registration ended after its communicator, a request tested twice. */
    final AtomicInteger faults = new AtomicInteger();
    volatile boolean holdsBack;
    volatile boolean needsProgress;
    private final AtomicLong handles = new AtomicLong();
    private final StringBuilder order = new StringBuilder();
    private long testedMask;
    private int posts;

    /** Lengths of the posts, in their order. */
    String order() {
        return order.toString();
    }

    int posts() {
        return posts;
    }

    @Override
    public String name() {
        return "stub";
    }

    @Override
    public long maxMessageBytes() {
        return Long.MAX_VALUE;
    }

    @Override
    public long listen(final int nic, final byte[] handleOut) {
        return handles.incrementAndGet();
    }

    @Override
    public long connect(final int nic, final byte[] handle) {
        return handles.incrementAndGet();
    }

    @Override
    public void abandonConnect(final int nic, final byte[] handle) {
        // It never waits.
    }

    @Override
    public long accept(final long listenComm) {
        return handles.incrementAndGet();
    }

    /** Takes some microseconds, being what takes longest of a real transport's calls. */
    @Override
    public long regMr(final long comm, final long address, final long sizeBytes, final Placement placement) {
        for (int i = 0; i < 50; i++) {
            Thread.onSpinWait();
        }
        return 1000 + registrations.incrementAndGet();
    }

    @Override
    public void deregMr(final long comm, final long registration) {
        deregistrations.incrementAndGet();
        if (endsClosed.get() > 0) {
            faults.incrementAndGet();
        }
    }

    @Override
    public long isend(final long comm, final long address, final long lengthBytes, final long registration) {
        return post(lengthBytes);
    }

    @Override
    public long irecv(final long comm, final long address, final long lengthBytes, final long registration) {
        return post(lengthBytes);
    }

    @Override
    public long iflush(final long comm, final long address, final long lengthBytes, final long registration) {
        return post(lengthBytes);
    }

    private long post(final long lengthBytes) {
        order.append(lengthBytes);
        posts++;
        return posts;
    }

    @Override
    public long test(final long request) {
        if (request < 1 || request > posts || (testedMask & 1L << request) != 0) {
            faults.incrementAndGet();
            throw new NrtException(NrtStatus.INVALID_HANDLE, "no request " + request);
        }
        if (holdsBack) {
            return PENDING;
        }
        testedMask |= 1L << request;
        return request;
    }

    @Override
    public boolean needsProgress() {
        return needsProgress;
    }

    @Override
    public void closeSend(final long comm, final long deadlineNs) {
        endsClosed.incrementAndGet();
    }

    @Override
    public void closeRecv(final long comm, final long deadlineNs) {
        endsClosed.incrementAndGet();
    }

    @Override
    public void closeListen(final long listenComm) {
        // Nothing is held.
    }

    @Override
    public void close() {
        // Nothing is held.
    }
}
