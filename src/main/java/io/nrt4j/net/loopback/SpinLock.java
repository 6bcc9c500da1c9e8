package io.nrt4j.net.loopback;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.concurrent.locks.LockSupport;

/**
 * A lock that allocates nothing, not even when it is contended. It is held for at most the copy of one slice.
 *
 * <p>Not reentrant, not fair. Threads: {@code held} is written by compare-and-set (acquire) when it is taken and by a release
 * store when it is given back, which orders everything that is done under the lock.
 */
final class SpinLock {
    private static final VarHandle HELD;
    private static final int SPINS = 200;
    private static final int YIELDS = 200;
    private static final long PARK_NS = 20_000;

    static {
        try {
            HELD = MethodHandles.lookup().findVarHandle(SpinLock.class, "held", int.class);
        } catch (final ReflectiveOperationException ex) {
            throw new ExceptionInInitializerError(ex);
        }
    }

    @SuppressWarnings("unused") // through HELD
    private int held;

    /** Takes the lock if it is free. */
    boolean tryLock() {
        return (int) HELD.getOpaque(this) == 0 && HELD.compareAndSet(this, 0, 1);
    }

    /** Takes the lock, waiting for a holder that is at its slice. */
    void lock() {
        if (!HELD.compareAndSet(this, 0, 1)) {
            lockContended();
        }
    }

    void unlock() {
        HELD.setRelease(this, 0);
    }

    /** Spins first, then leaves the processor to a holder that may have been preempted. */
    private void lockContended() {
        int tries = 0;
        while (!tryLock()) {
            tries++;
            if (tries < SPINS) {
                Thread.onSpinWait();
            } else if (tries < SPINS + YIELDS) {
                Thread.yield();
            } else {
                LockSupport.parkNanos(this, PARK_NS);
            }
        }
    }
}
