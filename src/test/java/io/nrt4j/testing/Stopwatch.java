package io.nrt4j.testing;

import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * Measures how long something takes, without the time in which the machine stood still: a virtual machine that shares its processors
 * with others now and then gets none for a second or two, and that is no fault of what is measured. A thread that has nothing else to
 * do notes when it should have run and did not. What is slow by itself, waits too long or shares the processors with others, is
 * measured in full: such a thread still gets its turn then.
 *
 * <p>Threads: {@code HOLES} and {@code lastBeatNs} are written by the noting thread and read by any, both under the monitor of
 * {@code HOLES}.
 */
public final class Stopwatch {
    private static final long BEAT_NS = TimeUnit.MILLISECONDS.toNanos(5);
    /** Less than this is the usual wait for a processor. */
    private static final long HOLE_NS = TimeUnit.MILLISECONDS.toNanos(50);
    private static final int MAX_HOLES = 10_000;
    private static final long MAX_WAIT_MS = 20_000;
    /** From when to when nothing ran, by {@link System#nanoTime()}; the oldest first. */
    private static final Deque<long[]> HOLES = new ArrayDeque<>();
    private static long lastBeatNs = System.nanoTime();

    private final long startNs = System.nanoTime();

    static {
        final Thread noting = new Thread(Stopwatch::note, "stopwatch-holes");
        noting.setDaemon(true);
        noting.start();
    }

    private Stopwatch() {
    }

    /**
     * Begins to measure.
     *
     * @return at this instant.
     */
    public static Stopwatch start() {
        return new Stopwatch();
    }

    private static void note() {
        while (true) {
            LockSupport.parkNanos(BEAT_NS);
            synchronized (HOLES) {
                final long nowNs = System.nanoTime();
                if (nowNs - lastBeatNs > HOLE_NS) {
                    HOLES.add(new long[] {lastBeatNs + BEAT_NS, nowNs});
                    if (HOLES.size() > MAX_HOLES) {
                        HOLES.remove();
                    }
                }
                lastBeatNs = nowNs;
                HOLES.notifyAll();
            }
        }
    }

    /**
     * The instant at which it was started.
     *
     * @return by {@link System#nanoTime()}, which all processes of a Linux machine share.
     */
    public long startNs() {
        return startNs;
    }

    /**
     * How long it has been measuring.
     *
     * @return without the time in which the machine stood still.
     */
    public Duration elapsed() {
        return elapsedUntil(System.nanoTime());
    }

    /**
     * From the start to another instant.
     *
     * @param endNs by {@link System#nanoTime()}, of this process or of another one of this machine; not in the future.
     * @return without the time in which the machine stood still.
     */
    public Duration elapsedUntil(final long endNs) {
        long runningNs = endNs - startNs;
        synchronized (HOLES) {
            awaitBeatAfter(endNs);
            for (final long[] hole : HOLES) {
                final long from = hole[0] - startNs > 0 ? hole[0] : startNs;
                final long to = hole[1] - endNs < 0 ? hole[1] : endNs;
                runningNs -= Math.max(0, to - from);
            }
        }
        return Duration.ofNanos(runningNs);
    }

    /**
     * Whether more time has passed than it may; cheap as long as it has not.
     *
     * @param limit what is allowed.
     * @return without the time in which the machine stood still.
     */
    public boolean isOver(final Duration limit) {
        return System.nanoTime() - startNs > limit.toNanos() && elapsed().compareTo(limit) > 0;
    }

    /** Whoever runs first after a hole is not always the thread that notes it. */
    private static void awaitBeatAfter(final long instantNs) {
        final long deadlineNs = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(MAX_WAIT_MS);
        boolean interrupted = false;
        while (lastBeatNs - instantNs < 0 && System.nanoTime() - deadlineNs < 0) {
            try {
                HOLES.wait(MAX_WAIT_MS);
            } catch (final InterruptedException ex) {
                interrupted = true;
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }
}
