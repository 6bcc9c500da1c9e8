package io.nrt4j.net.libfabric;

import static io.nrt4j.net.libfabric.FabricPair.complete;
import static io.nrt4j.net.libfabric.FabricPair.failure;
import static io.nrt4j.net.libfabric.FabricPair.irecv;
import static io.nrt4j.net.libfabric.FabricPair.isend;
import static io.nrt4j.net.libfabric.FabricPair.register;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.NrtTensor;
import io.nrt4j.net.NetTransport;
import io.nrt4j.testing.FileLimit;
import io.nrt4j.testing.FreePorts;
import io.nrt4j.testing.Stopwatch;
import java.lang.reflect.Field;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.nio.channels.Selector;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.stream.Stream;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Limits, strangers, many communicators, big messages. */
@Tag("slow")
class FabricFaultTest {
    private static final int MIB = 1 << 20;

    @BeforeAll
    static void libfabricIsThere() {
        FabricPair.assumeLibfabric();
    }

    private static void assertWorks(final FabricPair.Link link) {
        try (NrtTensor source = NrtTensor.allocate(MIB); NrtTensor target = NrtTensor.allocate(MIB)) {
            final byte[] data = new byte[MIB];
            new Random(5).nextBytes(data);
            source.write(0, data);
            final long from = register(link.sender(), link.send(), source);
            final long to = register(link.receiver(), link.recv(), target);
            for (final int length : new int[] {100, MIB}) {
                final long receive = irecv(link, target, 0, length, to);
                final long send = isend(link, source, 0, length, from);
                assertThat(complete(link, link.receiver(), receive)).isEqualTo(length);
                assertThat(complete(link, link.sender(), send)).isEqualTo(length);
            }
            assertThat(target.read(0, MIB)).isEqualTo(data);
            link.sender().deregMr(link.send(), from);
            link.receiver().deregMr(link.recv(), to);
        }
    }

    private static void connectUntilItFails(final NetTransport transport, final byte[] handle) {
        FabricPair.await("the end of the connect", () -> transport.connect(0, handle) != NetTransport.NOT_YET);
    }

    private static byte[] handleOf(final InetSocketAddress address) {
        final byte[] handle = new byte[NetTransport.HANDLE_BYTES];
        new ListenHandle(77, 1, address).write(handle);
        return handle;
    }

    @Test
    void aDeadAndAForeignListenerFailFast() throws Exception {
        try (LibfabricTransport transport = new LibfabricTransport(FabricPair.config("tcp;ofi_rxm"))) {
            final InetAddress here = InetAddress.getByName("127.0.0.1");
            final int port;
            try (ServerSocket foreign = new ServerSocket(0, 5, here)) {
                port = foreign.getLocalPort();
                final Thread answer = new Thread(() -> {
                    try (java.net.Socket socket = foreign.accept()) {
                        socket.getOutputStream().write("HTTP/1.1 400 Bad Request\r\n\r\n"
                            .getBytes(java.nio.charset.StandardCharsets.US_ASCII));
                        socket.getInputStream().readAllBytes();
                    } catch (final java.io.IOException ex) {
                        // the transport hung up, as it should
                    }
                });
                answer.start();
                try (LibfabricTransport local = new LibfabricTransport(io.nrt4j.NrtConfig.builder()
                    .set(io.nrt4j.NrtSetting.LIBFABRIC_ADDRESS, "127.0.0.1").build())) {
                    assertThatThrownBy(() -> connectUntilItFails(local, handleOf(new InetSocketAddress(here, port))))
                        .isInstanceOfSatisfying(NrtException.class, ex -> assertThat(ex.status()).isEqualTo(NrtStatus.CLOSED))
                        .hasMessageContaining("foreign");
                    answer.join(10_000);
                }
            }
            final byte[] dead = handleOf(new InetSocketAddress(selfAddress(transport), FreePorts.next()));
            final Stopwatch watch = Stopwatch.start();
            assertThatThrownBy(() -> connectUntilItFails(transport, dead))
                .isInstanceOfSatisfying(NrtException.class, ex -> assertThat(ex.status()).isEqualTo(NrtStatus.CLOSED));
            assertThat(watch.elapsed()).isLessThan(Duration.ofSeconds(3));
        }
    }

    @Test
    void aPeerOverAnotherProviderIsToldAtOnceAndNotTakenForAStaleHandle() {
        try (LibfabricTransport mine = new LibfabricTransport(FabricPair.config("tcp;ofi_rxm"));
            LibfabricTransport other = new LibfabricTransport(FabricPair.config("sockets"))) {
            final byte[] handle = new byte[NetTransport.HANDLE_BYTES];
            other.listen(0, handle);
            assertThatThrownBy(() -> connectUntilItFails(mine, handle))
                .isInstanceOfSatisfying(NrtException.class, ex -> assertThat(ex.status()).isEqualTo(NrtStatus.FAILURE))
                .hasMessageContaining("it uses sockets").hasMessageContaining("not tcp;ofi_rxm");
        }
    }

    @Test
    void withoutItsControlThreadATransportSaysSoAtOnce() throws Exception {
        try (FabricPair pair = new FabricPair("tcp;ofi_rxm"); NrtTensor target = NrtTensor.allocate(8)) {
            final FabricPair.Link link = FabricPair.link(pair.left, pair.right);
            final long receive = irecv(link, target, 0, 8, register(pair.right, link.recv(), target));
            final Object controlThread = controlThread(pair.right);
            ((Selector) field(controlThread, "selector")).close();
            ((Thread) field(controlThread, "thread")).join(FabricPair.LIMIT.toMillis());
            assertThat(((Thread) field(controlThread, "thread")).isAlive()).isFalse();
            assertThat(failure(link, pair.right, receive)).hasMessageContaining("its control thread failed");
            for (final ThrowingCallable call : List.<ThrowingCallable>of(
                () -> pair.right.listen(0, new byte[NetTransport.HANDLE_BYTES]),
                () -> pair.right.connect(0, new byte[NetTransport.HANDLE_BYTES]))) {
                assertThatThrownBy(call)
                    .isInstanceOfSatisfying(NrtException.class, ex -> assertThat(ex.status()).isEqualTo(NrtStatus.FAILURE))
                    .hasMessageContaining("its control thread failed");
            }
        }
    }

    private static Object controlThread(final LibfabricTransport transport) {
        return field(field(transport, "control"), "thread");
    }

    private static Object field(final Object owner, final String name) {
        try {
            final Field field = owner.getClass().getDeclaredField(name);
            field.setAccessible(true);
            return field.get(owner);
        } catch (final ReflectiveOperationException ex) {
            throw new AssertionError(ex);
        }
    }

    private static InetAddress selfAddress(final LibfabricTransport transport) {
        final byte[] handle = new byte[NetTransport.HANDLE_BYTES];
        transport.closeListen(transport.listen(0, handle));
        return ListenHandle.read(handle).control().getAddress();
    }

    @ParameterizedTest
    @ValueSource(strings = {"tcp;ofi_rxm", "shm"})
    void manyCommunicatorsShareOneEndpoint(final String provider) {
        try (FabricPair pair = new FabricPair(provider)) {
            final List<FabricPair.Link> links = new ArrayList<>();
            final long before = openFiles();
            for (int i = 0; i < 160; i++) {
                links.add(i % 2 == 0 ? FabricPair.link(pair.left, pair.right) : FabricPair.link(pair.right, pair.left));
            }
            assertThat(openFiles() - before).isLessThan(30);
            links.forEach(FabricFaultTest::assertWorks);
            links.forEach(FabricPair.Link::close);
        }
    }

    private static long openFiles() {
        try (Stream<Path> files = Files.list(Path.of("/proc/self/fd"))) {
            return files.count();
        } catch (final java.io.IOException ex) {
            throw new java.io.UncheckedIOException(ex);
        }
    }

    /** The other side of {@link FabricFileLimitTest}: here it is the peer that has no descriptor, and cannot even say so. */
    @Test
    void whoCannotBeAcceptedForWantOfADescriptorIsAcceptedWhenThereIsOneAgain() {
        try (FabricPair pair = new FabricPair("tcp;ofi_rxm");
            LibfabricTransport starved = new LibfabricTransport(FabricPair.config("tcp;ofi_rxm"))) {
            final FabricPair.Link first = FabricPair.link(pair.left, pair.right);
            final byte[] handle = new byte[NetTransport.HANDLE_BYTES];
            final long listen = starved.listen(0, handle);
            FileLimit.whileOnly(1, () -> {
                assertThat(pair.left.connect(0, handle)).isEqualTo(NetTransport.NOT_YET); // with the last one
                FabricPair.await("an accept that fails", () -> (boolean) field(controlThread(starved), "acceptPaused"));
                assertThat(pair.left.connect(0, handle)).isEqualTo(NetTransport.NOT_YET);
                assertWorks(first);
            }, FabricFaultTest.class, LibfabricTransport.class);
            assertWorks(FabricPair.link(pair.left, handle, starved, listen));
            assertWorks(first);
        }
    }

    @Test
    void moreThanTwoGibibytesInOneMessage() {
        final long length = (1L << 31) + 4097;
        try (FabricPair pair = new FabricPair("shm"); NrtTensor source = NrtTensor.allocate(length);
            NrtTensor target = NrtTensor.allocate(length)) {
            final FabricPair.Link link = FabricPair.link(pair.left, pair.right);
            final long from = register(pair.left, link.send(), source);
            final long to = register(pair.right, link.recv(), target);
            source.write(0, new byte[] {1, 2, 3});
            source.write(length - 3, new byte[] {4, 5, 6});
            final long receive = irecv(link, target, 0, length, to);
            final long send = isend(link, source, 0, length, from);
            assertThat(complete(link, pair.right, receive)).isEqualTo(length);
            assertThat(complete(link, pair.left, send)).isEqualTo(length);
            assertThat(target.read(0, 3)).containsExactly(1, 2, 3);
            assertThat(target.read(length - 3, 3)).containsExactly(4, 5, 6);
            // A short message from beyond the first window of a registration.
            final long small = irecv(link, target, 0, 8, to);
            final long smallSend = isend(link, source, length - 8, 8, from);
            assertThat(complete(link, pair.right, small)).isEqualTo(8);
            assertThat(complete(link, pair.left, smallSend)).isEqualTo(8);
            assertThat(target.read(5, 3)).containsExactly(4, 5, 6);
        }
    }

    /** More long receives than a provider's queue holds, served in the opposite order of their communicators. */
    @ParameterizedTest
    @ValueSource(strings = {"shm", "sockets"})
    void moreLongReceivesThanTheQueueHolds(final String provider) {
        final int comms = 12;
        final int count = 128;
        final int length = 20_000;
        try (FabricPair pair = new FabricPair(provider); NrtTensor source = NrtTensor.allocate(length);
            NrtTensor target = NrtTensor.allocate(length)) {
            final List<FabricPair.Link> links = new ArrayList<>();
            final List<long[]> receives = new ArrayList<>();
            for (int c = 0; c < comms; c++) {
                final FabricPair.Link link = FabricPair.link(pair.left, pair.right);
                links.add(link);
                final long to = register(pair.right, link.recv(), target);
                final long[] requests = new long[count];
                for (int i = 0; i < count; i++) {
                    requests[i] = irecv(link, target, 0, length, to);
                }
                receives.add(requests);
            }
            for (int c = comms - 1; c >= 0; c--) {
                final FabricPair.Link link = links.get(c);
                final long from = register(pair.left, link.send(), source);
                for (int i = 0; i < count; i++) {
                    final long send = isend(link, source, 0, length - i, from);
                    assertThat(complete(link, pair.right, receives.get(c)[i])).isEqualTo(length - i);
                    assertThat(complete(link, pair.left, send)).isEqualTo(length - i);
                }
            }
        }
    }
}
