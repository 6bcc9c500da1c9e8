package io.nrt4j.sendrecv;

import io.nrt4j.NrtTensor;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/** Cost of an exchange of 8 bytes with 1, 16 and 128 LNCs, each with one connected communicator. */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 5, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(3)
public class LncScalingBenchmark {
    private static final int LENGTH = 8;

    /** How many. */
    @Param({"1", "16", "128"})
    public int lncs;

    private LoopbackPairs pairs;
    private NrtTensor from;
    private NrtTensor to;
    private int next;

    /** Connects the pairs and registers the tensors with each. */
    @Setup
    public void setup() {
        pairs = LoopbackPairs.open(lncs, 1);
        from = NrtTensor.allocate(LENGTH);
        to = NrtTensor.allocate(LENGTH);
        pairs.warm(from, to, LENGTH);
    }

    /** Closes all. */
    @TearDown
    public void tearDown() {
        pairs.close();
        from.close();
        to.close();
    }

    /** One LNC after the other. */
    @Benchmark
    public long exchange() {
        next = next + 1 == pairs.count() ? 0 : next + 1;
        return pairs.exchange(next, from, to, LENGTH);
    }

    /** The first alone, among as many: what remains beside the processor's caches. */
    @Benchmark
    public long exchangeOnFirst() {
        return pairs.exchange(0, from, to, LENGTH);
    }
}
