package io.nrt4j.testing;

import io.nrt4j.concurrent.NanoClock;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/** A clock that stands still until a test moves it. Any thread may read it and move it. */
public final class HandClock implements NanoClock {
    private final AtomicLong nowNs;

    /** A clock that begins at an arbitrary reading which is not 0, so that code that takes 0 for "never" is found out. */
    public HandClock() {
        this(-5_000_000_000L);
    }

    /**
     * A clock with a chosen first reading.
     *
     * @param startNs first reading, in nanoseconds.
     */
    public HandClock(final long startNs) {
        nowNs = new AtomicLong(startNs);
    }

    @Override
    public long nanoTime() {
        return nowNs.get();
    }

    /**
     * Moves the clock.
     *
     * @param amount how far.
     * @param unit   its unit.
     * @return the new reading, in nanoseconds.
     */
    public long advance(final long amount, final TimeUnit unit) {
        return nowNs.addAndGet(unit.toNanos(amount));
    }
}
