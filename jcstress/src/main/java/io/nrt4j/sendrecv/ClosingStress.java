package io.nrt4j.sendrecv;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import io.nrt4j.NrtException;
import io.nrt4j.NrtTensor;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.LLL_Result;
import org.openjdk.jcstress.infra.results.LL_Result;

/** Suite 9, over one LNC: what races with its close. {@link LifeCycleEngineStress} has init and close themselves. */
public final class ClosingStress {
    private ClosingStress() {
    }

    /** A cold post. */
    @JCStressTest
    @Outcome(id = "posted, free, 1 of 1", expect = ACCEPTABLE, desc = "Stashed, then reclaimed by the close.")
    @Outcome(id = "CLOSED, free, [01] of [01]", expect = ACCEPTABLE, desc = "Refused: the slot was given back, or the close was faster.")
    @Outcome(expect = FORBIDDEN, desc = "A use of the tensor is left or was given back twice, or a slot went back twice.")
    @State
    public static class ColdPost {
        private final StressRig rig = new StressRig();
        private final NrtTensor cold = StressRig.tensor();
        private final SendRecvRequest request = new SendRecvRequest();

        @Actor
        public void poster(final LLL_Result result) {
            result.r1 = rig.post(cold, 1, request);
        }

        @Actor
        public void closer() {
            rig.close();
        }

        @Arbiter
        public void end(final LLL_Result result) {
            result.r2 = uses(cold);
            final int inPool = rig.comm.freelist().size();
            final boolean taken = request.slot() != null;
            // A slot that the close reclaims does not go back to the pool: nobody can post from it any more.
            result.r3 = taken ? "1 of " + (128 - inPool) : (128 - inPool) + " of " + (128 - inPool);
        }
    }

    /** A hot post. */
    @JCStressTest
    @Outcome(id = "posted, free, 2", expect = ACCEPTABLE, desc = "In the transport before it was closed; reclaimed by the close.")
    @Outcome(id = "CLOSED, free, 2", expect = ACCEPTABLE, desc = "Refused.")
    @Outcome(expect = FORBIDDEN, desc = "A use of the tensor is left or was given back twice, or an end was not closed.")
    @State
    public static class HotPost {
        private final StressRig rig = new StressRig();
        private final int before = rig.transport.endsClosed.get();
        private final NrtTensor hot = rig.hotTensor();
        private final SendRecvRequest request = new SendRecvRequest();

        @Actor
        public void poster(final LLL_Result result) {
            result.r1 = rig.post(hot, 1, request);
        }

        @Actor
        public void closer() {
            rig.close();
        }

        @Arbiter
        public void end(final LLL_Result result) {
            result.r2 = uses(hot);
            // The communicator's end, and both of the flush connection's, which is closed last.
            result.r3 = rig.transport.endsClosed.get() - before - 1;
        }
    }

    /** A test of a request in flight. */
    @JCStressTest
    @Outcome(id = "done, free", expect = ACCEPTABLE, desc = "Ended by the test.")
    @Outcome(id = "stale, free", expect = ACCEPTABLE, desc = "Ended by the close.")
    @Outcome(expect = FORBIDDEN, desc = "Ended by both or by none.")
    @State
    public static class Test {
        private final StressRig rig = new StressRig();
        private final NrtTensor hot = rig.hotTensor();
        private final SendRecvRequest request = new SendRecvRequest();

        public Test() {
            rig.post(hot, 1, request);
        }

        @Actor
        public void poller(final LL_Result result) {
            result.r1 = StressRig.test(request);
        }

        @Actor
        public void closer() {
            rig.close();
        }

        @Arbiter
        public void end(final LL_Result result) {
            result.r2 = uses(hot) + (rig.transport.faults.get() == 0 ? "" : ", the transport was asked for what it does not know");
        }
    }

    /** A connect. */
    @JCStressTest
    @Outcome(id = "made CONNECTION_ERROR, 1", expect = ACCEPTABLE, desc = "Made, and given up by the close.")
    @Outcome(id = "CLOSED, 1", expect = ACCEPTABLE, desc = "Refused.")
    @Outcome(expect = FORBIDDEN, desc = "A communicator that nobody closes.")
    @State
    public static class Connect {
        private final StressRig rig = new StressRig();
        private Communicator made;
        private String refused;

        @Actor
        public void application() {
            try {
                made = rig.context.newCommunicator(CommType.SEND_COMM, StressRig.PEER, 1);
            } catch (final NrtException ex) {
                refused = ex.status().name();
            }
        }

        @Actor
        public void closer() {
            rig.close();
        }

        @Arbiter
        public void end(final LL_Result result) {
            result.r1 = made == null ? refused : "made " + made.status();
            result.r2 = rig.context.communicatorCount();
        }
    }

    /** "free" when nobody holds the tensor's memory any more. */
    private static String uses(final NrtTensor tensor) {
        final String text = tensor.storage().toString();
        tensor.close();
        return text.contains(" 0 in use") ? "free" : text;
    }
}
