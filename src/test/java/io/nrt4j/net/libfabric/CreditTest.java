package io.nrt4j.net.libfabric;

import static io.nrt4j.net.libfabric.FabricPair.complete;
import static io.nrt4j.net.libfabric.FabricPair.irecv;
import static io.nrt4j.net.libfabric.FabricPair.isend;
import static io.nrt4j.net.libfabric.FabricPair.register;
import static org.assertj.core.api.Assertions.assertThat;

import io.nrt4j.NrtTensor;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Credits, announcements and their thresholds: nobody waits for ever for what another communicator holds. */
class CreditTest {
    private static final int COUNT = 128;

    @BeforeAll
    static void libfabricIsThere() {
        FabricPair.assumeLibfabric();
    }

    private static void drive(final FabricPair.Link link, final int times) {
        for (int i = 0; i < times; i++) {
            link.sender().progress();
            link.receiver().progress();
        }
    }

    /** Sends that nobody receives pin as many buffers over there as they may; the others must get on with the rest. */
    private static void pin(final FabricPair.Link link, final NrtTensor source, final int length) {
        final long from = register(link.sender(), link.send(), source);
        for (int i = 0; i < 40; i++) {
            isend(link, source, 0, length, from);
            drive(link, 20);
        }
    }

    private static void stream(final FabricPair.Link link, final NrtTensor source, final NrtTensor target, final int length) {
        final long from = register(link.sender(), link.send(), source);
        final long to = register(link.receiver(), link.recv(), target);
        final long[] receives = new long[COUNT];
        for (int i = 0; i < COUNT; i++) {
            receives[i] = irecv(link, target, 0, length, to);
        }
        drive(link, 2000); // until all are announced, so that no later announcement takes credits back
        for (int i = 0; i < COUNT; i++) {
            final long send = isend(link, source, 0, length, from);
            assertThat(complete(link, link.receiver(), receives[i])).as("receive %d", i).isEqualTo(length);
            assertThat(complete(link, link.sender(), send)).as("send %d", i).isEqualTo(length);
        }
    }

    @ParameterizedTest
    @CsvSource({"tcp;ofi_rxm,100", "shm,100", "shm,4096", "sockets,100"})
    void pinnedBuffersOfOneCommunicatorDoNotStopAnother(final String provider, final int length) {
        try (FabricPair pair = new FabricPair(provider); NrtTensor source = NrtTensor.allocate(length);
            NrtTensor target = NrtTensor.allocate(length)) {
            pin(FabricPair.link(pair.left, pair.right), source, length);
            stream(FabricPair.link(pair.left, pair.right), source, target, length);
        }
    }

    /** The more peers, the smaller the window that a process grants to the next one; the small one counts, not the own. */
    @Test
    void theSmallerWindowBoundsWhatIsSentAhead() {
        final List<LibfabricTransport> peers = new ArrayList<>();
        try (FabricPair pair = new FabricPair("sockets"); NrtTensor source = NrtTensor.allocate(100);
            NrtTensor target = NrtTensor.allocate(100)) {
            for (int i = 0; i < 6; i++) {
                peers.add(new LibfabricTransport(FabricPair.config("sockets")));
                FabricPair.link(peers.get(i), pair.right);
            }
            pin(FabricPair.link(pair.left, pair.right), source, 100);
            stream(FabricPair.link(pair.left, pair.right), source, target, 100);
        } finally {
            peers.forEach(LibfabricTransport::close);
        }
    }
}
