package io.nrt4j.net.libfabric;

import static io.nrt4j.net.libfabric.FabricPair.complete;
import static io.nrt4j.net.libfabric.FabricPair.failure;
import static io.nrt4j.net.libfabric.FabricPair.irecv;
import static io.nrt4j.net.libfabric.FabricPair.isend;
import static io.nrt4j.net.libfabric.FabricPair.register;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nrt4j.NrtException;
import io.nrt4j.NrtTensor;
import io.nrt4j.Placement;
import io.nrt4j.net.NetTransport;
import java.util.Random;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The message protocol between two transports of one JVM, over real providers. */
class MessageProtocolTest {
    private static final int MIB = 1 << 20;

    @BeforeAll
    static void libfabricIsThere() {
        FabricPair.assumeLibfabric();
    }

    private static byte[] pattern(final int seed, final int length) {
        final byte[] bytes = new byte[length];
        new Random(seed).nextBytes(bytes);
        return bytes;
    }

    @ParameterizedTest
    @ValueSource(strings = {"tcp;ofi_rxm", "shm", "sockets"})
    void everySizeArrivesWhicheverSideIsFirst(final String provider) {
        try (FabricPair pair = new FabricPair(provider);
            NrtTensor source = NrtTensor.allocate(4L * MIB);
            NrtTensor target = NrtTensor.allocate(4L * MIB)) {
            final FabricPair.Link link = FabricPair.link(pair.left, pair.right);
            final long from = register(pair.left, link.send(), source);
            final long to = register(pair.right, link.recv(), target);
            int seed = 0;
            for (final int length : new int[] {0, 1, 8, 63, 64, 500, 2048, 2049, 4048, 4064, 4065, 4095, 4096, 4097, 8192, 8193,
                65536, 65537, MIB, 4 * MIB}) {
                for (int mode = 0; mode < 3; mode++) {
                    final byte[] data = pattern(++seed, length);
                    source.write(0, data);
                    final int posted = mode == 2 ? 4 * MIB : length;
                    long receive = mode == 1 ? 0 : irecv(link, target, 0, posted, to);
                    final long send = isend(link, source, 0, length, from);
                    if (mode == 1) {
                        pair.left.progress();
                        receive = irecv(link, target, 0, posted, to);
                    }
                    assertThat(complete(link, pair.right, receive)).as("received, mode %d", mode).isEqualTo(length);
                    assertThat(complete(link, pair.left, send)).as("sent, mode %d", mode).isEqualTo(length);
                    assertThat(target.read(0, length)).isEqualTo(data);
                }
            }
            link.close();
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"tcp;ofi_rxm", "shm", "sockets"})
    void deviceMemoryIsRefused(final String provider) {
        try (FabricPair pair = new FabricPair(provider); NrtTensor tensor = NrtTensor.allocate(64)) {
            final FabricPair.Link link = FabricPair.link(pair.left, pair.right);
            assertThatThrownBy(() -> pair.left.regMr(link.send(), tensor.address(), 64, Placement.DEVICE))
                .isInstanceOf(NrtException.class).hasMessageContaining("memory of a device");
            register(pair.left, link.send(), tensor);
            link.close();
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"tcp;ofi_rxm", "shm", "sockets"})
    void aMessageLongerThanItsReceiveFailsAtBothEndsAndNothingElse(final String provider) {
        try (FabricPair pair = new FabricPair(provider);
            NrtTensor source = NrtTensor.allocate(4L * MIB);
            NrtTensor target = NrtTensor.allocate(4L * MIB)) {
            final FabricPair.Link link = FabricPair.link(pair.left, pair.right);
            final long from = register(pair.left, link.send(), source);
            final long to = register(pair.right, link.recv(), target);
            source.write(0, pattern(1, 4 * MIB));
            final int[][] cases = {{8, 7}, {1, 0}, {4096, 100}, {4096, 4095}, {8192, 8191}, {MIB, 10}, {MIB, MIB - 1}, {2 * MIB, 70_000}};
            for (final int[] lengths : cases) {
                for (final boolean receiveFirst : new boolean[] {true, false}) {
                    target.write(0, new byte[4 * MIB]);
                    long receive = receiveFirst ? irecv(link, target, 0, lengths[1], to) : 0;
                    final long send = isend(link, source, 0, lengths[0], from);
                    receive = receiveFirst ? receive : irecv(link, target, 0, lengths[1], to);
                    final long next = isend(link, source, 100, 50, from);
                    final long nextReceive = irecv(link, target, 100, 4096, to);
                    assertThat(failure(link, pair.right, receive)).hasMessageContaining(lengths[0] + " bytes");
                    assertThat(failure(link, pair.left, send)).hasMessageContaining(lengths[0] + " bytes");
                    assertThat(complete(link, pair.right, nextReceive)).isEqualTo(50);
                    assertThat(complete(link, pair.left, next)).isEqualTo(50);
                    assertThat(target.read(0, 100)).isEqualTo(new byte[100]);
                    assertThat(target.read(100, 50)).isEqualTo(source.read(100, 50));
                    assertThat(target.read(150, 4 * MIB - 150)).isEqualTo(new byte[4 * MIB - 150]);
                }
            }
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"tcp;ofi_rxm", "shm", "sockets"})
    void oneTransportTalksToItself(final String provider) {
        try (FabricPair pair = new FabricPair(provider);
            NrtTensor source = NrtTensor.allocate(MIB);
            NrtTensor target = NrtTensor.allocate(MIB)) {
            final FabricPair.Link link = FabricPair.link(pair.left, pair.left);
            final long from = register(pair.left, link.send(), source);
            final long to = register(pair.left, link.recv(), target);
            source.write(0, pattern(5, MIB));
            for (final int length : new int[] {0, 8, 5000, 100_000, MIB}) {
                final long receive = irecv(link, target, 0, length, to);
                final long send = isend(link, source, 0, length, from);
                assertThat(complete(link, pair.left, receive)).isEqualTo(length);
                assertThat(complete(link, pair.left, send)).isEqualTo(length);
                assertThat(target.read(0, length)).isEqualTo(source.read(0, length));
            }
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"tcp;ofi_rxm", "shm", "sockets"})
    void aLongSendCompletesWhileOnlyProgressIsCalled(final String provider) {
        try (FabricPair pair = new FabricPair(provider);
            NrtTensor source = NrtTensor.allocate(8L * MIB);
            NrtTensor target = NrtTensor.allocate(8L * MIB)) {
            final FabricPair.Link link = FabricPair.link(pair.left, pair.right);
            final long from = register(pair.left, link.send(), source);
            final long to = register(pair.right, link.recv(), target);
            source.write(0, pattern(9, 8 * MIB));
            final long send = isend(link, source, 0, 8L * MIB, from);
            final long receive = irecv(link, target, 0, 8L * MIB, to);
            assertThat(pair.left.needsProgress()).isTrue();
            FabricPair.await("both sides to come to rest", () -> {
                pair.left.progress();
                pair.right.progress();
                return !pair.left.needsProgress() && !pair.right.needsProgress();
            });
            assertThat(pair.right.test(receive)).isEqualTo(8L * MIB);
            assertThat(pair.left.test(send)).isEqualTo(8L * MIB);
            assertThat(target.read(0, 8 * MIB)).isEqualTo(source.read(0, 8 * MIB));
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"tcp;ofi_rxm", "sockets"})
    void memoryCanBeRegisteredWithTheProvider(final String provider) {
        System.setProperty("nrt4j.libfabric.alwaysRegister", "true");
        try {
            everySizeArrivesWhicheverSideIsFirst(provider);
            oneTransportTalksToItself(provider);
        } finally {
            System.clearProperty("nrt4j.libfabric.alwaysRegister");
        }
    }

    /** Over tcp;ofi_rxm the provider's own close would end this JVM. */
    @ParameterizedTest
    @CsvSource({"tcp;ofi_rxm,true", "tcp;ofi_rxm,false", "shm,true", "shm,false", "sockets,true", "sockets,false"})
    void aTransportCanBeClosedWhileLongMessagesAreUnderWay(final String provider, final boolean receiverFirst) {
        try (NrtTensor source = NrtTensor.allocate(64L * MIB); NrtTensor target = NrtTensor.allocate(64L * MIB);
            FabricPair pair = new FabricPair(provider)) {
            final FabricPair.Link link = FabricPair.link(pair.left, pair.right);
            final long from = register(pair.left, link.send(), source);
            final long to = register(pair.right, link.recv(), target);
            final long receive = irecv(link, target, 0, 16L * MIB, to);
            for (int i = 1; i < 4; i++) {
                irecv(link, target, i * 16L * MIB, 16L * MIB, to);
            }
            for (int i = 0; i < 1000; i++) {
                pair.right.progress(); // the receives are announced
                pair.left.progress();
            }
            final long send = isend(link, source, 0, 16L * MIB, from);
            for (int i = 1; i < 4; i++) {
                isend(link, source, i * 16L * MIB, 16L * MIB, from);
            }
            (receiverFirst ? pair.right : pair.left).close();
            final NetTransport other = receiverFirst ? pair.left : pair.right;
            final NrtException[] failure = new NrtException[1];
            final long[] size = {0};
            FabricPair.await("the other end's request", () -> {
                try {
                    size[0] = other.test(receiverFirst ? send : receive);
                } catch (final NrtException ex) {
                    failure[0] = ex;
                }
                return failure[0] != null || size[0] != NetTransport.PENDING;
            });
            assertThat(failure[0] != null || size[0] == 16L * MIB).isTrue();
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"tcp;ofi_rxm", "shm", "sockets"})
    void whatWasSentBeforeTheTransportWasClosedArrives(final String provider) {
        for (final int length : new int[] {8, 4096, 60_000, 2 * MIB}) {
            try (FabricPair pair = new FabricPair(provider);
                NrtTensor source = NrtTensor.allocate(2 * MIB);
                NrtTensor target = NrtTensor.allocate(2 * MIB)) {
                final FabricPair.Link link = FabricPair.link(pair.left, pair.right);
                final long from = register(pair.left, link.send(), source);
                final long to = register(pair.right, link.recv(), target);
                source.write(0, pattern(length, 2 * MIB));
                final long receive = irecv(link, target, 0, length, to);
                final long send = isend(link, source, 0, length, from);
                assertThat(complete(link, pair.left, send)).isEqualTo(length);
                pair.left.closeSend(link.send());
                pair.left.close();
                FabricPair.await("the receive", () -> pair.right.test(receive) == length);
                assertThat(target.read(0, length)).isEqualTo(source.read(0, length));
            }
        }
    }
}
