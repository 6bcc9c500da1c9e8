package io.nrt4j.net.libnccom;

import io.nrt4j.NrtException;
import io.nrt4j.NrtTensor;
import io.nrt4j.net.NetTransport;
import io.nrt4j.net.SelfConnection;
import java.time.Duration;

/** Connects LNC 0 to itself and registers a flush buffer, which is where hosts that lack something fail. */
final class SelfTest {
    private static final Duration LIMIT = Duration.ofSeconds(5);
    private static final int BUFFER_BYTES = 4;

    private SelfTest() {
    }

    /**
     * Runs the test; whatever it opens stays with the transport, which the caller closes.
     *
     * @throws NrtException with the first cause, or TIMEOUT.
     */
    static void run(final NetTransport transport) {
        final SelfConnection itself = SelfConnection.open(transport, transport.nicOf(0), System.nanoTime() + LIMIT.toNanos());
        try (NrtTensor buffer = NrtTensor.allocate(BUFFER_BYTES)) {
            final long registration;
            try {
                registration = transport.regMr(itself.recvComm(), buffer.address(), BUFFER_BYTES, buffer.placement());
            } catch (final NrtException ex) {
                throw new NrtException(ex.status(), "flush buffer: " + ex.getMessage(), ex);
            }
            transport.deregMr(itself.recvComm(), registration);
        }
    }
}
