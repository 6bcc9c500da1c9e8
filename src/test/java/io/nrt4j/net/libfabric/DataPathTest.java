package io.nrt4j.net.libfabric;

import static io.nrt4j.net.libfabric.FabricPair.complete;
import static io.nrt4j.net.libfabric.FabricPair.irecv;
import static io.nrt4j.net.libfabric.FabricPair.isend;
import static io.nrt4j.net.libfabric.FabricPair.register;
import static org.assertj.core.api.Assertions.assertThat;

import io.nrt4j.NrtTensor;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Both ways to call libfabric, where this Java has both. */
class DataPathTest {
    private static final int FIRST_WITH_FOREIGN = 22;
    private static final int LENGTH = 1 << 20;

    @BeforeAll
    static void libfabricIsThere() {
        FabricPair.assumeLibfabric();
    }

    @AfterEach
    void asItWas() {
        System.clearProperty(ForeignCalls.PROPERTY);
    }

    @Test
    void theFasterOneIsTakenWhereItIs() {
        assertThat(ForeignCalls.available()).isEqualTo(Runtime.version().feature() >= FIRST_WITH_FOREIGN);
        System.setProperty(ForeignCalls.PROPERTY, "false");
        assertThat(ForeignCalls.available()).isFalse();
    }

    @ParameterizedTest
    @CsvSource({"tcp;ofi_rxm, true", "tcp;ofi_rxm, false", "shm, true", "shm, false"})
    void bothCarryShortAndLongMessages(final String provider, final String foreign) {
        System.setProperty(ForeignCalls.PROPERTY, foreign);
        try (FabricPair pair = new FabricPair(provider);
            NrtTensor source = NrtTensor.allocate(LENGTH);
            NrtTensor target = NrtTensor.allocate(LENGTH)) {
            final FabricPair.Link link = FabricPair.link(pair.left, pair.right);
            final long from = register(pair.left, link.send(), source);
            final long to = register(pair.right, link.recv(), target);
            for (final int length : new int[] {8, 4096, LENGTH}) {
                final byte[] data = new byte[length];
                java.util.Arrays.fill(data, (byte) length);
                data[0] = 1;
                source.write(0, data);
                final long receive = irecv(link, target, 0, length, to);
                final long send = isend(link, source, 0, length, from);
                assertThat(complete(link, pair.right, receive)).isEqualTo(length);
                assertThat(complete(link, pair.left, send)).isEqualTo(length);
                assertThat(target.read(0, length)).isEqualTo(data);
            }
            // A receive that is given up is cancelled with the provider.
            irecv(link, target, 0, LENGTH, to);
            link.close();
        }
    }
}
