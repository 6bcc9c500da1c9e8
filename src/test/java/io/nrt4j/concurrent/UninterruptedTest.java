package io.nrt4j.concurrent;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** An interrupt neither ends a wait nor is lost. */
@Timeout(value = 30, unit = TimeUnit.SECONDS)
class UninterruptedTest {
    private static final long LIMIT_NS = TimeUnit.SECONDS.toNanos(20);

    @AfterEach
    void forgetTheInterrupt() {
        Thread.interrupted();
    }

    @Test
    void anInterruptedThreadWaitsOnAndStaysInterrupted() {
        final List<Long> left = new ArrayList<>();
        Thread.currentThread().interrupt();
        assertThat(Uninterrupted.await(LIMIT_NS, leftNs -> {
            left.add(leftNs);
            if (left.size() == 1) {
                Thread.sleep(1); // throws
            }
            return left.size() == 3;
        })).isTrue();
        assertThat(left).as("tried again, with less time").hasSize(3).isSortedAccordingTo((a, b) -> Long.compare(b, a));
        assertThat(Thread.currentThread().isInterrupted()).isTrue();
    }

    @Test
    void whatDoesNotComeEndsAtItsLimitAndWithALastLook() {
        final List<Long> left = new ArrayList<>();
        final long startNs = System.nanoTime();
        Thread.currentThread().interrupt();
        assertThat(Uninterrupted.await(TimeUnit.MILLISECONDS.toNanos(50), leftNs -> {
            left.add(leftNs);
            Thread.sleep(TimeUnit.NANOSECONDS.toMillis(leftNs));
            return false;
        })).isFalse();
        assertThat(System.nanoTime() - startNs).isGreaterThanOrEqualTo(TimeUnit.MILLISECONDS.toNanos(50));
        assertThat(left.get(left.size() - 1)).isZero();
        assertThat(Thread.interrupted()).isTrue();
        assertThat(Uninterrupted.await(0, leftNs -> leftNs == 0)).as("one look").isTrue();
        assertThat(Uninterrupted.await(-1, leftNs -> false)).isFalse();
    }

    @Test
    void aThreadIsJoinedThoughTheWaitingOneIsInterrupted() {
        final CountDownLatch goOn = new CountDownLatch(1);
        final Thread thread = new Thread(() -> {
            try {
                goOn.await();
            } catch (final InterruptedException ex) {
                throw new AssertionError(ex);
            }
        });
        assertThat(Uninterrupted.join(thread, LIMIT_NS)).as("never started").isTrue();
        thread.start();
        Thread.currentThread().interrupt();
        assertThat(Uninterrupted.join(thread, 1_000_000)).isFalse();
        goOn.countDown();
        assertThat(Uninterrupted.join(thread, LIMIT_NS)).isTrue();
        assertThat(thread.isAlive()).isFalse();
        assertThat(Thread.currentThread().isInterrupted()).isTrue();
    }
}
