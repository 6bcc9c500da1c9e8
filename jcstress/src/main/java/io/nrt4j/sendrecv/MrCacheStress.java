package io.nrt4j.sendrecv;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import io.nrt4j.NrtTensor;
import java.util.concurrent.ThreadLocalRandom;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.LLL_Result;
import org.openjdk.jcstress.infra.results.LL_Result;
import org.openjdk.jcstress.infra.results.L_Result;

/** Suite 7: the registrations of a communicator. What is registered once is deregistered once, and never after the communicator. */
public final class MrCacheStress {
    private MrCacheStress() {
    }

    /** A poster looks up what the service thread registers. */
    @JCStressTest
    @Outcome(id = "0, 1", expect = ACCEPTABLE, desc = "Not registered yet.")
    @Outcome(id = "1001, 1", expect = ACCEPTABLE, desc = "The registration.")
    @Outcome(expect = FORBIDDEN, desc = "A registration that is not whole, or a second one.")
    @State
    public static class LookUp {
        private final StubTransport transport = new StubTransport();
        private final MrCache cache = new MrCache(transport, 1);
        private final NrtTensor tensor = StressRig.tensor();

        @Actor
        public void poster(final LL_Result result) {
            result.r1 = cache.find(tensor.storage());
        }

        @Actor
        public void service() {
            cache.findOrRegister(tensor.storage(), tensor.placement());
        }

        @Arbiter
        public void count(final LL_Result result) {
            result.r2 = transport.registrations.get();
        }
    }

    /** Two register the same memory. */
    @JCStressTest
    @Outcome(id = "1001, 1001, 1", expect = ACCEPTABLE, desc = "One registration for both.")
    @Outcome(expect = FORBIDDEN, desc = "Registered twice: one of them is never ended.")
    @State
    public static class RegisteredOnce {
        private final StubTransport transport = new StubTransport();
        private final MrCache cache = new MrCache(transport, 1);
        private final NrtTensor tensor = StressRig.tensor();

        @Actor
        public void first(final LLL_Result result) {
            result.r1 = cache.findOrRegister(tensor.storage(), tensor.placement());
        }

        @Actor
        public void second(final LLL_Result result) {
            result.r2 = cache.findOrRegister(tensor.storage(), tensor.placement());
        }

        @Arbiter
        public void count(final LLL_Result result) {
            result.r3 = transport.registrations.get();
        }
    }

    /** The tensor is closed while the service thread registers it for a request that uses it. */
    @JCStressTest
    @Outcome(id = "1 of 1 ended, 0 kept", expect = ACCEPTABLE, desc = "Registered once, ended once, by the last use.")
    @Outcome(expect = FORBIDDEN, desc = "A registration outlives its memory, or was ended twice.")
    @State
    public static class TensorClosedWhileRegistered {
        private final StubTransport transport = new StubTransport();
        private final MrCache cache = new MrCache(transport, 1);
        private final NrtTensor tensor = StressRig.tensor();

        public TensorClosedWhileRegistered() {
            tensor.storage().retain();
        }

        @Actor
        public void service() {
            cache.findOrRegister(tensor.storage(), tensor.placement());
            tensor.storage().release();
        }

        /** Somewhere in the registration, or about when the last use ends. */
        @Actor
        public void application() {
            final int delay = ThreadLocalRandom.current().nextInt(80);
            for (int i = 0; i < delay; i++) {
                Thread.onSpinWait();
            }
            tensor.close();
        }

        @Arbiter
        public void count(final L_Result result) {
            result.r1 = account(transport, cache);
        }
    }

    /** A look-up by a poster that wants to use the tensor, against the tensor's close: a registration that is found stands. */
    @JCStressTest
    @Outcome(id = "closed, 1 of 1 ended, 0 kept", expect = ACCEPTABLE, desc = "The close came first.")
    @Outcome(id = "found 0, 1 of 1 ended, 0 kept", expect = ACCEPTABLE, desc = "The use came first: the registration stands under it.")
    @Outcome(expect = FORBIDDEN, desc = "Found, but ended already; or not found although used.")
    @State
    public static class LookUpWhileTensorCloses {
        private final StubTransport transport = new StubTransport();
        private final MrCache cache = new MrCache(transport, 1);
        private final NrtTensor tensor = StressRig.tensor();

        public LookUpWhileTensorCloses() {
            tensor.storage().retain();
            cache.findOrRegister(tensor.storage(), tensor.placement());
            tensor.storage().release();
        }

        @Actor
        public void poster(final LL_Result result) {
            if (!tensor.storage().retain()) {
                result.r1 = "closed";
            } else {
                final long found = cache.find(tensor.storage());
                result.r1 = found == MrCache.NONE ? "not found" : "found " + transport.deregistrations.get();
                tensor.storage().release();
            }
        }

        @Actor
        public void application() {
            tensor.close();
        }

        @Arbiter
        public void count(final LL_Result result) {
            result.r2 = account(transport, cache);
        }
    }

    /** The communicator is closed while a tensor is: the registration ends with one of the two, not with both. */
    @JCStressTest
    @Outcome(id = {"0 of 1 ended, 0 kept", "1 of 1 ended, 0 kept"}, expect = ACCEPTABLE,
        desc = "Ended with the communicator, or by the tensor before that.")
    @Outcome(expect = FORBIDDEN, desc = "Ended after the communicator was closed, or still kept.")
    @State
    public static class CommunicatorClosedWhileTensorCloses {
        private final StubTransport transport = new StubTransport();
        private final MrCache cache = new MrCache(transport, 1);
        private final NrtTensor tensor = StressRig.tensor();

        public CommunicatorClosedWhileTensorCloses() {
            tensor.storage().retain();
            cache.findOrRegister(tensor.storage(), tensor.placement());
            tensor.storage().release();
        }

        @Actor
        public void closer() {
            cache.close(() -> transport.closeSend(1));
        }

        @Actor
        public void application() {
            tensor.close();
        }

        @Arbiter
        public void count(final L_Result result) {
            result.r1 = account(transport, cache);
        }
    }

    private static String account(final StubTransport transport, final MrCache cache) {
        return transport.deregistrations.get() + " of " + transport.registrations.get() + " ended, " + cache.size() + " kept"
            + (transport.faults.get() == 0 ? "" : ", one of them too late");
    }
}
