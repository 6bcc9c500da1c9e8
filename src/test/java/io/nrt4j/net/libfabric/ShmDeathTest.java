package io.nrt4j.net.libfabric;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.NrtTensor;
import io.nrt4j.net.NetTransport;
import io.nrt4j.testing.Await;
import io.nrt4j.testing.ChildJvm;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** A process is killed over shm, and leaves a lock held on purpose: its own region's, or ours for it. */
@Tag("slow")
class ShmDeathTest {
    private static final Path SHM = Path.of("/dev/shm");
    private static final Duration LIMIT = Duration.ofSeconds(60);
    private static final int MIB = 1 << 20;
    private static final int COUNT = 128;
    /** Posted before the lock is held. */
    private static final int FIRST = 4;
    /** The first of them that are short: fewer than may run ahead of their receives. */
    private static final int SHORT = 8;
    /** Far longer than any call of ours holds a lock, and than the rescuer looks away. */
    private static final long STEADY_NS = TimeUnit.MILLISECONDS.toNanos(300);

    @BeforeAll
    static void libfabricIsThere() {
        FabricPair.assumeLibfabric();
    }

    /** Names of the regions that this process has mapped. */
    private static Set<String> mapped() throws IOException {
        final Set<String> names = new HashSet<>();
        for (final String line : Files.readAllLines(Path.of("/proc/self/maps"), StandardCharsets.ISO_8859_1)) {
            if (line.contains(" " + SHM + "/") && !line.endsWith("(deleted)")) {
                names.add(line.substring(line.indexOf(SHM + "/") + SHM.toString().length() + 1));
            }
        }
        return names;
    }

    private static List<String> namesOf(final long pid) throws IOException {
        try (Stream<Path> files = Files.list(SHM)) {
            return files.map(file -> file.getFileName().toString()).filter(name -> name.startsWith(pid + ":")).toList();
        }
    }

    /** A region's lock, as another process sees it. */
    private record Word(FileChannel channel, int offset) implements AutoCloseable {
        static Word of(final String region, final int offset) throws IOException {
            return new Word(FileChannel.open(SHM.resolve(region), StandardOpenOption.READ, StandardOpenOption.WRITE), offset);
        }

        int value() throws IOException {
            final ByteBuffer bytes = ByteBuffer.allocate(Integer.BYTES).order(ByteOrder.nativeOrder());
            channel.read(bytes, offset);
            return bytes.getInt(0);
        }

        void put(final int value) throws IOException {
            channel.write(ByteBuffer.allocate(Integer.BYTES).order(ByteOrder.nativeOrder()).putInt(0, value), offset);
        }

        /**
         * As by a peer that put something into the region: libfabric 1.17 looks into its own only when the word behind the lock
         * says so; later versions have padding there, and always look.
         */
        void signal() throws IOException {
            channel.write(ByteBuffer.allocate(Integer.BYTES).order(ByteOrder.nativeOrder()).putInt(0, 1), offset + Integer.BYTES);
        }

        /** Holds it, although one of our own calls may be giving it back at that moment. The child stands still. */
        void hold() throws IOException {
            final long deadlineNs = System.nanoTime() + LIMIT.toNanos();
            long sinceNs = System.nanoTime() - STEADY_NS;
            put(0);
            while (sinceNs == 0 || System.nanoTime() - sinceNs < STEADY_NS) {
                if (value() > 0) {
                    put(0);
                    sinceNs = System.nanoTime();
                }
                assertThat(System.nanoTime() - deadlineNs).isNegative();
                Thread.onSpinWait();
            }
        }

        @Override
        public void close() throws IOException {
            try (channel) {
                put(1);
            }
        }
    }

    /**
     * The survivor: posts some of its requests, the others when it is told to, and tests them all until each has its outcome.
     * Written by its thread, read by the test's: {@code posted}, {@code rounds} and {@code outcome}, all volatile.
     */
    private static final class Survivor extends Thread {
        private final ChildChannel channel;
        private final CountDownLatch go = new CountDownLatch(1);
        private final List<Long> requests = new ArrayList<>();
        private int failed;
        private volatile int posted;
        private volatile long rounds;
        private volatile String outcome;

        Survivor(final ChildChannel channel) {
            this.channel = channel;
            setDaemon(true);
        }

        @Override
        public void run() {
            try {
                post(0, FIRST);
                final long first = requests.get(0);
                while (go.getCount() > 0) {
                    requests.removeIf(this::resolved); // it may hang here already, and learn of the death
                    rounds++;
                }
                post(FIRST, COUNT);
                while (!requests.isEmpty()) {
                    requests.removeIf(this::resolved);
                    rounds++;
                }
                assertThatThrownBy(() -> channel.transport().test(first)).as("a slot comes back once")
                    .isInstanceOfSatisfying(NrtException.class, ex -> assertThat(ex.status()).isEqualTo(NrtStatus.INVALID_HANDLE));
                outcome = failed + " failed";
            } catch (final NrtException | AssertionError ex) {
                outcome = ex.toString();
            }
        }

        /** The short ones go to the peer at once, as messages or as announcements of receives. */
        private void post(final int from, final int to) {
            for (int i = from; i < to; i++) {
                try {
                    requests.add(channel.post((long) i * MIB, i < SHORT ? 8 : MIB));
                } catch (final NrtException ex) {
                    failed++; // the communicator has failed meanwhile
                }
                posted++;
            }
        }

        private boolean resolved(final long request) {
            try {
                return channel.transport().test(request) != NetTransport.PENDING;
            } catch (final NrtException ex) {
                failed++;
                return true;
            }
        }

        /** Whether it neither posts nor tests for a while. */
        boolean hangs() {
            final long before = rounds + posted;
            LockSupport.parkNanos(STEADY_NS);
            return outcome == null && rounds + posted == before;
        }
    }

    @ParameterizedTest
    @CsvSource({"peer,true", "peer,false", "own,true", "own,false"})
    @Timeout(200)
    void aProcessThatIsKilledWithALockFailsItsOwnRequestsOnly(final String whose, final boolean sending) throws Exception {
        try (NrtTensor tensor = NrtTensor.allocate(COUNT * (long) MIB);
            LibfabricTransport transport = new LibfabricTransport(FabricPair.config("shm"));
            LibfabricTransport other = new LibfabricTransport(FabricPair.config("shm"));
            ChildJvm child = FabricChild.start(List.of("-Xmx256m"), "shm")) {
            final FabricPair.Link healthy = FabricPair.link(transport, other);
            final Set<String> before = mapped();
            final ChildChannel channel = ChildChannel.open(transport, child, sending, tensor);
            final Set<String> regions = mapped();
            regions.removeAll(before);
            final Survivor survivor = new Survivor(channel);
            survivor.start();
            kill(child, lockOf(whose, regions), survivor);
            assertThat(namesOf(child.pid())).as("names of the dead, or of a process that has its number").isEmpty();
            roundTrip(healthy);
            roundTrip(FabricPair.link(transport, other));
        }
    }

    /** The lock of our own region for the child, or of the child's for us. */
    private static Word lockOf(final String whose, final Set<String> regions) throws IOException {
        final String mine = ProcessHandle.current().pid() + ":";
        final String own = regions.stream().filter(name -> name.startsWith(mine)).findAny().orElseThrow();
        final String peers = regions.stream().filter(name -> !name.startsWith(mine)).findAny().orElseThrow();
        assertThat(regions).containsExactlyInAnyOrder(own, peers);
        final ShmRegion region = new ShmRegion(SHM.resolve(own), ProcessHandle.current().pid());
        final int[] offset = new int[1];
        Await.until(LIMIT, "a free lock", () -> {
            offset[0] = region.lockOffset(Path.of("/proc"));
            return offset[0] > 0;
        });
        return Word.of("own".equals(whose) ? own : peers, offset[0]);
    }

    private static void kill(final ChildJvm child, final Word lock, final Survivor survivor) throws IOException {
        try (Word word = lock) { // without rescue its close lets the others go on
            Await.until(LIMIT, "requests in flight", () -> survivor.posted == FIRST && survivor.rounds > 0);
            child.freeze();
            word.hold();
            survivor.go.countDown();
            Await.until(LIMIT, "a survivor that hangs", () -> {
                word.signal();
                final boolean hangs = survivor.hangs();
                if (word.value() > 0) { // by a call of ours that stood still for longer than we looked
                    word.put(0);
                    return false;
                }
                return hangs;
            });
            assertThat(word.value()).as("the lock of a peer that lives").isNotPositive();
            child.kill();
            Await.until(Duration.ofSeconds(2), () -> survivor.posted + " requests, outcome " + survivor.outcome,
                () -> survivor.outcome != null);
            assertThat(survivor.outcome).isEqualTo(COUNT + " failed");
            assertThat(word.value()).isEqualTo(1);
            Await.until(LIMIT, "an end of its names", () -> namesOf(child.pid()).isEmpty());
        }
    }

    @Test
    void namesLeftByAnEarlierProcessWithOurNumberDisturbNobody() throws IOException {
        // As the provider would name its endpoints: process, user, number.
        final Object user = Files.getAttribute(Path.of("/proc/self"), "unix:uid");
        final List<Path> left = new ArrayList<>();
        try {
            for (int i = 0; i < 1000; i++) {
                final Path file = SHM.resolve(ProcessHandle.current().pid() + ":" + user + ":" + i);
                if (!Files.exists(file)) {
                    Files.write(file, new byte[4096]);
                    left.add(file);
                }
            }
            try (FabricPair pair = new FabricPair("shm")) {
                roundTrip(FabricPair.link(pair.left, pair.right));
            }
            assertThat(left).allSatisfy(file -> assertThat(file).exists());
        } finally {
            for (final Path file : left) {
                Files.deleteIfExists(file);
            }
        }
    }

    private static void roundTrip(final FabricPair.Link link) {
        try (NrtTensor source = NrtTensor.allocate(MIB); NrtTensor target = NrtTensor.allocate(MIB)) {
            final long from = FabricPair.register(link.sender(), link.send(), source);
            final long to = FabricPair.register(link.receiver(), link.recv(), target);
            for (final int length : new int[] {8, MIB}) {
                final long receive = FabricPair.irecv(link, target, 0, length, to);
                final long send = FabricPair.isend(link, source, 0, length, from);
                assertThat(FabricPair.complete(link, link.receiver(), receive)).isEqualTo(length);
                assertThat(FabricPair.complete(link, link.sender(), send)).isEqualTo(length);
            }
        }
    }
}
