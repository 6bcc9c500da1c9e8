package io.nrt4j.testing;

import java.util.concurrent.locks.LockSupport;

/**
 * Waiting without giving the processor away, for tests that want to meet another thread closely or to drive something hard; an
 * instant's sleep now and then lets the other thread run where there are fewer processors than threads. Yielding does not: it lets
 * whoever else computes on that processor have its whole turn.
 */
public final class Spin {
    private static final int ROUNDS = 1024;
    private static final long INSTANT_NS = 20_000;

    private Spin() {
    }

    /**
     * Waits for a moment.
     *
     * @param round counts the calls of one wait.
     */
    public static void pause(final int round) {
        if (round % ROUNDS == ROUNDS - 1) {
            LockSupport.parkNanos(INSTANT_NS);
        } else {
            Thread.onSpinWait();
        }
    }
}
