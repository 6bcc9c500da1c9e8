package io.nrt4j.sendrecv;

import io.nrt4j.NrtTensor;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
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
 * The hot path with 8 bytes: post send, post receive, test both, hot tensors, one thread, beside a control that does the same
 * copy and as many uncontended locks and ordered writes as the path has.
 *
 * <p>Counted from the code, for one exchange over the loopback transport:
 *
 * <pre>
 *                                          post send  post recv  test send  test recv   sum
 *   ReentrantLock lock and unlock
 *     pool of slots (LockedStack)              1          1          1          1         4
 *     registration cache (MrCache)             1          1                               2
 *     data path (LockedNet)                    1          1          1          1         4    10
 *   atomic read-modify-write, as costly as a volatile write
 *     use of the storage                       1          1          1          1         4
 *     end of the slot's use                                          1          1         2
 *     channel's spin lock                      1          1                               2     8
 *   release store
 *     channel's spin lock                      1          1                               2
 *     request armed, recycled                  1          1          1          1         4
 *     slot posted                              1          1                               2
 *     both completed (by the second post)                 2                               2    10
 * </pre>
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 5, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(3)
public class SmallMessageBenchmark {
    private static final int LENGTH = 8;
    private static final int LOCK_PAIRS = 10;
    private static final int VOLATILE_WRITES = 8;
    private static final int RELEASE_STORES = 10;
    private static final VarHandle WORD;

    static {
        try {
            WORD = MethodHandles.lookup().findVarHandle(Word.class, "value", long.class);
        } catch (final ReflectiveOperationException ex) {
            throw new ExceptionInInitializerError(ex);
        }
    }

    /** Something that is written in order. */
    static final class Word {
        private long value;

        long value() {
            return value;
        }
    }

    private LoopbackPairs pairs;
    private NrtTensor from;
    private NrtTensor to;
    private ByteBuffer source;
    private ByteBuffer target;
    private ReentrantLock[] locks;
    private Word[] words;
    private long count;

    /** Connects a pair and registers the tensors. */
    @Setup
    public void setup() {
        pairs = LoopbackPairs.open(1, 1);
        from = NrtTensor.allocate(LENGTH);
        to = NrtTensor.allocate(LENGTH);
        pairs.warm(from, to, LENGTH);
        source = from.view(0, LENGTH);
        target = to.view(0, LENGTH);
        locks = new ReentrantLock[LOCK_PAIRS];
        for (int i = 0; i < LOCK_PAIRS; i++) {
            locks[i] = new ReentrantLock();
        }
        words = new Word[RELEASE_STORES];
        for (int i = 0; i < RELEASE_STORES; i++) {
            words[i] = new Word();
        }
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

    /** The same copy, locks and writes. */
    @Benchmark
    public long control() {
        count++;
        for (int i = 0; i < LOCK_PAIRS; i++) {
            locks[i].lock();
            try {
                WORD.setRelease(words[i], count);
                if (i < VOLATILE_WRITES) {
                    WORD.setVolatile(words[i], count + 1);
                }
            } finally {
                locks[i].unlock();
            }
        }
        target.put(0, source, 0, LENGTH);
        return words[0].value();
    }
}
