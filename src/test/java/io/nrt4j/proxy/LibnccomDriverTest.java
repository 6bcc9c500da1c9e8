package io.nrt4j.proxy;

import static org.assertj.core.api.Assertions.assertThat;

import io.nrt4j.NrtConfig;
import io.nrt4j.NrtSetting;
import io.nrt4j.NrtStatus;
import io.nrt4j.net.libnccom.NccomStandIn;
import io.nrt4j.net.libnccom.StandInGuard;
import io.nrt4j.testing.ChildJvm;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;

/** The proxy driver over libnccom, played by the stand-in: a ring all-gather, in one process and in several. */
@ExtendWith(StandInGuard.class)
@Timeout(value = 300, unit = TimeUnit.SECONDS)
class LibnccomDriverTest {
    private static final Duration LIMIT = Duration.ofSeconds(120);
    private static final int RANKS = 3;

    private final SharedProxyQueues registry = new SharedProxyQueues();
    private final String rootId = "127.0.0.1:" + io.nrt4j.testing.FreePorts.next();

    @AfterEach
    void nothingIsLeft() {
        assertThat(registry.size()).isZero();
        NccomStandIn.assertNothingOpen();
    }

    private List<NccomRank> ranks(final NrtConfig config) {
        final ProcessBarrier barrier = new ProcessBarrier(RANKS);
        final List<NccomRank> ranks = new ArrayList<>();
        for (int rank = 0; rank < RANKS; rank++) {
            ranks.add(new NccomRank(config, registry, rank, RANKS, rootId, barrier.of(rank)));
        }
        return ranks;
    }

    private void allGather(final NrtConfig config) {
        final List<NccomRank> ranks = ranks(config);
        try {
            for (int execution = 1; execution <= 3; execution++) {
                for (final NccomRank rank : ranks) {
                    rank.enqueue(execution);
                }
                ranks.forEach(NccomRank::release);
                for (final NccomRank rank : ranks) {
                    final TaskStatus status = new TaskStatus();
                    assertThat(rank.consumeNetwork(status)).as("%s", status).isEqualTo(NrtStatus.SUCCESS);
                    assertThat(rank.consumeBarrier(status)).as("%s", status).isEqualTo(NrtStatus.SUCCESS);
                    rank.check();
                }
            }
        } finally {
            ranks.forEach(NccomRank::close);
        }
    }

    @Test
    void aWorkerForEachRank() {
        allGather(NccomStandIn.config().build());
    }

    @Test
    void oneWorkerForAllRanks() {
        allGather(NccomStandIn.config().set(NrtSetting.RANKS_PER_NETWORK_PROXY, "4").build());
    }

    @Test
    void aLibraryThatTakesItsTime() {
        NccomStandIn.set("SLOW_TEST", 3);
        NccomStandIn.set("NULL_REQUESTS", 100);
        allGather(NccomStandIn.config().build());
    }

    @Test
    void anErrorOfTheLibraryIsPublishedWithItsCauseAndNoRankHangs() {
        final List<NccomRank> ranks = ranks(NccomStandIn.config().build());
        try {
            NccomStandIn.set("FAIL", "neuronNetworkProxyProgress:5");
            NccomStandIn.configure();
            ranks.forEach(rank -> rank.enqueue(1));
            ranks.forEach(NccomRank::release);
            assertThat(awaitFailure(ranks)).isTrue();
        } finally {
            ranks.forEach(NccomRank::close);
        }
    }

    /** Whichever rank made the fifth call. */
    private static boolean awaitFailure(final List<NccomRank> ranks) {
        final TaskStatus status = new TaskStatus();
        final long startNs = System.nanoTime();
        while (System.nanoTime() - startNs < LIMIT.toNanos()) {
            for (final NccomRank rank : ranks) {
                if (rank.pollNetwork(status) == NrtStatus.SUCCESS && status.done()
                    && status.status() == NrtStatus.NETWORK_PROXY_FAILURE) {
                    assertThat(status.failure()).hasMessageContaining("neuronNetworkProxyProgress of stream 0")
                        .hasMessageContaining("answered 1 (FAILURE)");
                    return true;
                }
            }
            Thread.onSpinWait();
        }
        return false;
    }

    /** One rank in a process of its own. */
    public static final class Child {
        private Child() {
        }

        /**
         * Runs a rank.
         *
         * @param args library, root id, rank, ranks.
         */
        public static void main(final String[] args) {
            final SharedProxyQueues registry = new SharedProxyQueues();
            final NrtConfig config = NccomStandIn.config(Path.of(args[0])).build();
            final int rank = Integer.parseInt(args[2]);
            try (NccomRank member = new NccomRank(config, registry, rank, Integer.parseInt(args[3]), args[1],
                new ProcessBarrier(1).of(0))) {
                for (int execution = 1; execution <= 3; execution++) {
                    member.enqueue(execution);
                    member.release();
                    final TaskStatus status = new TaskStatus();
                    if (member.consumeNetwork(status) != NrtStatus.SUCCESS || member.consumeBarrier(status) != NrtStatus.SUCCESS) {
                        throw new AssertionError("rank " + rank + ": " + status);
                    }
                    member.check();
                }
                System.out.println("checked");
                new java.util.Scanner(System.in, java.nio.charset.StandardCharsets.UTF_8).nextLine(); // until all have checked
            }
        }
    }

    @Test
    @Tag("slow")
    void aProcessForEachRank() {
        final List<ChildJvm> children = new ArrayList<>();
        try {
            for (int rank = 0; rank < RANKS; rank++) {
                children.add(ChildJvm.start(Child.class, NccomStandIn.library().toString(), rootId, Integer.toString(rank),
                    Integer.toString(RANKS)));
            }
            children.forEach(child -> child.awaitLine("checked", LIMIT));
            children.forEach(child -> child.send("end"));
            for (final ChildJvm child : children) {
                assertThat(child.exitCode(LIMIT)).isZero();
                assertThat(child.lines()).noneMatch(line -> line.contains("VIOLATION"));
            }
        } finally {
            children.forEach(ChildJvm::close);
        }
    }
}
