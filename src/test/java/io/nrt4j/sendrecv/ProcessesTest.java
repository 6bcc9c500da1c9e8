package io.nrt4j.sendrecv;

import static org.assertj.core.api.Assertions.assertThat;

import io.nrt4j.NrtConfig;
import io.nrt4j.NrtStatus;
import io.nrt4j.NrtTensor;
import io.nrt4j.testing.Await;
import io.nrt4j.testing.ChildJvm;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Processes that end without closing, and processes whose key-value server's process is killed. */
@Tag("slow")
class ProcessesTest {
    private static final Duration LIMIT = Duration.ofSeconds(20);

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
            check(a.init(lnc), a);
            check(b.init(lnc + 1), b);
            System.out.println("initialised");
            if (args[2].equals("serve")) {
                Thread.currentThread().join();
            }
            if (args[2].equals("rounds")) {
                connectForEver(a, b, lnc);
            }
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

        /** Connects one pair after the other, and says so. */
        private static void connectForEver(final NrtAsyncSendRecv a, final NrtAsyncSendRecv b, final int lnc) {
            for (int round = 0; ; round++) {
                final EngineRig.Pair pair = EngineRig.begin(a, lnc, b, lnc + 1);
                EngineRig.awaitConnected(a, pair.send());
                EngineRig.awaitConnected(b, pair.recv());
                System.out.println("round " + round);
                if (round % 100 == 99) {
                    a.close();
                    b.close();
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
        final long startNs = System.nanoTime();
        if (how.equals("term")) {
            child.terminate();
        }
        assertThat(child.exitCode(LIMIT)).isEqualTo(code);
        assertThat(Duration.ofNanos(System.nanoTime() - startNs)).isLessThan(Duration.ofSeconds(5));
    }

    /** Two processes connect pairs without end; the one that serves the store is killed, again and again. */
    @Test
    void whenTheLeaderIsKilledTheOthersGoOnConnecting() {
        ChildJvm leader = child("serve", "0");
        leader.awaitLine("initialised", LIMIT);
        final ChildJvm second = child("rounds", "10");
        final ChildJvm third = child("rounds", "20");
        second.awaitLine("round 5", LIMIT);
        third.awaitLine("round 5", LIMIT);
        leader.kill();
        final long killedNs = System.nanoTime();
        final int secondRound = lastRound(second);
        final int thirdRound = lastRound(third);
        Await.until(LIMIT, () -> second.lines() + "\n" + third.lines(),
            () -> lastRound(second) > secondRound + 2 && lastRound(third) > thirdRound + 2);
        assertThat(Duration.ofNanos(System.nanoTime() - killedNs)).isLessThan(Duration.ofSeconds(4));
        leader = child("rounds", "30");
        leader.awaitLine("round 5", LIMIT);
    }

    private static int lastRound(final ChildJvm child) {
        return child.lines().stream().filter(line -> line.startsWith("round "))
            .mapToInt(line -> Integer.parseInt(line.substring("round ".length()))).max().orElse(-1);
    }
}
