package io.nrt4j.net.libfabric;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import java.nio.charset.StandardCharsets;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.LLL_Result;
import org.openjdk.jcstress.infra.results.LL_Result;
import org.openjdk.jcstress.infra.results.L_Result;

/** Endpoints of one process over shm: each is closed once, and never while another one that reaches it may use its memory. */
public final class NeighboursStress {
    private static final AtomicLong NUMBERS = new AtomicLong();

    private NeighboursStress() {
    }

    /** An endpoint whose native close does nothing but take some time and keep account. */
    static final class Endpoint {
        private final byte[] name = ("fi_shm://1:" + NUMBERS.incrementAndGet()).getBytes(StandardCharsets.US_ASCII);
        private final Neighbours neighbours = new Neighbours(this::close, name);
        private final AtomicInteger closes = new AtomicInteger();
        private final Endpoint[] users;
        private volatile boolean ending;
        private volatile boolean usedAfterClose;

        /**
         * Opens it.
         *
         * @param users endpoints that reach it.
         */
        Endpoint(final Endpoint... users) {
            this.users = users;
            for (final Endpoint user : users) {
                user.reach(this);
            }
        }

        private void close() {
            for (final Endpoint user : users) {
                usedAfterClose |= !user.ending;
            }
            closes.incrementAndGet();
            for (int i = 0; i < 20; i++) {
                Thread.onSpinWait();
            }
        }

        boolean reach(final Endpoint other) {
            return neighbours.reach(other.name);
        }

        void end() {
            ending = true;
            neighbours.end();
        }

        boolean isClosed() {
            return closes.get() > 0;
        }

        String account() {
            return closes.get() + (usedAfterClose ? " under a user" : "");
        }
    }

    /** One is introduced to another one that ends. */
    @JCStressTest
    @Outcome(id = "reached, kept, 1 1", expect = ACCEPTABLE, desc = "It came first: the other one stays until it ends itself.")
    @Outcome(id = "refused, closed, 1 1", expect = ACCEPTABLE, desc = "Told that the other one is being closed.")
    @Outcome(id = "too late, closed, 1 1", expect = ACCEPTABLE, desc = "The other one was gone: the provider will not find its name.")
    @Outcome(expect = FORBIDDEN, desc = "It may send into memory that goes, or one of them was closed twice or never.")
    @State
    public static class ReachAgainstEnd {
        private final Endpoint reached = new Endpoint();
        private final Endpoint reaching = new Endpoint();

        @Actor
        public void introducer(final LLL_Result result) {
            if (!reaching.reach(reached)) {
                result.r1 = "refused";
            } else {
                result.r1 = reached.isClosed() ? "too late" : "reached";
            }
        }

        @Actor
        public void closer() {
            reached.end();
        }

        @Arbiter
        public void end(final LLL_Result result) {
            result.r2 = reached.isClosed() ? "closed" : "kept";
            reaching.end();
            result.r3 = reaching.account() + " " + reached.account();
        }
    }

    /** Two that reach each other end at once. */
    @JCStressTest
    @Outcome(id = "1, 1", expect = ACCEPTABLE, desc = "Both are closed, once, by whoever came second.")
    @Outcome(expect = FORBIDDEN, desc = "One was closed twice, or never, or under the other.")
    @State
    public static class TwoEnds {
        private final Endpoint one = new Endpoint();
        private final Endpoint other = new Endpoint(one);

        public TwoEnds() {
            other.reach(one);
        }

        @Actor
        public void first() {
            one.end();
        }

        @Actor
        public void second() {
            other.end();
        }

        @Arbiter
        public void count(final LL_Result result) {
            result.r1 = one.account();
            result.r2 = other.account();
        }
    }

    /** One ends, and so does the other one, which it reaches. */
    @JCStressTest
    @Outcome(id = "1, 1", expect = ACCEPTABLE, desc = "Each is closed once; the one that is reached not before the other one ends.")
    @Outcome(expect = FORBIDDEN, desc = "The one that is reached was closed twice, or never, or under the other.")
    @State
    public static class EndAgainstEndOfReached {
        private final Endpoint reaching = new Endpoint();
        private final Endpoint reached = new Endpoint(reaching);

        @Actor
        public void first() {
            reaching.end();
        }

        @Actor
        public void second() {
            reached.end();
        }

        @Arbiter
        public void count(final LL_Result result) {
            result.r1 = reaching.account();
            result.r2 = reached.account();
        }
    }

    /** The two last that reach one which waits for them end at once. */
    @JCStressTest
    @Outcome(id = "1, 1, 1", expect = ACCEPTABLE, desc = "The last one closes what waited.")
    @Outcome(expect = FORBIDDEN, desc = "What waited was closed twice, or never, or under one of them.")
    @State
    public static class TwoLastUsers {
        private final Endpoint one = new Endpoint();
        private final Endpoint other = new Endpoint();
        private final Endpoint reached = new Endpoint(one, other);

        public TwoLastUsers() {
            reached.end();
        }

        @Actor
        public void first() {
            one.end();
        }

        @Actor
        public void second() {
            other.end();
        }

        @Arbiter
        public void count(final LLL_Result result) {
            result.r1 = one.account();
            result.r2 = other.account();
            result.r3 = reached.account();
        }
    }

    /** Two are introduced to a third one at once. */
    @JCStressTest
    @Outcome(id = "true true 0 0 1", expect = ACCEPTABLE, desc = "It stays until both have ended.")
    @Outcome(expect = FORBIDDEN, desc = "One of the two was forgotten.")
    @State
    public static class ReachReach {
        private final Endpoint reached = new Endpoint();
        private final Endpoint one = new Endpoint();
        private final Endpoint other = new Endpoint();
        private boolean first;
        private boolean second;

        @Actor
        public void first() {
            first = one.reach(reached);
        }

        @Actor
        public void second() {
            second = other.reach(reached);
        }

        @Arbiter
        public void count(final L_Result result) {
            final StringBuilder seen = new StringBuilder().append(first).append(' ').append(second);
            for (final Endpoint next : new Endpoint[] {reached, one, other}) {
                next.end();
                seen.append(' ').append(reached.account());
            }
            result.r1 = seen.toString();
        }
    }
}
