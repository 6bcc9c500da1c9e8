package io.nrt4j.concurrent;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** Waiting for a thread: until its end or the deadline, interrupted or not. */
class ThreadEndTest {
    private static long in(final long millis) {
        return System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(millis);
    }

    @Test
    void theWaitEndsWithTheThreadOrAtTheDeadlineAndAnInterruptIsKept() {
        final CountDownLatch goOn = new CountDownLatch(1);
        final Thread thread = new Thread(() -> {
            try {
                goOn.await();
            } catch (final InterruptedException ex) {
                Thread.currentThread().interrupt();
            }
        }, "waited for");
        thread.setDaemon(true);
        thread.start();
        assertThat(ThreadEnd.await(thread, in(-1))).isFalse();
        Thread.currentThread().interrupt();
        final long startNs = System.nanoTime();
        assertThat(ThreadEnd.await(thread, in(50))).isFalse();
        assertThat(System.nanoTime() - startNs).as("not cut short").isGreaterThanOrEqualTo(TimeUnit.MILLISECONDS.toNanos(50));
        assertThat(Thread.interrupted()).isTrue();
        goOn.countDown();
        assertThat(ThreadEnd.await(thread, in(20_000))).isTrue();
        assertThat(ThreadEnd.await(new Thread(() -> { }, "never started"), in(0))).isTrue();
    }
}
