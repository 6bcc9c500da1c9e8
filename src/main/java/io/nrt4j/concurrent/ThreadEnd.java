package io.nrt4j.concurrent;

import java.util.concurrent.TimeUnit;

/** Waits for the end of a thread. */
public final class ThreadEnd {
    private ThreadEnd() {
    }

    /**
     * Waits until a thread has ended, or until a deadline. An interrupt does not cut the wait short; the flag is set again afterwards.
     *
     * @param thread     that was started, or never will be.
     * @param deadlineNs reading of {@link System#nanoTime()}.
     * @return whether it has ended.
     */
    public static boolean await(final Thread thread, final long deadlineNs) {
        boolean interrupted = false;
        long leftNs = deadlineNs - System.nanoTime();
        while (thread.isAlive() && leftNs > 0) {
            try {
                TimeUnit.NANOSECONDS.timedJoin(thread, leftNs);
            } catch (final InterruptedException ex) {
                interrupted = true;
            }
            leftNs = deadlineNs - System.nanoTime();
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
        return !thread.isAlive();
    }
}
