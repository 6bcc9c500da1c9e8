package io.nrt4j.net.libnccom;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.NrtTensor;
import io.nrt4j.net.NetTransport;
import java.time.Duration;
import java.util.concurrent.locks.LockSupport;

/** Connects LNC 0 to itself and registers a flush buffer, which is where hosts that lack something fail. */
final class SelfTest {
    private static final Duration LIMIT = Duration.ofSeconds(5);
    private static final int BUFFER_BYTES = 4;
    private static final long PAUSE_NS = 100_000;

    private SelfTest() {
    }

    /**
     * Runs the test; whatever it opens stays with the transport, which the caller closes.
     *
     * @throws NrtException with the first cause, or TIMEOUT.
     */
    static void run(final NetTransport transport) {
        final int nic = transport.nicOf(0);
        final byte[] handle = new byte[NetTransport.HANDLE_BYTES];
        final long listener = transport.listen(nic, handle);
        final long startNs = System.nanoTime();
        long send = NetTransport.NOT_YET;
        long recv = NetTransport.NOT_YET;
        while (send == NetTransport.NOT_YET || recv == NetTransport.NOT_YET) {
            send = send == NetTransport.NOT_YET ? transport.connect(nic, handle) : send;
            recv = recv == NetTransport.NOT_YET ? transport.accept(listener) : recv;
            if (System.nanoTime() - startNs > LIMIT.toNanos()) {
                throw new NrtException(NrtStatus.TIMEOUT, transport.name() + " did not connect to itself within " + LIMIT.toMillis()
                    + " ms");
            }
            LockSupport.parkNanos(send == NetTransport.NOT_YET || recv == NetTransport.NOT_YET ? PAUSE_NS : 1);
        }
        try (NrtTensor buffer = NrtTensor.allocate(BUFFER_BYTES)) {
            final long registration;
            try {
                registration = transport.regMr(recv, buffer.address(), BUFFER_BYTES, buffer.placement());
            } catch (final NrtException ex) {
                throw new NrtException(ex.status(), "flush buffer: " + ex.getMessage(), ex);
            }
            transport.deregMr(recv, registration);
        }
    }
}
