package io.nrt4j.sendrecv;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.NrtTensor;
import io.nrt4j.net.NetTransport;
import io.nrt4j.net.SelfConnection;
import java.util.ArrayList;
import java.util.List;
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
        final SelfConnection itself,
        final NrtTensor buffer,
        final long registration) {
        this.net = net;
        this.transport = net.transport();
        this.lnc = lnc;
        this.sendComm = itself.sendComm();
        this.recvComm = itself.recvComm();
        this.buffer = buffer;
        this.registration = registration;
    }

    /**
     * Connects the LNC to itself and registers the buffer.
     *
     * @throws NrtException when it cannot, or not before the deadline; nothing is left open then, and what could not be closed is in
     *                      its suppressed exceptions.
     */
    static FlushFence open(final LockedNet net, final int lnc, final long deadlineNs) {
        final NetTransport transport = net.transport();
        final boolean interrupted = Thread.interrupted(); // would end the wait at once: it is kept for the caller
        SelfConnection itself = null;
        NrtTensor buffer = null;
        try {
            itself = SelfConnection.open(transport, transport.nicOf(lnc), deadlineNs);
            buffer = NrtTensor.allocate(BUFFER_BYTES);
            final long registration = transport.regMr(itself.recvComm(), buffer.address(), BUFFER_BYTES, buffer.placement());
            return new FlushFence(net, lnc, itself, buffer, registration);
        } catch (final RuntimeException | LinkageError ex) {
            final NrtException failure = new NrtException(ex instanceof NrtException known ? known.status() : NrtStatus.FAILURE,
                "flush buffer of lnc " + lnc + ": " + (ex.getMessage() == null ? ex : ex.getMessage()), ex);
            for (final Throwable other : ex.getSuppressed()) {
                failure.addSuppressed(other);
            }
            if (itself != null) {
                itself.close(transport, failure);
            }
            if (buffer != null) {
                buffer.close();
            }
            throw failure;
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    /** Waits between two looks at the transport. An interrupt would make every park return at once: it is kept for the caller. */
    private static final class Pause implements AutoCloseable {
        private final long deadlineNs;
        private int rounds;
        private boolean interrupted;

        Pause(final long deadlineNs) {
            this.deadlineNs = deadlineNs;
        }

        void await(final Supplier<String> late) {
            if (System.nanoTime() - deadlineNs > 0) {
                throw new NrtException(NrtStatus.TIMEOUT, late.get());
            }
            if (rounds < SPINS) {
                rounds++;
                Thread.onSpinWait();
            } else {
                interrupted |= Thread.interrupted();
                LockSupport.parkNanos(this, PARK_NS);
            }
        }

        @Override
        public void close() {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
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
        final Supplier<String> tooLate = () -> "the transport " + transport.name() + " has not answered it";
        try (Pause pause = new Pause(deadlineNs)) {
            testLate();
            long request = net.iflush(recvComm, buffer.address(), BUFFER_BYTES, registration);
            while (request == NetTransport.NOT_YET) {
                checkAlive(failed);
                pause.await(tooLate);
                testLate();
                request = net.iflush(recvComm, buffer.address(), BUFFER_BYTES, registration);
            }
            awaitEnd(request, failed, pause, tooLate);
        }
    }

    private void awaitEnd(
        final long request, final Supplier<Throwable> failed, final Pause pause, final Supplier<String> tooLate) {
        boolean inFlight = false;
        try {
            while (net.test(request) == NetTransport.PENDING) {
                inFlight = true;
                checkAlive(failed);
                pause.await(tooLate);
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
        } catch (final RuntimeException ex) { // whatever a transport throws: it is not this flush that has failed
            LOG.debug("a flush of lnc {} that had given up failed", lnc, ex);
            return true;
        }
    }

    private void checkAlive(final Supplier<Throwable> failed) {
        final Throwable why = failed.get();
        if (why != null) {
            throw new NrtException(NrtStatus.FAILURE, "its service thread has failed: " + why, why);
        }
    }

    /** Closes the connection, which ends the registration, and frees the buffer, unless a late fence may still write into it. */
    void close() {
        try {
            transport.closeSend(sendComm);
        } finally {
            try {
                transport.closeRecv(recvComm);
            } catch (final NrtException ex) {
                if (ex.status() == NrtStatus.TIMEOUT && buffer.storage().retain()) {
                    buffer.storage().keepForever();
                }
                throw ex;
            } finally {
                buffer.close();
            }
        }
    }
}
