package io.nrt4j.tools;

import static org.assertj.core.api.Assertions.assertThat;

import io.nrt4j.testing.Await;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** How the core's program ends, and what becomes of its memory when it does not. */
@Timeout(value = 30, unit = TimeUnit.SECONDS)
class SoftwareCoreTest {
    private static final long SHORT_NS = TimeUnit.MILLISECONDS.toNanos(50);
    private static final Duration LIMIT = Duration.ofSeconds(20);

    private final SoftwareCore core = new SoftwareCore(1, 1);

    @Test
    void aProgramThatWaitsTooLongIsHaltedAndWaitedForOnceMore() {
        final AtomicBoolean came = new AtomicBoolean(true);
        core.startProgram("core-test", () -> came.set(core.await(0, 1, LIMIT.toNanos())));
        assertThat(core.endProgram(TimeUnit.SECONDS.toNanos(1))).isTrue();
        assertThat(came).as("halted in its wait").isFalse();
        core.close();
    }

    @Test
    void anInterruptedOwnerWaitsAllTheSame() {
        core.startProgram("core-test", () -> core.await(0, 1, LIMIT.toNanos()));
        Thread.currentThread().interrupt();
        assertThat(core.endProgram(SHORT_NS * 20)).as("halted, and waited for").isTrue();
        assertThat(Thread.interrupted()).isTrue();
        core.close();
    }

    @Test
    void theMemoryStaysUnderAProgramThatDoesNotEnd() {
        final CountDownLatch goOn = new CountDownLatch(1);
        final AtomicBoolean read = new AtomicBoolean();
        core.startProgram("core-test", () -> {
            while (goOn.getCount() > 0) { // as an addition does: it does not look whether it is halted
                Thread.onSpinWait();
            }
            core.release(0);
            read.set(core.trigger(0) == 1);
        });
        assertThat(core.endProgram(SHORT_NS)).isFalse();
        core.close();
        goOn.countDown();
        Await.until(LIMIT, "it used its words after the close", read::get);
        assertThat(core.endProgram(LIMIT.toNanos())).isTrue();
    }
}
