package io.nrt4j.sendrecv;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import io.nrt4j.stress.Watchdog;
import java.util.concurrent.ThreadLocalRandom;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.LI_Result;
import org.openjdk.jcstress.infra.results.L_Result;

/** Suite 6: the task counter, and the ways to wake a service thread that goes to sleep. */
public final class TaskSignalStress {
    private TaskSignalStress() {
    }

    /** A post. */
    @JCStressTest
    @Outcome(id = "awake, 1", expect = ACCEPTABLE, desc = "Woken, or never asleep; the task is counted.")
    @Outcome(expect = FORBIDDEN, desc = "The wake-up was lost.")
    @State
    public static class Post {
        private volatile boolean woken;
        private final TaskSignal signal = new TaskSignal(() -> false);

        @Actor
        public void service(final LI_Result result) {
            result.r1 = Watchdog.comesBack(() -> signal.idle(0), () -> woken, signal::wakeUp) ? "awake" : "slept on";
        }

        @Actor
        public void poster() {
            signal.add();
            woken = true;
        }

        @Arbiter
        public void count(final LI_Result result) {
            result.r2 = signal.count();
        }
    }

    /** A close. */
    @JCStressTest
    @Outcome(id = "awake", expect = ACCEPTABLE, desc = "Woken, or never asleep.")
    @Outcome(expect = FORBIDDEN, desc = "The wake-up was lost: close would wait for its time limit.")
    @State
    public static class Close {
        private volatile boolean woken;
        private final TaskSignal signal = new TaskSignal(() -> false);

        @Actor
        public void service(final L_Result result) {
            result.r1 = Watchdog.comesBack(() -> signal.idle(0), () -> woken, signal::wakeUp) ? "awake" : "slept on";
        }

        @Actor
        public void closer() {
            signal.shutDown();
            woken = true;
        }
    }

    /** A post, and a close right behind it: the thread goes to sleep three times and must come back three times. */
    @JCStressTest
    @Outcome(id = "awake", expect = ACCEPTABLE, desc = "Whichever came first, the thread does not sleep on.")
    @Outcome(expect = FORBIDDEN, desc = "The wake-up of one was taken for that of the other.")
    @State
    public static class PostAndClose {
        private volatile boolean woken;
        private final TaskSignal signal = new TaskSignal(() -> false);

        @Actor
        public void service(final L_Result result) {
            result.r1 = Watchdog.comesBack(this::threeTimes, () -> woken, signal::wakeUp) ? "awake" : "slept on";
        }

        private void threeTimes() {
            for (int i = 0; i < 3; i++) {
                signal.idle(0);
                if (signal.count() > 0) {
                    signal.retire();
                }
            }
        }

        @Actor
        public void application() {
            signal.add();
            signal.shutDown();
            woken = true;
        }
    }

    /** A post that went to the transport at once, which needs somebody to tick it. */
    @JCStressTest
    @Outcome(id = "awake", expect = ACCEPTABLE, desc = "One of the two saw the other.")
    @Outcome(expect = FORBIDDEN, desc = "The thread sleeps, and the transport waits for it.")
    @State
    public static class PostedToTransport {
        private volatile boolean transportBusy;
        private volatile boolean begun;
        private volatile boolean woken;
        private final TaskSignal signal = new TaskSignal(this::isBusy);

        /** Takes some microseconds to answer, as a transport may: what happens between its look and what is made of it is the point. */
        private boolean isBusy() {
            final boolean busy = transportBusy;
            spin(100);
            return busy;
        }

        private static void spin(final int count) {
            for (int i = 0; i < count; i++) {
                Thread.onSpinWait();
            }
        }

        @Actor
        public void service(final L_Result result) {
            begun = true;
            result.r1 = Watchdog.comesBack(() -> signal.idle(0), () -> woken, signal::wakeUp) ? "awake" : "slept on";
        }

        /** Not far ahead of the other, which has to sleep and to wake up: somewhere in its two looks. */
        @Actor
        public void poster() {
            for (int i = 0; i < 10_000 && !begun; i++) {
                Thread.onSpinWait();
            }
            spin(ThreadLocalRandom.current().nextInt(250));
            transportBusy = true;
            signal.postedToTransport();
            woken = true;
        }
    }

    /** Two posters count while the service thread retires. */
    @JCStressTest
    @Outcome(id = "fine, 1", expect = ACCEPTABLE, desc = "Two added, one retired.")
    @Outcome(expect = FORBIDDEN, desc = "A task was counted twice or not at all.")
    @State
    public static class Count {
        private final TaskSignal signal = new TaskSignal(() -> false);

        public Count() {
            signal.add();
        }

        @Actor
        public void poster() {
            signal.add();
        }

        @Actor
        public void service(final LI_Result result) {
            signal.retire();
            result.r1 = "fine";
        }

        @Arbiter
        public void count(final LI_Result result) {
            result.r2 = signal.count();
        }
    }
}
