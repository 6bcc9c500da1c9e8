package io.nrt4j.sendrecv;

import static org.assertj.core.api.Assertions.assertThat;

import io.nrt4j.NrtConfig;
import io.nrt4j.NrtStatus;
import io.nrt4j.NrtTensor;
import io.nrt4j.testing.Await;
import io.nrt4j.testing.ChildJvm;
import io.nrt4j.testing.Listeners;
import io.nrt4j.testing.Stopwatch;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Processes that end without closing, and processes whose key-value server's process is killed. */
@Tag("slow")
class ProcessesTest {
    private static final Duration LIMIT = Duration.ofSeconds(20);
    private static final int PROCESSES = 3;
    private static final int KILLS = 5;
    private static final long LOOK_PAUSE_NS = TimeUnit.MILLISECONDS.toNanos(30);

    private final EngineRig rig = new EngineRig();
    private final List<ChildJvm> children = new ArrayList<>();

    @AfterEach
    void closeAll() {
        children.forEach(ChildJvm::close);
        rig.close();
    }

    private ChildJvm child(final String... arguments) {
        final List<String> all = new ArrayList<>(List.of(Integer.toString(rig.port()), rig.lockFolder().toString()));
        all.addAll(List.of(arguments));
        final ChildJvm child = ChildJvm.start(Child.class, all.toArray(String[]::new));
        children.add(child);
        return child;
    }

    /** Its own pair in one process: instances that connect LNC first and first + 1, and 64 requests in flight. */
    public static final class Child {
        private Child() {
        }

        /**
         * Runs the child.
         *
         * @param args port, lock folder, how to end, first LNC.
         */
        public static void main(final String[] args) throws InterruptedException {
            final NrtConfig config = NrtConfig.builder(Map.of(), Map.of()).asyncSendRecvEnabled(true)
                .bootstrapPort(Integer.parseInt(args[0])).kvLockDirectory(Path.of(args[1])).kvBindAddress("127.0.0.1").build();
            final int lnc = Integer.parseInt(args[3]);
            final NrtAsyncSendRecv a = new NrtAsyncSendRecv(config);
            final NrtAsyncSendRecv b = new NrtAsyncSendRecv(config);
            if (args[2].equals("rounds")) {
                connectForEver(config, a, b, lnc);
            }
            check(a.init(lnc), a);
            check(b.init(lnc + 1), b);
            final EngineRig.Pair pair = EngineRig.connect(a, lnc, b, lnc + 1);
            final NrtTensor tensor = NrtTensor.allocate(64);
            for (int i = 0; i < 64; i++) {
                check(a.sendTensor(tensor, i, 1, pair.send(), new SendRecvRequest()), a);
            }
            System.out.println("64 in flight");
            switch (args[2]) {
                case "return" -> {
                    return;
                }
                case "exit" -> new Thread(() -> System.exit(7)).start();
                default -> {
                }
            }
            Thread.currentThread().join();
        }

        /**
         * Connects one pair after the other without a pause, and says when each was begun and connected, on the clock that all processes
         * of a Linux machine share. A third instance keeps the process in the election while the two start anew.
         */
        private static void connectForEver(
            final NrtConfig config, final NrtAsyncSendRecv a, final NrtAsyncSendRecv b, final int lnc) {
            final NrtAsyncSendRecv constant = new NrtAsyncSendRecv(config);
            check(constant.init(lnc + 2), constant);
            check(a.init(lnc), a);
            check(b.init(lnc + 1), b);
            for (int round = 0; ; round++) {
                final long begunNs = System.nanoTime();
                final EngineRig.Pair pair = EngineRig.begin(a, lnc, b, lnc + 1);
                EngineRig.awaitConnected(a, pair.send());
                EngineRig.awaitConnected(b, pair.recv());
                System.out.println("round " + round + " " + begunNs + " " + System.nanoTime());
                if (round % 100 == 99) {
                    check(a.close(lnc), a);
                    check(b.close(lnc + 1), b);
                    check(a.init(lnc), a);
                    check(b.init(lnc + 1), b);
                }
            }
        }

        private static void check(final NrtStatus status, final NrtAsyncSendRecv engine) {
            if (status != NrtStatus.SUCCESS) {
                throw new IllegalStateException(status + ": " + engine.lastError());
            }
        }
    }

    @ParameterizedTest
    @CsvSource({"return,0", "exit,7", "term,143"})
    void aProcessEndsWithinFiveSecondsWhateverIsInFlight(final String how, final int code) {
        final ChildJvm child = child(how, "0");
        child.awaitLine("64 in flight", LIMIT);
        final Stopwatch watch = Stopwatch.start();
        if (how.equals("term")) {
            child.terminate();
        }
        assertThat(child.exitCode(LIMIT)).isEqualTo(code);
        assertThat(watch.elapsed()).isLessThan(Duration.ofSeconds(5));
    }

    /** Three processes connect pairs without a pause; the one that serves the store is killed, and replaced, again and again. */
    @Test
    void whenTheLeaderIsKilledTheOthersGoOnConnectingWithinASecond() {
        final List<ChildJvm> running = new ArrayList<>();
        for (int i = 0; i < PROCESSES; i++) {
            running.add(rounds(i));
        }
        for (int kill = 0; kill < KILLS; kill++) {
            final ChildJvm leader = leader(running);
            running.remove(leader);
            leader.kill();
            final Stopwatch watch = Stopwatch.start();
            for (final ChildJvm survivor : running) {
                Await.until(LIMIT, () -> survivor.lines().toString(), () -> {
                    // What counts are the children's own times: they need the processors more than this look does.
                    LockSupport.parkNanos(LOOK_PAUSE_NS);
                    assertThat(Listeners.on(rig.port()).size()).as("listeners").isLessThanOrEqualTo(1);
                    return firstBegunAfter(survivor, watch.startNs()) != null;
                });
            }
            for (final ChildJvm survivor : running) {
                final Duration took = watch.elapsedUntil(firstBegunAfter(survivor, watch.startNs())[2]);
                System.out.println("kill " + kill + " of the server's process: a new pair " + took.toMillis() + " ms after");
                assertThat(took).as("kill %s: a new pair in process %s", kill, survivor.pid()).isLessThan(Duration.ofSeconds(1));
            }
            assertThat(leader(running)).as("who serves now").isIn(running);
            assertThat(leader.exitCode(LIMIT)).isEqualTo(137);
            running.add(rounds(PROCESSES + kill));
        }
    }

    private ChildJvm rounds(final int number) {
        final ChildJvm child = child("rounds", Integer.toString(10 * number));
        child.awaitLine("round 5", LIMIT);
        return child;
    }

    /** The process of which the one listener is; there is none for an instant when an instance that served begins anew. */
    private ChildJvm leader(final List<ChildJvm> running) {
        final ChildJvm[] leader = new ChildJvm[1];
        Await.until(LIMIT, () -> "no child listens on port " + rig.port(), () -> {
            final Set<String> listeners = Listeners.on(rig.port());
            assertThat(listeners.size()).as("listeners").isLessThanOrEqualTo(1);
            for (final ChildJvm child : running) {
                if (!listeners.isEmpty() && Listeners.isOf(child.pid(), listeners.iterator().next())) {
                    leader[0] = child;
                }
            }
            return leader[0] != null;
        });
        return leader[0];
    }

    /** Number, begin and end of the first pair that a process began after an instant and connected; null if there is none. */
    private static long[] firstBegunAfter(final ChildJvm child, final long instantNs) {
        return child.lines().stream().filter(line -> line.matches("round \\d+ -?\\d+ -?\\d+"))
            .map(line -> Stream.of(line.split(" ")).skip(1).mapToLong(Long::parseLong).toArray())
            .filter(round -> round[1] - instantNs > 0).findFirst().orElse(null);
    }
}
