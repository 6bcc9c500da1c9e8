package io.nrt4j.concurrent;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.II_Result;
import org.openjdk.jcstress.infra.results.I_Result;
import org.openjdk.jcstress.infra.results.LLL_Result;
import org.openjdk.jcstress.infra.results.L_Result;
import org.openjdk.jcstress.infra.results.ZLL_Result;

/** Suite 1: {@link SpscRing} between its producer, its consumer and those who only ask. */
public final class SpscRingStress {
    private SpscRingStress() {
    }

    /** Something with a plain field, written before it is appended. */
    static final class Item {
        private int value;
    }

    /** What was written before an element was appended is seen by who takes it. */
    @JCStressTest
    @Outcome(id = "-1", expect = ACCEPTABLE, desc = "The consumer came first.")
    @Outcome(id = "1", expect = ACCEPTABLE, desc = "The element, with all that was written before it was appended.")
    @Outcome(expect = FORBIDDEN, desc = "An element whose content is not there yet, or no element at all.")
    @State
    public static class Publish {
        private final SpscRing<Item> ring = new SpscRing<>(4);
        private final Item item = new Item();

        @Actor
        public void producer() {
            item.value = 1;
            ring.offer(item);
        }

        @Actor
        public void consumer(final I_Result result) {
            if (ring.isEmpty()) {
                result.r1 = -1;
            } else {
                final Item taken = ring.poll();
                result.r1 = taken == null ? -2 : taken.value;
            }
        }
    }

    /** A full ring refuses, and takes again once the consumer has dropped one; nothing is overwritten. */
    @JCStressTest
    @Outcome(id = "false, a, b", expect = ACCEPTABLE, desc = "Full: the producer came first.")
    @Outcome(id = "true, a, bc", expect = ACCEPTABLE, desc = "The consumer made room.")
    @Outcome(expect = FORBIDDEN, desc = "An element was lost, overwritten or taken out of order.")
    @State
    public static class Full {
        private final SpscRing<String> ring = new SpscRing<>(2);

        public Full() {
            ring.offer("a");
            ring.offer("b");
        }

        @Actor
        public void producer(final ZLL_Result result) {
            result.r1 = ring.offer("c");
        }

        @Actor
        public void consumer(final ZLL_Result result) {
            result.r2 = ring.poll();
        }

        @Arbiter
        public void rest(final ZLL_Result result) {
            result.r3 = SpscRingStress.rest(ring);
        }
    }

    /** Who finds the ring empty sees what the consumer did before it dropped the last element: the gate rests on this. */
    @JCStressTest
    @Outcome(id = "-1", expect = ACCEPTABLE, desc = "Not empty yet.")
    @Outcome(id = "1", expect = ACCEPTABLE, desc = "Empty, and what the consumer did before is seen.")
    @Outcome(expect = FORBIDDEN, desc = "Empty, but what the consumer did before is not seen.")
    @State
    public static class Empty {
        private final SpscRing<String> ring = new SpscRing<>(2);
        private int posted;

        public Empty() {
            ring.offer("a");
        }

        @Actor
        public void consumer() {
            ring.peek();
            posted = 1;
            ring.advance();
        }

        @Actor
        public void producer(final I_Result result) {
            result.r1 = ring.isEmpty() ? posted : -1;
        }
    }

    /** Sixteen go in and sixteen come out of a ring of 128 that is all but full, across the end of its slots. */
    @JCStressTest
    @Outcome(id = "in order, whole, straight", expect = ACCEPTABLE, desc = "The consumer was far enough ahead.")
    @Outcome(id = "in order, whole, waited", expect = ACCEPTABLE, desc = "The ring was full at times, and took the rest later.")
    @Outcome(expect = FORBIDDEN, desc = "An element was lost, doubled, overwritten or taken out of order.")
    @State
    public static class WrapAround {
        private static final int CAPACITY = 128;
        private static final int COUNT = 16;
        private static final int PATIENCE = 1000;
        private final SpscRing<Integer> ring = new SpscRing<>(CAPACITY);
        private int next = 1;

        /** The first element is in the last slot, and one slot is free. */
        public WrapAround() {
            for (int i = 0; i < CAPACITY - 1; i++) {
                ring.offer(0);
                ring.poll();
            }
            while (next < CAPACITY) {
                ring.offer(next++);
            }
        }

        @Actor
        public void producer(final LLL_Result result) {
            result.r3 = "straight";
            int left = PATIENCE;
            for (final int end = next + COUNT; next < end && left > 0;) {
                if (ring.offer(next)) {
                    next++;
                } else {
                    result.r3 = "waited";
                    left--;
                }
            }
        }

        @Actor
        public void consumer(final LLL_Result result) {
            result.r1 = inOrder(1, COUNT + 1);
        }

        @Arbiter
        public void rest(final LLL_Result result) {
            result.r2 = "in order".equals(inOrder(COUNT + 1, next)) && ring.isEmpty() ? "whole" : "torn";
        }

        private String inOrder(final int from, final int to) {
            for (int i = from; i < to; i++) {
                final Integer taken = ring.poll();
                if (taken == null || taken != i) {
                    return taken + " for " + i;
                }
            }
            return "in order";
        }
    }

    /** {@code size()} is a snapshot, but never an impossible one. Asked often, while one or two elements are in the ring. */
    @JCStressTest
    @Outcome(id = "1, [12]", expect = ACCEPTABLE, desc = "One or two, at any time; the greatest answer depends on when it was asked.")
    @Outcome(expect = FORBIDDEN, desc = "A size that the ring never had.")
    @State
    public static class Size {
        private static final int ROUNDS = 32;
        private final SpscRing<Integer> ring = new SpscRing<>(2);

        public Size() {
            ring.offer(1);
        }

        @Actor
        public void both() {
            for (int i = 0; i < ROUNDS; i++) {
                ring.offer(2);
                ring.poll();
            }
        }

        @Actor
        public void asker(final II_Result result) {
            int least = 1;
            int most = 1;
            for (int i = 0; i < ROUNDS; i++) {
                final int size = ring.size();
                least = Math.min(least, size);
                most = Math.max(most, size);
            }
            result.r1 = least;
            result.r2 = most;
        }
    }

    /** Producers that take turns under a lock of theirs, as posters do. */
    @JCStressTest
    @Outcome(id = {"ab", "ba"}, expect = ACCEPTABLE, desc = "Both, in the order of their turns.")
    @Outcome(expect = FORBIDDEN, desc = "One overwrote the other.")
    @State
    public static class TwoProducers {
        private final SpscRing<String> ring = new SpscRing<>(4);

        @Actor
        public void first() {
            synchronized (ring) {
                ring.offer("a");
            }
        }

        @Actor
        public void second() {
            synchronized (ring) {
                ring.offer("b");
            }
        }

        @Arbiter
        public void rest(final L_Result result) {
            result.r1 = SpscRingStress.rest(ring);
        }
    }

    private static String rest(final SpscRing<?> ring) {
        final StringBuilder rest = new StringBuilder();
        for (Object next = ring.poll(); next != null; next = ring.poll()) {
            rest.append(next);
        }
        return rest.toString();
    }
}
