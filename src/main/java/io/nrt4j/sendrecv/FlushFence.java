package io.nrt4j.sendrecv;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.NrtTensor;
import io.nrt4j.net.NetTransport;
import java.util.ArrayDeque;
import java.util.Queue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Supplier;

/**
 * The read-after-receive fence of an LNC: a flush on a connection of the LNC to itself, with a registered 4-byte buffer.
 *
 * <p>Threads: made and closed by the thread that holds the LNC's init lock; {@link #flush} by any thread. {@code abandoned} is
 * guarded by its monitor; all other fields are final.
 * Ports the loopback buffer of {@code enc_async_sr_init} and {@code enc_async_sr_flush} (0xebd10).
 */
final class FlushFence {
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
    /** Fences that ran out of time: the transport still has them, and is asked for them before it is given more. */
    private final Queue<Long> abandoned = new ArrayDeque<>();

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
        final Supplier<String> late = () -> "flush of lnc " + lnc + " over " + transport.name() + " is not done after "
            + TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - startNs) + " ms";
        collectAbandoned();
        long request = net.iflush(recvComm, buffer.address(), BUFFER_BYTES, registration);
        for (int round = 0; request == NetTransport.NOT_YET; round++) {
            checkAlive(failed);
            pause(round, deadlineNs, late);
            request = net.iflush(recvComm, buffer.address(), BUFFER_BYTES, registration);
        }
        boolean over = false;
        try {
            for (int round = 0; test(request); round++) {
                checkAlive(failed);
                pause(round, deadlineNs, late);
            }
            over = true;
        } catch (final FenceFailure ex) {
            over = true;
            throw ex;
        } finally {
            if (!over) {
                synchronized (abandoned) {
                    abandoned.add(request);
                }
            }
        }
    }

    /** Whether a fence is still pending; one that fails is over. */
    private boolean test(final long request) {
        try {
            return net.test(request) == NetTransport.PENDING;
        } catch (final RuntimeException ex) {
            throw new FenceFailure("flush of lnc " + lnc + " over " + transport.name() + " failed: " + ex.getMessage(), ex);
        }
    }

    private void collectAbandoned() {
        synchronized (abandoned) {
            abandoned.removeIf(request -> {
                try {
                    return !test(request);
                } catch (final FenceFailure ex) {
                    return true; // it is over, and whoever waited for it has been told
                }
            });
        }
    }

    /** A fence that the transport gave up. */
    private static final class FenceFailure extends NrtException {
        private static final long serialVersionUID = 1L;

        FenceFailure(final String message, final Throwable cause) {
            super(NrtStatus.FAILURE, message, cause);
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
