package io.nrt4j.concurrent;

import java.util.concurrent.TimeUnit;

/**
 * Waits that an interrupt does not cut short: for what has to be over before memory goes or a caller may go on. The interrupt is
 * kept for whoever comes next.
 *
 * <p>Threads: any; nothing is shared.
 */
public final class Uninterrupted {
    /** One attempt of a wait. */
    @FunctionalInterface
    public interface Attempt {
        /**
         * Waits until it has come or the time is over; an early return is no harm.
         *
         * @param leftNs time that is left, 0 for a last look.
         * @return whether it has come.
         * @throws InterruptedException to be tried again with what is left then.
         */
        boolean await(long leftNs) throws InterruptedException;
    }

    private Uninterrupted() {
    }

    /**
     * Waits for something, at most for the given time.
     *
     * @param limitNs bound of the wait; 0 or less is one look.
     * @param attempt waits for it; called again until it answers true or was asked with no time left.
     * @return whether it has come.
     */
    public static boolean await(final long limitNs, final Attempt attempt) {
        final long deadlineNs = System.nanoTime() + Math.min(limitNs, Long.MAX_VALUE / 2);
        boolean interrupted = false;
        long leftNs = limitNs;
        try {
            while (true) {
                try {
                    if (attempt.await(Math.max(0, leftNs))) {
                        return true;
                    } else if (leftNs <= 0) {
                        return false;
                    }
                } catch (final InterruptedException ex) {
                    interrupted = true;
                }
                leftNs = deadlineNs - System.nanoTime();
            }
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    /**
     * Waits for a thread's end, at most for the given time.
     *
     * @param thread  not the calling one.
     * @param limitNs bound of the wait; 0 or less is one look.
     * @return whether it has ended, or was never started.
     */
    public static boolean join(final Thread thread, final long limitNs) {
        return await(limitNs, leftNs -> {
            TimeUnit.NANOSECONDS.timedJoin(thread, leftNs);
            return !thread.isAlive();
        });
    }
}
