package io.nrt4j.net;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A connection of a transport to itself: what is sent on one end comes at the other.
 *
 * @param sendComm end that sends.
 * @param recvComm end that receives.
 */
public record SelfConnection(long sendComm, long recvComm) {
    private static final Logger LOG = LoggerFactory.getLogger(SelfConnection.class);

    /** Both ends while they are made. */
    private static final class Making {
        private final NetTransport transport;
        private final int nic;
        private final byte[] handle = new byte[NetTransport.HANDLE_BYTES];
        private final long listener;
        private long sendComm;
        private long recvComm;

        Making(final NetTransport transport, final int nic) {
            this.transport = transport;
            this.nic = nic;
            listener = transport.listen(nic, handle);
        }

        boolean attempt() {
            if (sendComm == NetTransport.NOT_YET) {
                sendComm = transport.connect(nic, handle);
            }
            if (recvComm == NetTransport.NOT_YET) {
                recvComm = transport.accept(listener);
            }
            return sendComm != NetTransport.NOT_YET && recvComm != NetTransport.NOT_YET;
        }

        void giveUp(final Throwable cause) {
            quietly(sendComm == NetTransport.NOT_YET ? () -> transport.abandonConnect(nic, handle)
                : () -> transport.closeSend(sendComm), cause);
            if (recvComm != NetTransport.NOT_YET) {
                quietly(() -> transport.closeRecv(recvComm), cause);
            }
            quietly(() -> transport.closeListen(listener), cause);
        }
    }

    /**
     * Connects. What was opened is closed again when it fails.
     *
     * @param transport  to connect.
     * @param nic        from {@link NetTransport#nicOf}.
     * @param deadlineNs reading of {@link System#nanoTime()} at which to give up.
     * @return both ends; the caller's to close.
     * @throws io.nrt4j.NrtException with the first cause; TIMEOUT at the deadline, CLOSED when the thread is interrupted.
     */
    public static SelfConnection open(final NetTransport transport, final int nic, final long deadlineNs) {
        final Making making = new Making(transport, nic);
        try {
            Connecting.await(transport, deadlineNs, making::attempt, () -> transport.name() + " did not connect to itself");
        } catch (final RuntimeException | LinkageError ex) {
            making.giveUp(ex);
            throw ex;
        }
        final SelfConnection made = new SelfConnection(making.sendComm, making.recvComm);
        try {
            transport.closeListen(making.listener);
        } catch (final RuntimeException | LinkageError ex) { // it has done its part: what becomes of it changes nothing
            LOG.error("The listener of a connection of {} to itself could not be closed", transport.name(), ex);
        }
        return made;
    }

    /**
     * Closes both ends after a failure, which keeps what else goes wrong.
     *
     * @param transport of the connection.
     * @param cause     why.
     */
    public void close(final NetTransport transport, final Throwable cause) {
        quietly(() -> transport.closeSend(sendComm), cause);
        quietly(() -> transport.closeRecv(recvComm), cause);
    }

    private static void quietly(final Runnable step, final Throwable cause) {
        try {
            step.run();
        } catch (final RuntimeException | LinkageError ex) {
            cause.addSuppressed(ex);
        }
    }
}
