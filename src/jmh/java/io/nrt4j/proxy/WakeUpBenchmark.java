package io.nrt4j.proxy;

import io.nrt4j.NrtConfig;
import io.nrt4j.NrtStatus;
import io.nrt4j.net.NetworkProxy;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/**
 * From the append to the first step on a sleeping worker, beside {@link LockSupport#unpark} to the running of a bare thread. Both
 * end when the caller sees a volatile field that the woken thread wrote; both sleepers have slept for a while.
 */
@BenchmarkMode(Mode.SampleTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 3, time = 2)
@Measurement(iterations = 5, time = 2)
@Fork(3)
public class WakeUpBenchmark {
    private static final long SETTLE_NS = 50_000;

    /** Waits until a thread sleeps, and a little longer, so that its processor does too. */
    private static void settle(final Thread sleeper) {
        while (sleeper.getState() != Thread.State.WAITING) {
            Thread.onSpinWait();
        }
        final long endNs = System.nanoTime() + SETTLE_NS;
        while (System.nanoTime() < endNs) {
            Thread.onSpinWait();
        }
    }

    /** A thread that sleeps until it is unparked. */
    @State(Scope.Thread)
    public static class Bare {
        private volatile long seen;
        private volatile long wanted;
        private volatile boolean ended;
        private Thread thread;

        /** Starts the thread. */
        @Setup
        public void start() {
            thread = new Thread(() -> {
                while (!ended) {
                    while (seen == wanted && !ended) {
                        LockSupport.park(this);
                    }
                    seen = wanted;
                }
            });
            thread.setDaemon(true);
            thread.start();
        }

        /** Waits until it sleeps. */
        @Setup(Level.Invocation)
        public void sleep() {
            settle(thread);
        }

        /** Ends the thread. */
        @TearDown
        public void end() {
            ended = true;
            LockSupport.unpark(thread);
        }
    }

    /** A queue with a worker that sleeps. */
    @State(Scope.Thread)
    public static class Queue {
        private final TaskStatus status = new TaskStatus();
        private volatile long steps;
        private Thread worker;
        private GlobalComm comm;
        private EncContext ctx;
        private ProxyTask task;

        /** Starts the worker. */
        @Setup
        public void start() {
            final NrtConfig config = NrtConfig.builder(Map.of(), Map.of()).build();
            final SharedProxyQueues registry = new SharedProxyQueues(agent -> worker = agent.start().thread());
            comm = GlobalComm.setup(registry, config, 0, 0, new IdleProxy(NetworkProxy.IDLE, false), 1, new ProcessBarrier(1).of(0));
            ctx = EncContext.builder(comm).build();
        }

        /** Makes the next task and waits until the worker sleeps. */
        @Setup(Level.Invocation)
        public void sleep() {
            ProxyTasks.checkNetworkTaskStatus(ctx, status);
            task = new ProxyTask(ctx, 0, TaskType.NETWORK) {
                @Override
                public NrtStatus step() {
                    steps = steps + 1;
                    move(RunState.DONE);
                    return NrtStatus.SUCCESS;
                }
            };
            settle(worker);
        }

        /** Ends the worker. */
        @TearDown
        public void end() {
            comm.free();
        }
    }

    /** Unpark to running. */
    @Benchmark
    public long control(final Bare bare) {
        final long next = bare.seen + 1;
        bare.wanted = next;
        LockSupport.unpark(bare.thread);
        while (bare.seen != next) {
            Thread.onSpinWait();
        }
        return next;
    }

    /** Append to first step. */
    @Benchmark
    public long appendToFirstStep(final Queue queue) {
        final long before = queue.steps;
        queue.comm.queue().append(queue.task);
        while (queue.steps == before) {
            Thread.onSpinWait();
        }
        return before;
    }
}
