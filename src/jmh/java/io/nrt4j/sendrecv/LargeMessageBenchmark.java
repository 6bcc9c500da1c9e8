package io.nrt4j.sendrecv;

import io.nrt4j.NrtTensor;
import java.nio.ByteBuffer;
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

/** An exchange of 1 MiB with hot tensors, beside the bare copy of 1 MiB between the same two tensors. */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 5, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(3)
public class LargeMessageBenchmark {
    private static final int LENGTH = 1 << 20;

    private LoopbackPairs pairs;
    private NrtTensor from;
    private NrtTensor to;
    private ByteBuffer source;
    private ByteBuffer target;

    /** Connects a pair and registers the tensors; for the control too, so that both find the same memory. */
    @Setup
    public void setup() {
        pairs = LoopbackPairs.open(1, 1);
        from = NrtTensor.allocate(LENGTH);
        to = NrtTensor.allocate(LENGTH);
        pairs.warm(from, to, LENGTH);
        source = from.view(0, LENGTH);
        target = to.view(0, LENGTH);
    }

    /** Closes all. */
    @TearDown
    public void tearDown() {
        pairs.close();
        from.close();
        to.close();
    }

    /** Post send, post receive, test both. */
    @Benchmark
    public long exchange() {
        return pairs.exchange(0, from, to, LENGTH);
    }

    /** The bare copy. */
    @Benchmark
    public ByteBuffer control() {
        return target.put(0, source, 0, LENGTH);
    }
}
