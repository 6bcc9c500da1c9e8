package io.nrt4j.net.libfabric;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.NrtTensor;
import io.nrt4j.net.MemoryInUseException;
import io.nrt4j.net.NetTransport;
import io.nrt4j.testing.ChildJvm;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Two processes: data, death, standstill, exit, signals. */
@Tag("slow")
class TwoProcessTest {
    private static final int MIB = 1 << 20;
    private static final Duration LIMIT = Duration.ofSeconds(30);

    @BeforeAll
    static void libfabricIsThere() {
        FabricPair.assumeLibfabric();
    }

    /** A communicator to a child. */
    private record Channel(NetTransport transport, ChildJvm child, long comm, boolean sending) {
        long post(final NrtTensor tensor, final long registration, final long offset, final long length) {
            final long request = sending ? transport.isend(comm, tensor.address() + offset, length, registration)
                : transport.irecv(comm, tensor.address() + offset, length, registration);
            assertThat(request).isNotEqualTo(NetTransport.NOT_YET);
            return request;
        }
    }

    private static ChildJvm child(final String provider, final String... more) {
        final ChildJvm child = ChildJvm.start(List.of("-Xmx512m", "-XX:MaxDirectMemorySize=1g",
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"), FabricChild.class,
            Stream.concat(Stream.of(provider), Stream.of(more)).toArray(String[]::new));
        return child;
    }

    private static Channel sendTo(final NetTransport transport, final ChildJvm child) {
        child.send("listen");
        final byte[] handle = HexFormat.of().parseHex(child.awaitLine("handle ", LIMIT).substring("handle ".length()));
        final long[] comm = new long[1];
        FabricPair.await("the connection", () -> {
            comm[0] = transport.connect(0, handle);
            return comm[0] != 0;
        });
        child.awaitLine("accepted", LIMIT);
        return new Channel(transport, child, comm[0], true);
    }

    private static Channel receiveFrom(final NetTransport transport, final ChildJvm child) {
        final byte[] handle = new byte[NetTransport.HANDLE_BYTES];
        final long listen = transport.listen(0, handle);
        child.send("connect " + HexFormat.of().formatHex(handle));
        final long[] comm = new long[1];
        FabricPair.await("the connection", () -> {
            comm[0] = transport.accept(listen);
            return comm[0] != 0;
        });
        child.awaitLine("connected", LIMIT);
        transport.closeListen(listen);
        return new Channel(transport, child, comm[0], false);
    }

    @ParameterizedTest
    @CsvSource({"tcp;ofi_rxm,true", "tcp;ofi_rxm,false", "shm,true", "shm,false", "sockets,true", "sockets,false"})
    @Timeout(120)
    void aKilledPeerFailsAllItsRequestsAndNoOthers(final String provider, final boolean sending) {
        try (LibfabricTransport transport = new LibfabricTransport(FabricPair.config(provider));
            LibfabricTransport other = new LibfabricTransport(FabricPair.config(provider));
            ChildJvm child = child(provider);
            NrtTensor tensor = NrtTensor.allocate(128L * 16 * MIB)) {
            child.awaitLine("ready", LIMIT);
            final Channel channel = sending ? sendTo(transport, child) : receiveFrom(transport, child);
            final FabricPair.Link healthy = FabricPair.link(transport, other);
            final long registration = FabricPair.register(transport, channel.comm(), tensor);
            child.send((sending ? "recv" : "send") + " 16 " + 16 * MIB);
            child.awaitLine("posted", LIMIT);
            final List<Long> requests = new ArrayList<>();
            for (int i = 0; i < 128; i++) {
                requests.add(channel.post(tensor, registration, i * 16L * MIB, 16L * MIB));
            }
            for (int i = 0; i < 200; i++) {
                transport.progress();
            }
            child.kill();
            final long start = System.nanoTime();
            int failed = 0;
            while (!requests.isEmpty()) {
                for (int i = requests.size() - 1; i >= 0; i--) {
                    try {
                        if (transport.test(requests.get(i)) == NetTransport.PENDING) {
                            continue;
                        }
                    } catch (final NrtException ex) {
                        assertThat(ex).isNotInstanceOf(MemoryInUseException.class);
                        failed++;
                    }
                    requests.remove(i);
                }
                assertThat(Duration.ofNanos(System.nanoTime() - start)).as("%d requests left", requests.size())
                    .isLessThan(Duration.ofSeconds(2));
            }
            assertThat(failed).isGreaterThanOrEqualTo(112);
            try (NrtTensor small = NrtTensor.allocate(MIB); NrtTensor target = NrtTensor.allocate(MIB)) {
                final long from = FabricPair.register(transport, healthy.send(), small);
                final long to = FabricPair.register(other, healthy.recv(), target);
                for (final int length : new int[] {8, MIB}) {
                    final long receive = FabricPair.irecv(healthy, target, 0, length, to);
                    final long send = FabricPair.isend(healthy, small, 0, length, from);
                    assertThat(FabricPair.complete(healthy, other, receive)).isEqualTo(length);
                    assertThat(FabricPair.complete(healthy, transport, send)).isEqualTo(length);
                }
            }
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"tcp;ofi_rxm", "shm", "sockets"})
    @Timeout(150)
    void aPeerThatStandsStillFailsNothing(final String provider) {
        final long stillNs = Duration.ofSeconds(Long.getLong("nrt4j.test.standstillSeconds", 4)).toNanos();
        final int count = 32;
        final int length = 4 * MIB;
        try (LibfabricTransport transport = new LibfabricTransport(FabricPair.config(provider));
            ChildJvm child = child(provider);
            NrtTensor tensor = NrtTensor.allocate((long) count * length)) {
            child.awaitLine("ready", LIMIT);
            final Channel channel = sendTo(transport, child);
            final byte[] data = new byte[count * length];
            FabricChild.fill(data);
            tensor.write(0, data);
            final long registration = FabricPair.register(transport, channel.comm(), tensor);
            final List<Long> requests = new ArrayList<>();
            for (int i = 0; i < count; i++) {
                requests.add(channel.post(tensor, registration, (long) i * length, length));
            }
            child.send("recv " + count + " " + length);
            child.awaitLine("posted", LIMIT);
            child.freeze();
            final long start = System.nanoTime();
            // On a thread of its own: over shm, a process that stands still may hold a lock that the provider spins on.
            final Thread thaw = new Thread(() -> {
                java.util.concurrent.locks.LockSupport.parkNanos(stillNs);
                child.thaw();
            });
            thaw.start();
            while (!requests.isEmpty()) {
                requests.removeIf(request -> transport.test(request) != NetTransport.PENDING);
                assertThat(Duration.ofNanos(System.nanoTime() - start - stillNs)).isLessThan(LIMIT);
            }
            assertThat(join(thaw)).isTrue();
            child.awaitLine("done " + count + " failed 0", LIMIT);
            child.send("sum");
            assertThat(child.awaitLine("sum", LIMIT)).isEqualTo("sum " + java.util.Arrays.hashCode(data));
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"tcp;ofi_rxm", "shm"})
    @Timeout(120)
    void requestsToAKilledPeerThatNobodyTestsKeepNobodyAwake(final String provider) {
        final int length = 16 * MIB;
        try (LibfabricTransport transport = new LibfabricTransport(FabricPair.config(provider));
            ChildJvm child = child(provider);
            NrtTensor tensor = NrtTensor.allocate(length)) {
            child.awaitLine("ready", LIMIT);
            final Channel channel = sendTo(transport, child);
            final long registration = FabricPair.register(transport, channel.comm(), tensor);
            child.send("recv 16 " + length);
            child.awaitLine("posted", LIMIT);
            for (int i = 0; i < 32; i++) {
                channel.post(tensor, registration, 0, length);
            }
            child.kill();
            FabricPair.await("nothing to do", () -> {
                transport.progress();
                return !transport.needsProgress();
            });
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"tcp;ofi_rxm", "sockets"})
    @Timeout(120)
    void closingTowardsAPeerThatStandsStillIsBoundedAndTellsWhoseMemoryIsNotOurs(final String provider) {
        final int count = 16;
        final int length = 64 * MIB;
        try (LibfabricTransport transport = new LibfabricTransport(FabricPair.config(provider));
            ChildJvm child = child(provider);
            NrtTensor tensor = NrtTensor.allocate(length)) {
            child.awaitLine("ready", LIMIT);
            final Channel channel = sendTo(transport, child);
            final long registration = FabricPair.register(transport, channel.comm(), tensor);
            child.send("recv " + count + " " + length);
            child.awaitLine("posted", LIMIT);
            final long first = channel.post(tensor, registration, 0, length);
            FabricPair.await("the first of them", () -> transport.test(first) != NetTransport.PENDING);
            child.freeze();
            for (int i = 1; i < count; i++) {
                channel.post(tensor, registration, 0, length); // its receive is announced, so the provider has it
            }
            assertThat(transport.engine().operations(OpTable.DIRECT_SEND)).isPositive();
            final long start = System.nanoTime();
            assertThatThrownBy(() -> transport.closeSend(channel.comm())).isInstanceOfSatisfying(NrtException.class,
                ex -> assertThat(ex.status()).isEqualTo(NrtStatus.TIMEOUT)).hasMessageContaining("stands still");
            assertThat(Duration.ofNanos(System.nanoTime() - start)).isLessThan(Duration.ofSeconds(10));
            transport.closeSend(channel.comm()); // closed all the same
            child.thaw();
        }
    }

    private static boolean join(final Thread thread) {
        try {
            thread.join(LIMIT.toMillis() + Duration.ofMinutes(1).toMillis());
            return !thread.isAlive();
        } catch (final InterruptedException ex) {
            Thread.currentThread().interrupt();
            return false;
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"exit", "return", "SIGTERM"})
    void anOrderlyExitLeavesNoSharedMemoryNames(final String way) throws Exception {
        try (LibfabricTransport transport = new LibfabricTransport(FabricPair.config("shm"));
            ChildJvm child = child("shm")) {
            child.awaitLine("ready", LIMIT);
            final Channel channel = sendTo(transport, child);
            assertThat(namesOf(child.pid())).isNotEmpty();
            child.send("recv 4 " + MIB);
            child.awaitLine("posted", LIMIT);
            if ("SIGTERM".equals(way)) {
                child.terminate();
            } else {
                child.send(way);
            }
            // SIGTERM comes with the end of standard input, which also ends it: whichever is first.
            assertThat(child.exitCode(LIMIT)).isIn("SIGTERM".equals(way) ? List.of(0, 143) : List.of(0));
            assertThat(namesOf(child.pid())).as("%s", child.lines()).isEmpty();
            assertThat(channel.comm()).isNotZero();
        }
    }

    private static List<String> namesOf(final long pid) throws Exception {
        try (Stream<Path> files = Files.list(Path.of("/dev/shm"))) {
            return files.map(file -> file.getFileName().toString()).filter(name -> name.startsWith(pid + ":")).toList();
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"tcp;ofi_rxm", "shm", "sockets"})
    void theJvmKeepsItsSignals(final String provider) {
        for (final String compiler : new String[] {"-XX:TieredStopAtLevel=1", "-XX:TieredStopAtLevel=4"}) {
            try (ChildJvm child = ChildJvm.start(List.of(compiler), FabricChild.class, provider, "survive")) {
                assertThat(child.exitCode(LIMIT)).as("%s", child.lines()).isZero();
                child.awaitLine("loaded: 2000", LIMIT);
                child.awaitLine("opened libfabric: 2000", LIMIT);
                child.awaitLine("closed: 2000", LIMIT);
            }
        }
    }

    @Test
    @Timeout(120)
    void checkedJniFindsNothing() {
        for (final String provider : new String[] {"tcp;ofi_rxm", "shm"}) {
            try (LibfabricTransport transport = new LibfabricTransport(FabricPair.config(provider));
                ChildJvm child = ChildJvm.start(List.of("-Xcheck:jni", "-Xmx256m"), FabricChild.class, provider);
                NrtTensor tensor = NrtTensor.allocate(MIB)) {
                child.awaitLine("ready", LIMIT);
                final Channel channel = sendTo(transport, child);
                final long registration = FabricPair.register(transport, channel.comm(), tensor);
                for (final int length : new int[] {8, 4096, MIB}) {
                    child.send("recv 1 " + length);
                    child.awaitLine("posted", LIMIT);
                    final long request = channel.post(tensor, registration, 0, Math.min(length, 8));
                    FabricPair.await("a send", () -> transport.test(request) != NetTransport.PENDING);
                    child.awaitLine("done 1 failed 0", LIMIT);
                }
                child.send("exit");
                assertThat(child.exitCode(LIMIT)).isZero();
                // JNA's own start, before, is not free of them.
                final List<String> ours = child.lines().subList(child.lines().indexOf("ready"), child.lines().size());
                assertThat(ours).noneMatch(line -> line.contains("WARNING") || line.contains("FATAL"));
            }
        }
    }
}
