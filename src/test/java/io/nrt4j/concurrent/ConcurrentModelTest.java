package io.nrt4j.concurrent;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nrt4j.testing.ModelChecking;
import java.util.ArrayDeque;
import java.util.Deque;
import org.jetbrains.lincheck.datastructures.IntGen;
import org.jetbrains.lincheck.datastructures.Operation;
import org.jetbrains.lincheck.datastructures.Param;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The ring and the pool, model-checked against what they are for one thread. */
@Tag("slow")
@Timeout(300)
class ConcurrentModelTest {
    private static final int CAPACITY = 2;

    /** A ring, its producers and its consumer, and anybody who asks. */
    public static class Ring {
        private final SpscRing<Integer> ring = new SpscRing<>(CAPACITY);

        @Operation(nonParallelGroup = "producer")
        public boolean offer(@Param(gen = IntGen.class) final int element) {
            return ring.offer(element);
        }

        @Operation(nonParallelGroup = "consumer")
        public Integer poll() {
            return ring.poll();
        }

        @Operation(nonParallelGroup = "consumer")
        public Integer peek() {
            return ring.peek();
        }

        @Operation(nonParallelGroup = "producer")
        public boolean isEmptyForProducer() {
            return ring.isEmpty();
        }
    }

    /** The ring for one thread. */
    public static class SequentialRing {
        private final Deque<Integer> elements = new ArrayDeque<>();

        public boolean offer(final int element) {
            return elements.size() < CAPACITY && elements.add(element);
        }

        public Integer poll() {
            return elements.poll();
        }

        public Integer peek() {
            return elements.peek();
        }

        public boolean isEmptyForProducer() {
            return elements.isEmpty();
        }
    }

    /** A ring with two producers that do not take turns, which it is not made for. */
    public static class RingWithoutTurns {
        private final SpscRing<Integer> ring = new SpscRing<>(CAPACITY);

        @Operation
        public boolean offer(@Param(gen = IntGen.class) final int element) {
            return ring.offer(element);
        }

        @Operation(nonParallelGroup = "consumer")
        public Integer poll() {
            return ring.poll();
        }
    }

    /** A pool. */
    public static class Pool {
        private final LockedStack<Integer> pool = new LockedStack<>(2 * 7);

        @Operation
        public void push(@Param(gen = IntGen.class) final int element) {
            pool.push(element);
        }

        @Operation
        public Integer pop() {
            return pool.pop();
        }

        @Operation
        public int size() {
            return pool.size();
        }
    }

    /** The pool for one thread. */
    public static class SequentialPool {
        private final Deque<Integer> elements = new ArrayDeque<>();

        public void push(final int element) {
            elements.push(element);
        }

        public Integer pop() {
            return elements.poll();
        }

        public int size() {
            return elements.size();
        }
    }

    /** A pool that is asked for its size first: what it has then may be gone before the pop. */
    public static class PoolInTwoSteps {
        private final LockedStack<Integer> pool = new LockedStack<>(2 * 7);

        @Operation
        public void push(@Param(gen = IntGen.class) final int element) {
            pool.push(element);
        }

        @Operation
        public Integer pop() {
            return pool.size() > 0 ? Integer.valueOf(pool.pop()) : null;
        }
    }

    @Test
    void theRingIsLinearizable() {
        ModelChecking.check(10, 400, Ring.class, SequentialRing.class);
    }

    @Test
    void theRingWithoutTurnsIsNot() {
        assertThatThrownBy(() -> ModelChecking.check(10, 400, RingWithoutTurns.class, SequentialRing.class))
            .isInstanceOf(AssertionError.class);
    }

    @Test
    void thePoolIsLinearizable() {
        ModelChecking.check(10, 400, Pool.class, SequentialPool.class);
    }

    @Test
    void thePoolInTwoStepsIsNot() {
        assertThatThrownBy(() -> ModelChecking.check(10, 400, PoolInTwoSteps.class, SequentialPool.class))
            .isInstanceOf(AssertionError.class);
    }
}
