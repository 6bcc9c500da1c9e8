package io.nrt4j.proxy;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import io.nrt4j.NrtException;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.LLL_Result;

/**
 * Suite 11: the registry of shared queues. The workers' threads are not started here: a worker that was told to stop is one whose queue
 * refuses tasks. {@link ProxyEngineStress} has the threads.
 */
public final class SharedProxyQueuesStress {
    private static final int GID = 7;

    private SharedProxyQueuesStress() {
    }

    /** What all of them need. */
    abstract static class Shared {
        final StressProxy proxy = new StressProxy(false);
        final SharedProxyQueues registry = proxy.registry;

        final ProxyQueue acquire() {
            return registry.acquire(GID, StressProxy.CONFIG);
        }

        final String release(final ProxyQueue queue) {
            try {
                registry.release(queue);
                return "released";
            } catch (final NrtException ex) {
                return ex.status().name();
            }
        }

        /** Whether a queue's worker still has to do its work. */
        final String state(final ProxyQueue queue) {
            final EncContext other = EncContext.builder(new StressProxy(false).comm()).build();
            return StressProxy.takesTasks(queue, other) ? "works" : "was stopped";
        }

        final String account() {
            return proxy.workersStarted() + " started, " + registry.users(GID) + " users";
        }
    }

    /** Two communicators of a group are set up at once. */
    @JCStressTest
    @Outcome(id = "works, same, 1 started, 2 users", expect = ACCEPTABLE, desc = "One worker for both.")
    @Outcome(expect = FORBIDDEN, desc = "Two workers of one group, or a user is not counted.")
    @State
    public static class AcquireAcquire extends Shared {
        private ProxyQueue one;
        private ProxyQueue other;

        @Actor
        public void first() {
            one = acquire();
        }

        @Actor
        public void second() {
            other = acquire();
        }

        @Arbiter
        public void end(final LLL_Result result) {
            result.r1 = state(one);
            result.r2 = one == other ? "same" : "two queues";
            result.r3 = account();
        }
    }

    /** A communicator is set up while the group's last one is freed. */
    @JCStressTest
    @Outcome(id = "released, works, 1 started, 1 users", expect = ACCEPTABLE, desc = "Shared: it came before the release.")
    @Outcome(id = "released, works, 2 started, 1 users", expect = ACCEPTABLE, desc = "A new worker, after the old one was stopped.")
    @Outcome(expect = FORBIDDEN, desc = "A queue was handed out whose worker stops, or two workers run at once.")
    @State
    public static class AcquireAgainstLastRelease extends Shared {
        private final ProxyQueue old = acquire();
        private ProxyQueue acquired;

        @Actor
        public void leaver(final LLL_Result result) {
            result.r1 = release(old);
        }

        @Actor
        public void comer() {
            acquired = acquire();
        }

        @Arbiter
        public void end(final LLL_Result result) {
            result.r2 = state(acquired) + (acquired != old && "works".equals(state(old)) ? ", and the old one too" : "");
            result.r3 = account();
        }
    }

    /** One use is given back twice. */
    @JCStressTest
    @Outcome(id = {"released, INVALID_HANDLE, 1 started, 0 users", "INVALID_HANDLE, released, 1 started, 0 users"},
        expect = ACCEPTABLE, desc = "Once; the other is told.")
    @Outcome(expect = FORBIDDEN, desc = "Given back twice, or not at all.")
    @State
    public static class DoubleRelease extends Shared {
        private final ProxyQueue queue = acquire();

        @Actor
        public void first(final LLL_Result result) {
            result.r1 = release(queue);
        }

        @Actor
        public void second(final LLL_Result result) {
            result.r2 = release(queue);
        }

        @Arbiter
        public void end(final LLL_Result result) {
            result.r3 = account();
        }
    }

    /** The two last users leave. */
    @JCStressTest
    @Outcome(id = "released, released, was stopped, 1 started, 0 users", expect = ACCEPTABLE, desc = "The last one stopped the worker.")
    @Outcome(expect = FORBIDDEN, desc = "Nobody stopped the worker, or one was refused.")
    @State
    public static class TwoLastReleases extends Shared {
        private final ProxyQueue queue = acquire();

        public TwoLastReleases() {
            acquire();
        }

        @Actor
        public void first(final LLL_Result result) {
            result.r1 = release(queue);
        }

        @Actor
        public void second(final LLL_Result result) {
            result.r2 = release(queue);
        }

        @Arbiter
        public void end(final LLL_Result result) {
            result.r3 = state(queue) + ", " + account();
        }
    }
}
