package io.nrt4j.net;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;

/** Waits for connects and accepts, none of which blocks. Threads: any; nothing is shared. */
public final class Connecting {
    private static final int SPINS = 200;
    private static final long PAUSE_STEP_NS = 20_000;
    private static final long LONGEST_PAUSE_NS = 200_000;

    private Connecting() {
    }

    /**
     * Tries until all is connected, and moves the transport on in between.
     *
     * @param transport  of the connects.
     * @param deadlineNs reading of {@link System#nanoTime()} at which to give up.
     * @param attempt    tries what is not connected yet; true when nothing is left.
     * @param missing    what is not connected, for the failure's text.
     * @throws NrtException TIMEOUT at the deadline, CLOSED when the thread is interrupted, which it stays; and what an attempt throws.
     */
    public static void await(
        final NetTransport transport, final long deadlineNs, final BooleanSupplier attempt, final Supplier<String> missing) {
        for (int round = 0; !attempt.getAsBoolean(); round++) {
            if (System.nanoTime() - deadlineNs > 0) {
                throw new NrtException(NrtStatus.TIMEOUT, missing.get() + " within the time limit");
            } else if (Thread.currentThread().isInterrupted()) {
                throw new NrtException(NrtStatus.CLOSED, missing.get() + " before the thread was interrupted");
            }
            transport.progress();
            if (round < SPINS) {
                Thread.onSpinWait();
            } else {
                LockSupport.parkNanos(Math.min(LONGEST_PAUSE_NS, PAUSE_STEP_NS * (round - SPINS + 1L)));
            }
        }
    }
}
