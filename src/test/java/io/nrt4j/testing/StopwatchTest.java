package io.nrt4j.testing;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.time.Duration;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;

/** What waits is measured in full, what stands still is not. */
class StopwatchTest {
    private static final Duration LIMIT = Duration.ofSeconds(30);

    /** Says at each line what has passed since the last one, by the clock and by the stopwatch, in ms. */
    static final class Measuring {
        private Measuring() {
        }

        public static void main(final String[] arguments) throws IOException {
            Stopwatch watch = Stopwatch.start();
            for (int next = System.in.read(); next >= 0; next = System.in.read()) {
                final long clockNs = System.nanoTime() - watch.startNs();
                System.out.println(clockNs / 1_000_000 + " " + watch.elapsed().toMillis());
                watch = Stopwatch.start();
            }
        }
    }

    private static long[] answer(final ChildJvm child) {
        final String[] words = child.awaitLine("two numbers", line -> line.matches("\\d+ -?\\d+"), LIMIT).split(" ");
        return new long[] {Long.parseLong(words[0]), Long.parseLong(words[1])};
    }

    @Test
    void aProcessThatStoodStillHasNotMeasuredIt() {
        try (ChildJvm child = ChildJvm.start(Measuring.class)) {
            child.send("");
            answer(child);
            child.freeze();
            final long frozenNs = System.nanoTime();
            Await.until(LIMIT, "a second", () -> System.nanoTime() - frozenNs > 1_000_000_000L);
            child.thaw();
            child.send("");
            final long[] still = answer(child);
            assertThat(still[0]).isGreaterThanOrEqualTo(1000);
            assertThat(still[0] - still[1]).as("of the second, by the stopwatch").isGreaterThan(500);
        }
    }

    @Test
    void aThreadThatSleepsIsMeasuredInFull() {
        Duration best = Duration.ZERO;
        // A machine that stands still meanwhile makes it less.
        for (int attempt = 0; attempt < 20 && best.toMillis() < 290; attempt++) {
            final Stopwatch watch = Stopwatch.start();
            final long endNs = watch.startNs() + 300_000_000L;
            while (System.nanoTime() - endNs < 0) {
                LockSupport.parkNanos(endNs - System.nanoTime());
            }
            final Duration elapsed = watch.elapsedUntil(endNs);
            assertThat(elapsed).isLessThanOrEqualTo(Duration.ofMillis(300));
            best = elapsed.compareTo(best) > 0 ? elapsed : best;
            assertThat(watch.isOver(Duration.ofSeconds(600))).isFalse();
        }
        assertThat(best).isGreaterThan(Duration.ofMillis(289));
    }
}
