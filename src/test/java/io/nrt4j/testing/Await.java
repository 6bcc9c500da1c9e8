package io.nrt4j.testing;

import java.time.Duration;
import java.util.concurrent.Callable;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Supplier;

/**
 * Waits on a condition, never longer than it is told, and says what it saw when the condition did not come. Limits are of the time in
 * which the machine ran, see {@link Stopwatch}, and the condition is asked once more after the limit.
 */
public final class Await {
    private static final long PAUSE_NS = 1_000_000;

    private Await() {
    }

    /**
     * Waits until a condition holds.
     *
     * @param limit       longest wait.
     * @param description what is waited for and what the state is, asked for only on failure.
     * @param condition   polled about once a millisecond.
     */
    public static void until(final Duration limit, final Supplier<String> description, final Callable<Boolean> condition) {
        final Stopwatch watch = Stopwatch.start();
        while (true) {
            final boolean late = watch.isOver(limit);
            if (call(condition)) {
                return;
            }
            if (late) {
                throw new AssertionError("not within " + limit.toMillis() + " ms: " + description.get());
            }
            if (Thread.currentThread().isInterrupted()) {
                throw new AssertionError("interrupted while waiting: " + description.get());
            }
            LockSupport.parkNanos(PAUSE_NS);
        }
    }

    /**
     * Waits until a condition holds.
     *
     * @param limit       longest wait.
     * @param description what is waited for.
     * @param condition   polled about once a millisecond.
     */
    public static void until(final Duration limit, final String description, final Callable<Boolean> condition) {
        until(limit, () -> description, condition);
    }

    /**
     * Waits until nothing is wrong any more.
     *
     * @param limit     longest wait.
     * @param assertion run until it does not throw; its last failure is rethrown at the limit.
     */
    public static void untilAsserted(final Duration limit, final Runnable assertion) {
        final Stopwatch watch = Stopwatch.start();
        while (true) {
            final boolean late = watch.isOver(limit);
            try {
                assertion.run();
                return;
            } catch (final AssertionError ex) {
                if (late) {
                    throw ex;
                }
                LockSupport.parkNanos(PAUSE_NS);
            }
        }
    }

    private static boolean call(final Callable<Boolean> condition) {
        try {
            return condition.call();
        } catch (final RuntimeException ex) {
            throw ex;
        } catch (final Exception ex) {
            throw new AssertionError("the condition itself failed", ex);
        }
    }
}
