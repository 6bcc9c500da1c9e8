package io.nrt4j.proxy;

import io.nrt4j.NrtConfig;
import io.nrt4j.NrtStatus;
import io.nrt4j.NrtTensor;
import io.nrt4j.net.NetDestAddr;
import io.nrt4j.net.NetOpsInfo;
import io.nrt4j.net.NetSrcAddr;
import io.nrt4j.net.NetworkProxy;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/**
 * One pass of the worker over 128 active tasks that only wait, beside 128 plain interface calls that return a constant. Both call
 * through one call site that knows two classes, as the worker's does with network and barrier tasks.
 */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 5, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(3)
@State(Scope.Thread)
public class WorkerTickBenchmark {
    private static final int TASKS = 128;

    private interface Constant {
        NrtStatus get();
    }

    private static final class First implements Constant {
        @Override
        public NrtStatus get() {
            return NrtStatus.SUCCESS;
        }
    }

    private static final class Second implements Constant {
        @Override
        public NrtStatus get() {
            return NrtStatus.SUCCESS;
        }
    }

    /** A task whose step is as cheap as one can be. */
    private static class IdleTask extends ProxyTask {
        IdleTask(final EncContext ctx, final TaskType type) {
            super(ctx, 0, type);
            move(RunState.IDLE);
        }

        @Override
        public NrtStatus step() {
            return NrtStatus.SUCCESS;
        }
    }

    private static final class OtherIdleTask extends IdleTask {
        OtherIdleTask(final EncContext ctx) {
            super(ctx, TaskType.BARRIER);
        }

        @Override
        public NrtStatus step() {
            return NrtStatus.SUCCESS;
        }
    }

    private final Constant[] constants = new Constant[TASKS];
    private final NrtTensor word = NrtTensor.allocate(4);
    private GlobalComm[] comms;

    private static GlobalComm comm(final int device) {
        final NrtConfig config = NrtConfig.builder(Map.of(), Map.of()).build();
        // Registries without threads: the benchmark makes the passes.
        return GlobalComm.setup(new SharedProxyQueues(worker -> { }), config, device, 0, new IdleProxy(NetworkProxy.IDLE, false), 1,
            new ProcessBarrier(1).of(0));
    }

    /** Makes a queue of each kind of task. */
    @Setup
    public void setUp() {
        comms = new GlobalComm[] {comm(0), comm(1), comm(2)};
        word.view(0, 4).putInt(0, DeviceTrigger.BLOCKED);
        final FifoSet set = new FifoSet(new NetOpsInfo[0], new NetSrcAddr[0], new NetDestAddr[0]);
        for (int i = 0; i < TASKS; i++) {
            constants[i] = i % 2 == 0 ? new First() : new Second();
            final EncContext plain = EncContext.builder(comms[0]).build();
            comms[0].queue().append(i % 2 == 0 ? new IdleTask(plain, TaskType.NETWORK) : new OtherIdleTask(plain));
            comms[1].queue().append(new NetworkProxyTask(EncContext.builder(comms[1]).block(0, i, set).build(), i));
            final EncContext closed = EncContext.builder(comms[2]).block(0, i, set).trigger(new long[] {word.address()}, 1).build();
            comms[2].queue().append(i % 2 == 0 ? new NetworkProxyTask(closed, i) : new BarrierProxyTask(closed, i));
        }
    }

    /** Frees the words. */
    @TearDown
    public void tearDown() {
        word.close();
    }

    /** 128 calls. */
    @Benchmark
    public int control() {
        int sum = 0;
        for (int i = 0; i < TASKS; i++) {
            if (constants[i].get() == NrtStatus.SUCCESS) {
                sum++;
            }
        }
        return sum;
    }

    /** A pass over tasks with an empty step: the driver's own cost. */
    @Benchmark
    public int tickOf128IdleTasks() {
        return comms[0].queue().doWork();
    }

    /** A pass over network tasks whose far side has nothing to report. */
    @Benchmark
    public int tickOf128IdleNetworkTasks() {
        return comms[1].queue().doWork();
    }

    /** A pass over tasks whose trigger is closed. */
    @Benchmark
    public int tickOf128TasksThatWaitForTheirTrigger() {
        return comms[2].queue().doWork();
    }
}
