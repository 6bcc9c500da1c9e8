package io.nrt4j.concurrent;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.I_Result;
import org.openjdk.jcstress.infra.results.LLL_Result;
import org.openjdk.jcstress.infra.results.LL_Result;

/** Suite 2: {@link LockedStack} as a pool of requests. */
public final class LockedStackStress {
    private LockedStackStress() {
    }

    /** Two posters take a slot each. */
    @JCStressTest
    @Outcome(id = {"b, a, 0", "a, b, 0"}, expect = ACCEPTABLE, desc = "Each has its own.")
    @Outcome(expect = FORBIDDEN, desc = "A slot was handed out twice, or is lost.")
    @State
    public static class PopPop {
        private final LockedStack<String> pool = pool("a", "b");

        @Actor
        public void first(final LLL_Result result) {
            result.r1 = pool.pop();
        }

        @Actor
        public void second(final LLL_Result result) {
            result.r2 = pool.pop();
        }

        @Arbiter
        public void rest(final LLL_Result result) {
            result.r3 = pool.size();
        }
    }

    /** A poster takes a slot while a poller brings another back. */
    @JCStressTest
    @Outcome(id = "a, b", expect = ACCEPTABLE, desc = "The poster came first.")
    @Outcome(id = "b, a", expect = ACCEPTABLE, desc = "The poster got what was just brought back.")
    @Outcome(expect = FORBIDDEN, desc = "A slot was handed out twice, or is lost.")
    @State
    public static class PopPush {
        private final LockedStack<String> pool = pool("a");

        public PopPush() {
            pool.push("x");
            pool.pop();
        }

        @Actor
        public void poster(final LL_Result result) {
            result.r1 = pool.pop();
        }

        @Actor
        public void poller() {
            pool.push("b");
        }

        @Arbiter
        public void rest(final LL_Result result) {
            result.r2 = pool.pop() + (pool.pop() == null ? "" : " and more");
        }
    }

    /** The last slot goes to one of two. */
    @JCStressTest
    @Outcome(id = {"a, null", "null, a"}, expect = ACCEPTABLE, desc = "One got it, the other is told that there is none.")
    @Outcome(expect = FORBIDDEN, desc = "Both got it, or none did.")
    @State
    public static class Exhausted {
        private final LockedStack<String> pool = pool("a");

        @Actor
        public void first(final LL_Result result) {
            result.r1 = pool.pop();
        }

        @Actor
        public void second(final LL_Result result) {
            result.r2 = pool.pop();
        }
    }

    /** Two pollers bring a slot back each. */
    @JCStressTest
    @Outcome(id = {"b, a", "a, b"}, expect = ACCEPTABLE, desc = "Both are there.")
    @Outcome(expect = FORBIDDEN, desc = "One is lost.")
    @State
    public static class PushPush {
        private final LockedStack<String> pool = new LockedStack<>(2);

        @Actor
        public void first() {
            pool.push("a");
        }

        @Actor
        public void second() {
            pool.push("b");
        }

        @Arbiter
        public void rest(final LL_Result result) {
            result.r1 = pool.pop();
            result.r2 = pool.pop();
        }
    }

    /** Who takes a slot sees how the one before left it. */
    @JCStressTest
    @Outcome(id = "-1", expect = ACCEPTABLE, desc = "Nothing there yet.")
    @Outcome(id = "1", expect = ACCEPTABLE, desc = "The slot as it was left.")
    @Outcome(expect = FORBIDDEN, desc = "The slot as it was before.")
    @State
    public static class Publish {
        private final LockedStack<int[]> pool = new LockedStack<>(1);
        private final int[] slot = {0};

        @Actor
        public void poller() {
            slot[0] = 1;
            pool.push(slot);
        }

        @Actor
        public void poster(final I_Result result) {
            final int[] taken = pool.pop();
            result.r1 = taken == null ? -1 : taken[0];
        }
    }

    private static LockedStack<String> pool(final String... slots) {
        final LockedStack<String> pool = new LockedStack<>(2);
        for (final String slot : slots) {
            pool.push(slot);
        }
        return pool;
    }
}
