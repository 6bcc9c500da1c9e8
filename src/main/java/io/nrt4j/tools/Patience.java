package io.nrt4j.tools;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import java.time.Duration;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;

/**
 * How a polling thread waits: shortly at first, longer while nothing happens, and never beyond the time limit, which starts
 * anew with each progress.
 *
 * <p>Threads: one. The cancel flag may be raised by another.
 */
final class Patience {
    private static final int SPINS = 50;
    private static final int YIELDS = 50;
    private static final long MIN_PARK_NS = 10_000;
    private static final long MAX_PARK_NS = 500_000;

    private final long limitNs;
    private final BooleanSupplier cancelled;
    private long lastProgressNs = System.nanoTime();
    private int rounds;
    private long parkNs = MIN_PARK_NS;

    Patience(final Duration limit, final BooleanSupplier cancelled) {
        limitNs = limit.toNanos();
        this.cancelled = cancelled;
    }

    /** Something moved: the time limit starts anew. */
    void progressed() {
        lastProgressNs = System.nanoTime();
        rounds = 0;
        parkNs = MIN_PARK_NS;
    }

    /**
     * Waits a little.
     *
     * @param waitingFor for the text of a failure.
     * @throws NrtException TIMEOUT at the limit; CLOSED when it was cancelled.
     */
    void pause(final Supplier<String> waitingFor) {
        check(System.nanoTime() - lastProgressNs, waitingFor);
        rounds++;
        if (rounds < SPINS) {
            Thread.onSpinWait();
        } else if (rounds < SPINS + YIELDS) {
            Thread.yield();
        } else {
            LockSupport.parkNanos(parkNs);
            parkNs = Math.min(2 * parkNs, MAX_PARK_NS);
        }
    }

    /** Whether {@link #check} would throw; allocates nothing. */
    boolean isOver(final long waitedNs) {
        return waitedNs > limitNs || cancelled.getAsBoolean() || Thread.currentThread().isInterrupted();
    }

    /**
     * Whether to go on waiting.
     *
     * @param waitedNs   so long.
     * @param waitingFor for the text of a failure.
     * @throws NrtException TIMEOUT at the limit; CLOSED when it was cancelled.
     */
    void check(final long waitedNs, final Supplier<String> waitingFor) {
        if (cancelled.getAsBoolean() || Thread.currentThread().isInterrupted()) {
            throw new NrtException(NrtStatus.CLOSED, "given up while waiting for " + waitingFor.get());
        }
        if (waitedNs > limitNs) {
            throw new NrtException(NrtStatus.TIMEOUT,
                "nothing moved for " + waitedNs / 1_000_000 + " ms while waiting for " + waitingFor.get());
        }
    }
}
