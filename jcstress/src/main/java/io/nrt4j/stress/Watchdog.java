package io.nrt4j.stress;

import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;

/**
 * Makes a lost wake-up an outcome instead of a test that hangs: an actor that is still blocked long after the other one woke it is
 * woken by the watchdog, and told so.
 *
 * <p>Threads: {@code current} of a slot is written by its actor and read by the watchdog; both are volatile accesses that order
 * nothing between the actors of a test, which never touch each other's slot.
 */
public final class Watchdog {
    private static final long PATIENCE_NS = TimeUnit.SECONDS.toNanos(3);
    private static final long PATIENCE_AFTER_A_LOSS_NS = TimeUnit.MILLISECONDS.toNanos(200);
    private static final long LOOK_NS = TimeUnit.MILLISECONDS.toNanos(20);

    private static final List<Slot> SLOTS = new CopyOnWriteArrayList<>();
    private static final ThreadLocal<Slot> MINE = ThreadLocal.withInitial(Slot::new);

    static {
        final Thread watch = new Thread(Watchdog::watch, "stress-watchdog");
        watch.setDaemon(true);
        watch.start();
    }

    private Watchdog() {
    }

    private static final class Slot {
        private volatile Call current;

        Slot() {
            SLOTS.add(this);
        }
    }

    private static final class Call {
        private final BooleanSupplier due;
        private final Runnable rescue;
        private long dueSinceNs;
        private volatile boolean rescued;

        Call(final BooleanSupplier due, final Runnable rescue) {
            this.due = due;
            this.rescue = rescue;
        }
    }

    /**
     * Runs what may block.
     *
     * @param blocking what the actor does.
     * @param due      from when on it should come back by itself.
     * @param rescue   wakes it, whatever went wrong.
     * @return true if it came back by itself, false if it had to be woken.
     */
    public static boolean comesBack(final Runnable blocking, final BooleanSupplier due, final Runnable rescue) {
        final Slot mine = MINE.get();
        final Call call = new Call(due, rescue);
        mine.current = call;
        blocking.run();
        mine.current = null;
        return !call.rescued;
    }

    private static void watch() {
        long patienceNs = PATIENCE_NS;
        while (true) {
            for (final Slot slot : SLOTS) {
                final Call call = slot.current;
                if (call != null && isOverdue(call, patienceNs)) {
                    call.rescued = true;
                    call.rescue.run();
                    patienceNs = PATIENCE_AFTER_A_LOSS_NS;
                }
            }
            LockSupport.parkNanos(LOOK_NS);
        }
    }

    private static boolean isOverdue(final Call call, final long patienceNs) {
        if (!call.due.getAsBoolean()) {
            return false;
        }
        final long nowNs = System.nanoTime();
        if (call.dueSinceNs == 0) {
            call.dueSinceNs = nowNs;
        }
        return nowNs - call.dueSinceNs > patienceNs;
    }
}
