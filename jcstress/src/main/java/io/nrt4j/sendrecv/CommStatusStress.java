package io.nrt4j.sendrecv;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.L_Result;

/** Suite 8: what a communicator's status publishes. */
public final class CommStatusStress {
    private CommStatusStress() {
    }

    /** A poster that sees CONNECTED sees the transport's communicator and the registrations. */
    @JCStressTest
    @Outcome(id = "NET_CONNECT", expect = ACCEPTABLE, desc = "Not connected yet.")
    @Outcome(id = "CONNECTED true", expect = ACCEPTABLE, desc = "Connected, with all that a post needs.")
    @Outcome(expect = FORBIDDEN, desc = "Connected, but what a post needs is not there yet.")
    @State
    public static class Connected {
        private final StressRig rig = new StressRig();
        private final Communicator comm = rig.connecting();

        @Actor
        public void service() {
            rig.context.service().doWork();
        }

        @Actor
        public void poster(final L_Result result) {
            final CommStatus seen = comm.status();
            result.r1 = seen != CommStatus.CONNECTED ? seen.name()
                : seen + " " + (comm.netComm() != 0 && comm.mrCache() != null && comm.mrCache().size() == 0);
        }

        @Arbiter
        public void end(final L_Result result) {
            rig.close();
        }
    }

    /** Who sees CONNECTION_ERROR sees why. */
    @JCStressTest
    @Outcome(id = "NET_CONNECT", expect = ACCEPTABLE, desc = "Not failed yet.")
    @Outcome(id = "CONNECTION_ERROR true", expect = ACCEPTABLE, desc = "Failed, with its reason.")
    @Outcome(expect = FORBIDDEN, desc = "Failed without a reason: testComm would stumble over it.")
    @State
    public static class Failed {
        private final StressRig rig = new StressRig();
        private final Communicator comm = rig.connecting();

        @Actor
        public void closer() {
            rig.context.service().abortConnecting();
        }

        @Actor
        public void application(final L_Result result) {
            final CommStatus seen = comm.status();
            result.r1 = seen != CommStatus.CONNECTION_ERROR ? seen.name() : seen + " " + (comm.failure() != null);
        }

        @Arbiter
        public void end(final L_Result result) {
            rig.close();
        }
    }
}
