package io.nrt4j.proxy;

import io.nrt4j.NrtConfig;
import io.nrt4j.NrtTensor;
import io.nrt4j.net.NativeWord;
import io.nrt4j.net.NetDestAddr;
import io.nrt4j.net.NetOpsInfo;
import io.nrt4j.net.NetSrcAddr;
import io.nrt4j.net.NetworkProxy;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/**
 * From the device's store into a trigger word to the first progress call across the seam, while the worker spins or yields. The
 * percentiles of JMH's own report tell the median.
 */
@BenchmarkMode(Mode.SampleTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 3, time = 2)
@Measurement(iterations = 5, time = 2)
@Fork(3)
@State(Scope.Thread)
public class TriggerBenchmark {
    private static final FifoSet SET = new FifoSet(new NetOpsInfo[0], new NetSrcAddr[0], new NetDestAddr[0]);

    /** Whether the worker spins; the first is the one to compare with. */
    @Param({"true", "false"})
    private boolean spins;

    private final TaskStatus status = new TaskStatus();
    private final IdleProxy proxy = new IdleProxy(NetworkProxy.DONE, true);
    private final NrtTensor memory = NrtTensor.allocate(4);
    private final NativeWord word = NativeWord.at(memory.address());
    private GlobalComm comm;
    private EncContext ctx;

    /** Starts the worker. */
    @Setup
    public void start() {
        final NrtConfig config = NrtConfig.builder(Map.of(), Map.of("NEURON_RT_ONE_THREAD_PER_CORE", Boolean.toString(spins))).build();
        comm = GlobalComm.setup(new SharedProxyQueues(), config, 0, 0, proxy, 1, new ProcessBarrier(1).of(0));
        ctx = EncContext.builder(comm).block(0, 0, SET).trigger(new long[] {word.address()}, 1).build();
    }

    /** Appends a task and waits until it waits for its trigger. */
    @Setup(Level.Invocation)
    public void close() {
        while (ProxyTasks.checkNetworkTaskStatus(ctx, status) == io.nrt4j.NrtStatus.SUCCESS && !status.done()) {
            Thread.onSpinWait();
        }
        word.store(DeviceTrigger.BLOCKED);
        final NetworkProxyTask task = new NetworkProxyTask(ctx, 0);
        comm.queue().append(task);
        while (task.state().runState() != RunState.WAITING_DEVICE_TRIGGER) {
            Thread.onSpinWait();
        }
    }

    /** Ends the worker. */
    @TearDown
    public void end() {
        comm.free();
        memory.close();
    }

    /** Store to progress. */
    @Benchmark
    public long triggerToFirstProgress() {
        final long before = proxy.progressCalls();
        word.store(1);
        while (proxy.progressCalls() == before) {
            Thread.onSpinWait();
        }
        return before;
    }
}
