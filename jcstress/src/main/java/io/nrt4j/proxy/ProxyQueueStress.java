package io.nrt4j.proxy;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.concurrent.IdleStrategy;
import io.nrt4j.stress.Watchdog;
import java.util.concurrent.TimeUnit;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.LLL_Result;
import org.openjdk.jcstress.infra.results.LL_Result;
import org.openjdk.jcstress.infra.results.L_Result;

/** Suites 12 and 13: a proxy queue between its producers, its worker and its consumers. The worker is played by an actor. */
public final class ProxyQueueStress {
    private ProxyQueueStress() {
    }

    /** A communicator on a queue whose worker is an actor. */
    abstract static class ByHand {
        final GlobalComm comm = new StressProxy(false).comm();
        final ProxyQueue queue = comm.queue();
        final EncContext ctx = EncContext.builder(comm).build();
        volatile boolean woken;

        /** What the worker does between two passes when it has no task: "awake", or "slept on" when a wake-up was lost. */
        final String idle() {
            final IdleStrategy waiting = queue.waiting();
            // An append wakes whoever waits; to be stopped as well makes sure of it.
            return Watchdog.comesBack(() -> waiting.idle(0), () -> woken, waiting::wakeUp) ? "awake" : "slept on";
        }

        final String append() {
            try {
                queue.append(new StressProxy.OneStep(ctx));
                return "appended";
            } catch (final NrtException ex) {
                return ex.status().name();
            } catch (final RuntimeException ex) {
                return ex.toString();
            }
        }

        final String poll() {
            final TaskStatus status = new TaskStatus();
            try {
                return queue.checkProxyTaskStatus(ctx, TaskType.NETWORK, status) == NrtStatus.FAILURE ? "none"
                    : status.done() ? "done" : "running";
            } catch (final RuntimeException ex) {
                return ex.toString();
            }
        }
    }

    /** An append against going to sleep. */
    @JCStressTest
    @Outcome(id = "awake, 1", expect = ACCEPTABLE, desc = "Woken, or never asleep; the next pass takes the task.")
    @Outcome(expect = FORBIDDEN, desc = "The wake-up was lost: the task waits for the next append.")
    @State
    public static class AppendAgainstSleep extends ByHand {
        @Actor
        public void worker(final LL_Result result) {
            result.r1 = idle();
        }

        @Actor
        public void producer() {
            append();
            woken = true;
        }

        @Arbiter
        public void end(final LL_Result result) {
            result.r2 = queue.doWork();
        }
    }

    /** A whole cycle of the worker against an append: pass, sleep, pass. */
    @JCStressTest
    @Outcome(id = "awake, done", expect = ACCEPTABLE, desc = "Whenever it came, one of the two passes stepped the task.")
    @Outcome(expect = FORBIDDEN, desc = "The task was missed.")
    @State
    public static class AppendAgainstCycle extends ByHand {
        @Actor
        public void worker(final LL_Result result) {
            if (queue.doWork() > 0) {
                result.r1 = "awake";
            } else {
                result.r1 = idle();
                queue.doWork();
            }
        }

        @Actor
        public void producer() {
            append();
            woken = true;
        }

        @Arbiter
        public void end(final LL_Result result) {
            result.r2 = poll();
        }
    }

    /** A stop against going to sleep. */
    @JCStressTest
    @Outcome(id = "awake", expect = ACCEPTABLE, desc = "Woken, or never asleep.")
    @Outcome(expect = FORBIDDEN, desc = "The stop was missed: it would wait for its time limit.")
    @State
    public static class StopAgainstSleep extends ByHand {
        @Actor
        public void worker(final L_Result result) {
            result.r1 = Watchdog.comesBack(() -> queue.waiting().idle(0), () -> woken, queue.waiting()::wakeUp) ? "awake" : "slept on";
        }

        @Actor
        public void stopper() {
            queue.stop(0, TimeUnit.SECONDS);
            woken = true;
        }
    }

    /** An append against a stop: taken or refused, but told. */
    @JCStressTest
    @Outcome(id = "appended, done", expect = ACCEPTABLE, desc = "Taken; the worker's last pass ends it.")
    @Outcome(id = "CLOSED, none", expect = ACCEPTABLE, desc = "Refused; nothing is published any more.")
    @Outcome(expect = FORBIDDEN, desc = "Taken and forgotten, or refused and left behind.")
    @State
    public static class AppendAgainstStop extends ByHand {
        @Actor
        public void producer(final LL_Result result) {
            result.r1 = append();
        }

        /** And the worker's last pass, behind which nobody looks at the queue any more. */
        @Actor
        public void stopper() {
            queue.stop(0, TimeUnit.SECONDS);
            queue.doWork();
        }

        @Arbiter
        public void end(final LL_Result result) {
            result.r2 = poll();
        }
    }

    /** Two producers and the order of their states. */
    @JCStressTest
    @Outcome(id = "appended, appended, 2 done done none", expect = ACCEPTABLE, desc = "Both are taken, stepped and told.")
    @Outcome(expect = FORBIDDEN, desc = "One is lost.")
    @State
    public static class AppendAppend extends ByHand {
        @Actor
        public void first(final LLL_Result result) {
            result.r1 = append();
        }

        @Actor
        public void second(final LLL_Result result) {
            result.r2 = append();
        }

        @Arbiter
        public void end(final LLL_Result result) {
            result.r3 = queue.doWork() + " " + poll() + " " + poll() + " " + poll();
        }
    }

    /** An append against the freeing of its communicator. */
    @JCStressTest
    @Outcome(id = "appended, 0 live, none", expect = ACCEPTABLE, desc = "Taken, then failed and forgotten.")
    @Outcome(id = "CLOSED, 0 live, none", expect = ACCEPTABLE, desc = "Refused.")
    @Outcome(expect = FORBIDDEN, desc = "A task of a freed communicator lives on, or its state is left behind.")
    @State
    public static class AppendAgainstFree extends ByHand {
        @Actor
        public void producer(final LLL_Result result) {
            result.r1 = append();
        }

        @Actor
        public void owner() {
            queue.abandon(comm, 0, TimeUnit.SECONDS);
        }

        @Arbiter
        public void end(final LLL_Result result) {
            queue.doWork();
            queue.doWork();
            result.r2 = comm.liveTasks() + " live";
            result.r3 = poll() + (queue.publishedStates() == 0 ? "" : " but published");
        }
    }

    /** A pass of the worker against the freeing: the freeing waits until the task is dropped. */
    @JCStressTest
    @Outcome(id = "told, none", expect = ACCEPTABLE, desc = "Dropped, by its end or by the sweep.")
    @Outcome(expect = FORBIDDEN, desc = "The freeing was not told.")
    @State
    public static class FreeAgainstPass extends ByHand {
        private static final int LIMIT_S = 3;

        public FreeAgainstPass() {
            append();
        }

        @Actor
        public void worker() {
            queue.doWork();
        }

        @Actor
        public void owner(final LL_Result result) {
            final long startNs = System.nanoTime();
            final boolean dropped = queue.abandon(comm, LIMIT_S, TimeUnit.SECONDS);
            // Who was not told looks again at the end of its wait, and finds that all is well.
            result.r1 = dropped && System.nanoTime() - startNs < TimeUnit.SECONDS.toNanos(LIMIT_S) ? "told" : "waited in vain";
        }

        @Arbiter
        public void end(final LL_Result result) {
            result.r2 = poll();
        }
    }

    /** Who sees DONE sees the final status and its cause. */
    @JCStressTest
    @Outcome(id = "running", expect = ACCEPTABLE, desc = "Not ended yet.")
    @Outcome(id = "TIMEOUT true", expect = ACCEPTABLE, desc = "Ended, with status and cause.")
    @Outcome(expect = FORBIDDEN, desc = "Ended, but the status is not the last one.")
    @State
    public static class DoneShowsStatus extends ByHand {
        private static final NrtException CAUSE = new NrtException(NrtStatus.TIMEOUT, "too late");
        private final StressProxy.OneStep task = new StressProxy.OneStep(ctx);

        @Actor
        public void worker() {
            task.failNow(CAUSE);
        }

        @Actor
        public void consumer(final L_Result result) {
            final ProxyTaskState state = task.state();
            result.r1 = state.runState() == RunState.DONE ? state.progressStatus() + " " + (state.failure() == CAUSE) : "running";
        }
    }

    /** Two consumers poll one task that is done. */
    @JCStressTest
    @Outcome(id = {"done, none", "none, done"}, expect = ACCEPTABLE, desc = "One takes the outcome.")
    @Outcome(expect = FORBIDDEN, desc = "Both take it, or none does.")
    @State
    public static class TwoConsumers extends ByHand {
        public TwoConsumers() {
            append();
            queue.doWork();
        }

        @Actor
        public void first(final LL_Result result) {
            result.r1 = poll();
        }

        @Actor
        public void second(final LL_Result result) {
            result.r2 = poll();
        }
    }

    /** A consumer polls while the worker steps. */
    @JCStressTest
    @Outcome(id = "running, done", expect = ACCEPTABLE, desc = "Polled before the step; still there to be polled again.")
    @Outcome(id = "done, none", expect = ACCEPTABLE, desc = "Polled after the step, and taken by that.")
    @Outcome(expect = FORBIDDEN, desc = "The outcome was taken without being told, or told twice.")
    @State
    public static class PollAgainstStep extends ByHand {
        public PollAgainstStep() {
            append();
        }

        @Actor
        public void worker() {
            queue.doWork();
        }

        @Actor
        public void consumer(final LL_Result result) {
            result.r1 = poll();
        }

        @Arbiter
        public void end(final LL_Result result) {
            result.r2 = poll();
        }
    }
}
