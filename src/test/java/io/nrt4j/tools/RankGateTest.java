package io.nrt4j.tools;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.testing.Await;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;

/** Ranks that wait for one another. */
class RankGateTest {
    private static final Duration LIMIT = Duration.ofSeconds(20);

    @Test
    void allPassTogetherAgainAndAgain() {
        final RankGate gate = new RankGate(2, LIMIT);
        for (int i = 0; i < 100; i++) {
            final CompletableFuture<Void> other = CompletableFuture.runAsync(gate::await);
            gate.await();
            other.join();
        }
    }

    @Test
    void oneThatFailsEndsTheWaitOfThoseThereAndOfThoseToCome() {
        final RankGate gate = new RankGate(3, Duration.ofHours(1));
        final CompletableFuture<Void> there = CompletableFuture.runAsync(gate::await);
        gate.check();
        gate.fail();
        Await.until(LIMIT, "the one that waits", there::isDone);
        assertThat(there).isCompletedExceptionally();
        assertThatThrownBy(gate::await).isInstanceOf(NrtException.class).hasMessageContaining("another rank has failed");
        assertThatThrownBy(gate::check).isInstanceOf(NrtException.class).hasMessageContaining("another rank has failed");
    }

    @Test
    void whoDoesNotComeIsWaitedForUntilTheLimit() {
        assertThatThrownBy(new RankGate(2, Duration.ofMillis(20))::await)
            .isInstanceOfSatisfying(NrtException.class, ex -> assertThat(ex.status()).isEqualTo(NrtStatus.TIMEOUT))
            .hasMessageContaining("within 20 ms");
    }

    @Test
    void anInterruptEndsTheWaitAndIsKept() {
        Thread.currentThread().interrupt();
        assertThatThrownBy(new RankGate(2, LIMIT)::await).isInstanceOf(NrtException.class).hasMessageContaining("interrupted");
        assertThat(Thread.interrupted()).isTrue();
    }
}
