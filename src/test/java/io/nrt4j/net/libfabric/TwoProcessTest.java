package io.nrt4j.net.libfabric;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.NrtTensor;
import io.nrt4j.net.MemoryInUseException;
import io.nrt4j.net.NetTransport;
import io.nrt4j.testing.ChildJvm;
import io.nrt4j.testing.Stopwatch;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Two processes: data, death, standstill, exit, signals. */
@Tag("slow")
class TwoProcessTest {
    private static final int MIB = 1 << 20;
    private static final Duration LIMIT = Duration.ofSeconds(60);

    @BeforeAll
    static void libfabricIsThere() {
        FabricPair.assumeLibfabric();
    }

    private static ChildJvm child(final String provider) {
        return FabricChild.start(
            List.of("-Xmx512m", "-XX:MaxDirectMemorySize=1g", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"), provider);
    }

    @ParameterizedTest
    @CsvSource({"tcp;ofi_rxm,true", "tcp;ofi_rxm,false", "shm,true", "shm,false", "sockets,true", "sockets,false"})
    @Timeout(300)
    void aKilledPeerFailsAllItsRequestsAndNoOthers(final String provider, final boolean sending) {
        try (LibfabricTransport transport = new LibfabricTransport(FabricPair.config(provider));
            LibfabricTransport other = new LibfabricTransport(FabricPair.config(provider));
            ChildJvm child = child(provider);
            NrtTensor tensor = NrtTensor.allocate(128L * 16 * MIB)) {
            final ChildChannel channel = ChildChannel.open(transport, child, sending, tensor);
            final FabricPair.Link healthy = FabricPair.link(transport, other);
            channel.childPosts(16, 16 * MIB);
            final List<Long> requests = new ArrayList<>(channel.postEach(128, 16 * MIB));
            for (int i = 0; i < 200; i++) {
                transport.progress();
            }
            child.kill();
            final Stopwatch watch = Stopwatch.start();
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
                assertThat(watch.isOver(Duration.ofSeconds(2))).as("%d requests left after 2 s", requests.size()).isFalse();
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
    @Timeout(300)
    void aPeerThatStandsStillFailsNothing(final String provider) {
        final long stillNs = Duration.ofSeconds(Long.getLong("nrt4j.test.standstillSeconds", 4)).toNanos();
        final int count = 32;
        final int length = 4 * MIB;
        final byte[] data = new byte[count * length];
        FabricChild.fill(data);
        try (LibfabricTransport transport = new LibfabricTransport(FabricPair.config(provider));
            ChildJvm receiver = child(provider);
            ChildJvm sender = child(provider);
            NrtTensor source = NrtTensor.allocate(data.length);
            NrtTensor target = NrtTensor.allocate(data.length)) {
            source.write(0, data);
            final ChildChannel to = ChildChannel.open(transport, receiver, true, source);
            final ChildChannel from = ChildChannel.open(transport, sender, false, target);
            final List<Long> requests = new ArrayList<>(to.postEach(count, length));
            to.childPosts(count, length);
            from.childPosts(count, length);
            receiver.freeze();
            sender.freeze();
            requests.addAll(from.postEach(count, length));
            final long start = System.nanoTime();
            // On a thread of its own: over shm, a process that stands still may hold a lock that the provider spins on.
            final Thread thaw = new Thread(() -> {
                java.util.concurrent.locks.LockSupport.parkNanos(stillNs);
                receiver.thaw();
                sender.thaw();
            });
            thaw.start();
            while (!requests.isEmpty()) {
                requests.removeIf(request -> transport.test(request) != NetTransport.PENDING);
                assertThat(Duration.ofNanos(System.nanoTime() - start - stillNs)).isLessThan(LIMIT);
            }
            assertThat(join(thaw)).isTrue();
            receiver.awaitLine("done " + count + " failed 0", LIMIT);
            sender.awaitLine("done " + count + " failed 0", LIMIT);
            receiver.send("sum");
            assertThat(receiver.awaitLine("sum", LIMIT)).isEqualTo("sum " + java.util.Arrays.hashCode(data));
            assertThat(target.read(0, data.length)).isEqualTo(data);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"tcp;ofi_rxm", "shm"})
    @Timeout(300)
    void requestsToAKilledPeerThatNobodyTestsKeepNobodyAwake(final String provider) {
        final int length = 16 * MIB;
        try (LibfabricTransport transport = new LibfabricTransport(FabricPair.config(provider));
            ChildJvm child = child(provider);
            NrtTensor tensor = NrtTensor.allocate(length)) {
            final ChildChannel channel = ChildChannel.open(transport, child, true, tensor);
            channel.childPosts(16, length);
            for (int i = 0; i < 32; i++) {
                channel.post(0, length);
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
    @Timeout(300)
    void closingTowardsAPeerThatStandsStillIsBoundedAndTellsWhoseMemoryIsNotOurs(final String provider) {
        final int count = 16;
        final int length = 64 * MIB;
        try (LibfabricTransport transport = new LibfabricTransport(FabricPair.config(provider));
            ChildJvm child = child(provider);
            NrtTensor tensor = NrtTensor.allocate(length)) {
            final ChildChannel channel = ChildChannel.open(transport, child, true, tensor);
            channel.childPosts(count, length);
            final long first = channel.post(0, length);
            FabricPair.await("the first of them", () -> transport.test(first) != NetTransport.PENDING);
            child.freeze();
            for (int i = 1; i < count; i++) {
                channel.post(0, length); // its receive is announced, so the provider has it
            }
            assertThat(transport.engine().operations(OpTable.DIRECT_SEND)).isPositive();
            final Stopwatch watch = Stopwatch.start();
            assertThatThrownBy(() -> transport.closeSend(channel.comm())).isInstanceOfSatisfying(NrtException.class,
                ex -> assertThat(ex.status()).isEqualTo(NrtStatus.TIMEOUT)).hasMessageContaining("stands still");
            assertThat(watch.elapsed()).isLessThan(Duration.ofSeconds(10));
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
            ChildJvm child = child("shm"); NrtTensor tensor = NrtTensor.allocate(MIB)) {
            final ChildChannel channel = ChildChannel.open(transport, child, true, tensor);
            assertThat(namesOf(child.pid())).isNotEmpty();
            channel.childPosts(4, MIB);
            if ("SIGTERM".equals(way)) {
                child.terminate();
            } else {
                child.send(way);
            }
            // SIGTERM comes with the end of standard input, which also ends it: whichever is first.
            assertThat(child.exitCode(LIMIT)).isIn("SIGTERM".equals(way) ? List.of(0, 143) : List.of(0));
            assertThat(namesOf(child.pid())).as("%s", child.lines()).isEmpty();
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

    @ParameterizedTest
    @ValueSource(strings = {"tcp;ofi_rxm", "shm"})
    @Timeout(300)
    void checkedJniFindsNothing(final String provider) {
        final List<String> checked = List.of("-Xcheck:jni", "-Xmx256m");
        try (LibfabricTransport transport = new LibfabricTransport(FabricPair.config(provider));
            ChildJvm receiver = FabricChild.start(checked, provider);
            ChildJvm sender = FabricChild.start(checked, provider);
            NrtTensor tensor = NrtTensor.allocate(MIB)) {
            for (final ChildJvm child : List.of(receiver, sender)) {
                final ChildChannel channel = ChildChannel.open(transport, child, child == receiver, tensor);
                for (final int length : new int[] {8, 4096, MIB}) {
                    channel.childPosts(1, length);
                    final long request = channel.post(0, length);
                    FabricPair.await("a message", () -> transport.test(request) != NetTransport.PENDING);
                    child.awaitLine("done 1 failed 0", LIMIT);
                }
                channel.childPosts(1, MIB - 1);
                if (child == receiver) {
                    final long tooLong = channel.post(0, MIB);
                    assertThatThrownBy(() -> FabricPair.await("a failure", () -> transport.test(tooLong) != NetTransport.PENDING))
                        .hasMessageContaining("is longer than its receive");
                    child.awaitLine("done 0 failed 1", LIMIT);
                }
                child.send("exit");
                assertThat(child.exitCode(LIMIT)).isZero();
                // JNA's own start, before, is not free of them.
                final List<String> lines = child.lines();
                assertThat(lines).anyMatch(line -> line.startsWith("JNA is there"));
                assertThat(lines.stream().dropWhile(line -> !line.startsWith("JNA is there")))
                    .noneMatch(line -> line.contains("WARNING") || line.contains("FATAL"));
            }
        }
    }
}
