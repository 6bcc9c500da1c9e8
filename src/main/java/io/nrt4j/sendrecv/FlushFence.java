package io.nrt4j.sendrecv;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.NrtTensor;
import io.nrt4j.net.NetTransport;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Supplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The read-after-receive fence of an LNC: a flush on a connection of the LNC to itself, with a registered 4-byte buffer.
 *
 * <p>Threads: made and closed by the thread that holds the LNC's init lock; {@link #flush} by any thread. All fields are final;
 * {@code late} is guarded by its monitor, under which the data-path lock is taken.
 * Ports the loopback buffer of {@code enc_async_sr_init} and {@code enc_async_sr_flush} (0xebd10).
 */
final class FlushFence {
    private static final Logger LOG = LoggerFactory.getLogger(FlushFence.class);
    private static final int BUFFER_BYTES = 4;
    private static final int SPINS = 200;
    private static final long PARK_NS = 20_000;

    private final LockedNet net;
    private final NetTransport transport;
    private final int lnc;
    private final long sendComm;
    private final long recvComm;
    private final NrtTensor buffer;
    private final long registration;
    /** Requests of flushes that gave up: the transport has them still, and gives their room back to whoever tests them. */
    private final List<Long> late = new ArrayList<>();

    private FlushFence(
        final LockedNet net,
        final int lnc,
        final long sendComm,
        final long recvComm,
        final NrtTensor buffer,
        final long registration) {
        this.net = net;
        this.transport = net.transport();
        this.lnc = lnc;
        this.sendComm = sendComm;
        this.recvComm = recvComm;
        this.buffer = buffer;
        this.registration = registration;
    }

    /**
     * Connects the LNC to itself and registers the buffer.
     *
     * @throws NrtException when it cannot, or not before the deadline.
     */
    static FlushFence open(final LockedNet net, final int lnc, final long deadlineNs) {
        final NetTransport transport = net.transport();
        final int nic = transport.nicOf(lnc);
        final byte[] handle = new byte[NetTransport.HANDLE_BYTES];
        final long listenComm = transport.listen(nic, handle);
        long sendComm = NetTransport.NOT_YET;
        long recvComm = NetTransport.NOT_YET;
        NrtTensor buffer = null;
        try {
            for (int round = 0; sendComm == NetTransport.NOT_YET || recvComm == NetTransport.NOT_YET; round++) {
                if (sendComm == NetTransport.NOT_YET) {
                    sendComm = transport.connect(nic, handle);
                }
                if (recvComm == NetTransport.NOT_YET) {
                    recvComm = transport.accept(listenComm);
                }
                transport.progress();
                pause(round, deadlineNs, () -> "lnc " + lnc + " could not connect to itself over " + transport.name()
                    + " within its time limit");
            }
            buffer = NrtTensor.allocate(BUFFER_BYTES);
            final long registration = transport.regMr(recvComm, buffer.address(), BUFFER_BYTES, buffer.placement());
            return new FlushFence(net, lnc, sendComm, recvComm, buffer, registration);
        } catch (final RuntimeException | LinkageError ex) {
            if (sendComm != NetTransport.NOT_YET) {
                transport.closeSend(sendComm);
            } else {
                transport.abandonConnect(nic, handle);
            }
            if (recvComm != NetTransport.NOT_YET) {
                transport.closeRecv(recvComm);
            }
            if (buffer != null) {
                buffer.close();
            }
            throw new NrtException(ex instanceof NrtException known ? known.status() : NrtStatus.FAILURE,
                "flush buffer of lnc " + lnc + ": " + ex.getMessage(), ex);
        } finally {
            transport.closeListen(listenComm);
        }
    }

    /**
     * Returns when the data of receives that tested complete before is in memory.
     *
     * @param failed     asked while waiting: why the LNC has failed, or null.
     * @param deadlineNs end of the wait, by {@link System#nanoTime()}: it blocks the caller, whatever clock the machines go by.
     * @throws NrtException TIMEOUT at the deadline; another status when the fence or the LNC fails.
     */
    void flush(final Supplier<Throwable> failed, final long deadlineNs) {
        final long startNs = System.nanoTime();
        final Supplier<String> tooLate = () -> "flush of lnc " + lnc + " over " + transport.name() + " is not done after "
            + TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - startNs) + " ms";
        testLate();
        long request = net.iflush(recvComm, buffer.address(), BUFFER_BYTES, registration);
        for (int round = 0; request == NetTransport.NOT_YET; round++) {
            checkAlive(failed);
            pause(round, deadlineNs, tooLate);
            testLate();
            request = net.iflush(recvComm, buffer.address(), BUFFER_BYTES, registration);
        }
        boolean inFlight = false;
        try {
            for (int round = 0; net.test(request) == NetTransport.PENDING; round++) {
                inFlight = true;
                checkAlive(failed);
                pause(round, deadlineNs, tooLate);
                inFlight = false; // a test that throws has ended it
            }
        } finally {
            if (inFlight) {
                synchronized (late) {
                    late.add(request);
                }
            }
        }
    }

    private void testLate() {
        synchronized (late) {
            if (!late.isEmpty()) {
                late.removeIf(this::isOver);
            }
        }
    }

    private boolean isOver(final long request) {
        try {
            return net.test(request) != NetTransport.PENDING;
        } catch (final NrtException ex) {
            LOG.debug("a flush of lnc {} that had given up failed", lnc, ex);
            return true;
        }
    }

    private void checkAlive(final Supplier<Throwable> failed) {
        final Throwable why = failed.get();
        if (why != null) {
            throw new NrtException(NrtStatus.FAILURE, "flush of lnc " + lnc + ": its service thread has failed: " + why, why);
        }
    }

    private static void pause(final int round, final long deadlineNs, final Supplier<String> late) {
        if (System.nanoTime() - deadlineNs > 0) {
            throw new NrtException(NrtStatus.TIMEOUT, late.get());
        }
        if (round < SPINS) {
            Thread.onSpinWait();
        } else {
            LockSupport.parkNanos(PARK_NS);
        }
    }

    /** Closes the connection, which ends the registration, and frees the buffer. */
    void close() {
        try {
            transport.closeSend(sendComm);
        } finally {
            try {
                transport.closeRecv(recvComm);
            } finally {
                buffer.close();
            }
        }
    }
}
