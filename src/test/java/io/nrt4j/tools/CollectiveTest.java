package io.nrt4j.tools;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.nrt4j.NrtConfig;
import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.net.loopback.FaultPlan;
import io.nrt4j.net.loopback.FaultPlan.Operation;
import io.nrt4j.net.loopback.LoopbackTransport;
import io.nrt4j.proxy.SharedProxyQueues;
import io.nrt4j.testing.Stopwatch;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/** Collectives over loopback, all ranks in one process, driven by the proxy driver alone; every byte is checked by the command. */
@Timeout(value = 200, unit = TimeUnit.SECONDS)
class CollectiveTest {
    private static final Duration LIMIT = Duration.ofSeconds(60);

    @TempDir
    private Path folder;

    private final ConcurrentLinkedQueue<LoopbackTransport> transports = new ConcurrentLinkedQueue<>();

    private static byte[] bytes(final int size) {
        final byte[] bytes = new byte[size];
        new Random(size).nextBytes(bytes);
        return bytes;
    }

    private Path file(final int size) throws Exception {
        return Files.write(folder.resolve("data"), bytes(size));
    }

    private CollectiveJob job(
        final CollectiveKind kind, final int size, final int iterations, final SharedProxyQueues registry, final FaultPlan[] plans,
        final String... settings) {
        final NrtConfig config = NrtConfig.builder(Map.of(), settings.length == 0 ? Map.of() : Map.of(settings[0], settings[1])).build();
        return new CollectiveJob(
            new CollectiveRank.Job(kind, plans.length, bytes(size), 1000, config, registry, Meeting.inMemory(), LIMIT), iterations,
            rank -> {
                final LoopbackTransport transport = new LoopbackTransport(plans[rank]);
                transports.add(transport);
                return transport;
            }, rank -> { });
    }

    private static FaultPlan[] plans(final int ranks) {
        final FaultPlan[] plans = new FaultPlan[ranks];
        Arrays.setAll(plans, i -> new FaultPlan());
        return plans;
    }

    private void assertNothingLeft(final SharedProxyQueues registry) {
        assertThat(registry.size()).as("proxy queues").isZero();
        assertThat(transports).isNotEmpty().allSatisfy(transport -> {
            assertThat(transport.openComms()).isZero();
            assertThat(transport.openListeners()).isZero();
            assertThat(transport.openRegistrations()).isZero();
            assertThat(transport.pendingConnects()).isZero();
        });
    }

    // ---- the command

    @Test
    void theCommandRunsBothOperationsOverFourRanks() throws Exception {
        final CommandRun run = CommandRun.of("collective", "-i", "3", "--slice", "65536", "--transport", "loopback", file(1_000_003));
        assertThat(run.exitCode()).as(run.err()).isZero();
        assertThat(run.out()).contains("all-gather: 4 ranks in one process over loopback, 1000003 bytes, 3 times: median ")
            .contains("all-reduce: 4 ranks").contains("every byte right");
    }

    @ParameterizedTest
    @CsvSource({"2,1,1", "2,0,16", "3,2,16", "5,99999,1000", "8,4096,64", "7,100000,7919"})
    void anyNumberOfRanksAnySizeAnySlice(final int ranks, final int size, final int slice) throws Exception {
        final CommandRun run = CommandRun.of("collective", "-n", ranks, "-i", 2, "--slice", slice, "--transport", "loopback", file(size));
        assertThat(run.exitCode()).as(run.err()).isZero();
        assertThat(run.out()).contains("all-gather: " + ranks).contains("all-reduce: " + ranks);
    }

    @ParameterizedTest
    @CsvSource({"2,false", "4,false", "4,true"})
    void ranksMayShareAWorkerAndItMaySpin(final int ranksPerProxy, final boolean spin) throws Exception {
        final CommandRun run = spin
            ? CommandRun.of("collective", "--ranks-per-proxy", ranksPerProxy, "--spin", "--transport", "loopback", file(50_000))
            : CommandRun.of("collective", "--ranks-per-proxy", ranksPerProxy, "--transport", "loopback", file(50_000));
        assertThat(run.exitCode()).as(run.err()).isZero();
    }

    @Test
    void wrongUsageIsToldAsSuch() throws Exception {
        final Path file = file(10);
        final List<Object[]> wrong = List.of(
            new Object[] {"collective"},
            new Object[] {"collective", folder.resolve("missing")},
            new Object[] {"collective", "-n", 1, file},
            new Object[] {"collective", "-n", 65, file},
            new Object[] {"collective", "-i", 0, file},
            new Object[] {"collective", "--slice", 0, file},
            new Object[] {"collective", "--timeout", 0, file},
            new Object[] {"collective", "-o", "all-to-all", file},
            new Object[] {"collective", "--rank", 0, file},
            new Object[] {"collective", "--rendezvous", folder, file},
            new Object[] {"collective", "--rank", 4, "--rendezvous", folder, file});
        for (final Object[] args : wrong) {
            final CommandRun run = CommandRun.of(args);
            assertThat(run.exitCode()).as(Arrays.toString(args)).isEqualTo(Main.USAGE);
        }
        assertThat(CommandRun.of("collective", "--transport", "pigeon", file).exitCode()).isEqualTo(Main.FAILED);
    }

    @Test
    void aResultThatIsWrongIsNotCalledRight() {
        // What the check compares with must differ from what a rank begins with.
        final NrtConfig config = NrtConfig.builder(Map.of(), Map.of()).build();
        final SharedProxyQueues registry = new SharedProxyQueues();
        final CollectiveRank.Job job = new CollectiveRank.Job(CollectiveKind.ALL_REDUCE, 2, bytes(1000), 100, config, registry,
            Meeting.inMemory(), LIMIT);
        try (LoopbackTransport one = new LoopbackTransport(); LoopbackTransport other = new LoopbackTransport()) {
            final io.nrt4j.proxy.ProcessBarrier barrier = new io.nrt4j.proxy.ProcessBarrier(2);
            final Throwable[] peerFailure = new Throwable[1];
            final Thread peer = new Thread(() -> peerFailure[0] = catchThrowable(() -> {
                try (CollectiveRank rank = new CollectiveRank(job, 1, other, barrier.of(1), new RankGate(2, LIMIT))) {
                    rank.prepare();
                    assertThat(catchThrowable(rank::check)).hasMessageContaining("rank 1: all-reduce: byte 0 is ");
                }
            }));
            peer.start();
            try (CollectiveRank rank = new CollectiveRank(job, 0, one, barrier.of(0), new RankGate(2, LIMIT))) {
                rank.prepare();
                assertThat(catchThrowable(rank::check)).hasMessageContaining("byte ");
                peer.join();
            } catch (final InterruptedException ex) {
                Thread.currentThread().interrupt();
            }
            assertThat(peerFailure[0]).isNull();
        }
    }

    // ---- faults

    @ParameterizedTest
    @EnumSource(CollectiveKind.class)
    void whenTheThirdSliceFailsOnRankTwoEveryRankEndsWithAnError(final CollectiveKind kind) {
        final SharedProxyQueues registry = new SharedProxyQueues();
        final FaultPlan[] plans = plans(4);
        plans[2].fail(Operation.ISEND, 3, "the third slice");
        final Stopwatch watch = Stopwatch.start();
        final Throwable failure = catchThrowable(() -> job(kind, 40_000, 1, registry, plans).runAll());
        assertThat(watch.elapsed()).as("well before any time limit").isLessThan(Duration.ofSeconds(10));
        assertThat(failure).isInstanceOf(NrtException.class);
        assertThat(failure.getSuppressed()).as("the three other ranks").hasSize(3);
        final String all = failure.getMessage() + Arrays.toString(failure.getSuppressed());
        assertThat(all).contains("rank 0: " + kind).contains("rank 1: " + kind).contains("rank 2: " + kind).contains("rank 3: " + kind)
            .contains("send 3 of 10 to rank 3").contains("the third slice");
        final NrtStatus[] statuses = new NrtStatus[4];
        statuses[0] = ((NrtException) failure).status();
        for (int i = 0; i < 3; i++) {
            statuses[i + 1] = ((NrtException) failure.getSuppressed()[i]).status();
        }
        assertThat(statuses).doesNotContain(NrtStatus.SUCCESS, NrtStatus.TIMEOUT).contains(NrtStatus.NETWORK_PROXY_FAILURE);
        assertNothingLeft(registry);
    }

    @Test
    void roughTransportsChangeNothing() {
        final SharedProxyQueues registry = new SharedProxyQueues();
        final FaultPlan[] plans = plans(4);
        for (final FaultPlan plan : plans) {
            plan.notYet(Operation.CONNECT, 3).notYet(Operation.ACCEPT, 2).notYet(Operation.ISEND, 50).notYet(Operation.IRECV, 70)
                .completeAfterTests(Operation.ISEND, 5).completeAfterTests(Operation.IRECV, 3);
        }
        for (final CollectiveKind kind : CollectiveKind.values()) {
            assertThat(job(kind, 40_000, 3, registry, plans).runAll()).hasSize(3);
        }
        assertNothingLeft(registry);
    }

    /** Whenever it does: before the others connect to it, and when they are about to wait for it. */
    @RepeatedTest(20)
    void aRankThatCannotConnectEndsTheJobAndLeavesNothing() {
        final SharedProxyQueues registry = new SharedProxyQueues();
        final FaultPlan[] plans = plans(3);
        plans[1].failEvery(Operation.REG_MR, "no memory for you");
        final Stopwatch watch = Stopwatch.start();
        final Throwable failure = catchThrowable(() -> job(CollectiveKind.ALL_GATHER, 3000, 1, registry, plans).runAll());
        assertThat(watch.elapsed()).as("well before any time limit").isLessThan(Duration.ofSeconds(10));
        assertThat(failure.getMessage() + Arrays.toString(failure.getSuppressed())).contains("no memory for you");
        assertNothingLeft(registry);
    }

    @Test
    void aSecondRunUsesTheSameContexts() {
        final SharedProxyQueues registry = new SharedProxyQueues();
        assertThat(job(CollectiveKind.ALL_REDUCE, 12_345, 20, registry, plans(4), "NEURON_RT_RANKS_PER_NETWORK_PROXY", "2").runAll())
            .hasSize(20).doesNotContain(0);
        assertNothingLeft(registry);
    }
}
