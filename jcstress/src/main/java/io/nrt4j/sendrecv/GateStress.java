package io.nrt4j.sendrecv;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import io.nrt4j.NrtTensor;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.LL_Result;
import org.openjdk.jcstress.infra.results.L_Result;

/** Suite 3: the gate between fast and slow path. The only order that the transport may see is that of the posts. */
public final class GateStress {
    private GateStress() {
    }

    /** A hot post behind a cold one that the service thread drains meanwhile. */
    @JCStressTest
    @Outcome(id = "12, true", expect = ACCEPTABLE, desc = "In order, whoever posted the hot one.")
    @Outcome(expect = FORBIDDEN, desc = "The hot one overtook the cold one, or a task is left or missing in the count.")
    @State
    public static class HotBehindCold {
        private final StressRig rig = new StressRig();
        private final NrtTensor hot = rig.hotTensor();
        private final SendRecvRequest second = new SendRecvRequest();

        public HotBehindCold() {
            rig.post(StressRig.tensor(), 1, new SendRecvRequest());
        }

        @Actor
        public void producer() {
            rig.post(hot, 2, second);
        }

        @Actor
        public void service() {
            rig.context.service().doWork();
        }

        @Arbiter
        public void order(final LL_Result result) {
            rig.drain();
            result.r1 = rig.transport.order();
            result.r2 = rig.context.signal().count() == 0;
            rig.close();
        }
    }

    /** Both posts race with the drain: cold, then hot, by the same producer. */
    @JCStressTest
    @Outcome(id = "12", expect = ACCEPTABLE, desc = "In order, whoever posted the hot one.")
    @Outcome(expect = FORBIDDEN, desc = "The hot one overtook the cold one.")
    @State
    public static class ColdThenHot {
        private final StressRig rig = new StressRig();
        private final NrtTensor hot = rig.hotTensor();
        private final NrtTensor cold = StressRig.tensor();
        private final SendRecvRequest first = new SendRecvRequest();
        private final SendRecvRequest second = new SendRecvRequest();

        @Actor
        public void producer() {
            rig.post(cold, 1, first);
            rig.post(hot, 2, second);
        }

        @Actor
        public void service() {
            rig.context.service().doWork();
            rig.context.service().doWork();
        }

        @Arbiter
        public void order(final L_Result result) {
            rig.drain();
            result.r1 = rig.transport.order();
            rig.close();
        }
    }

    /** The same tensor twice: the first post registers it, so that the second may find it registered but not posted. */
    @JCStressTest
    @Outcome(id = "12, 1", expect = ACCEPTABLE, desc = "In order, with one registration.")
    @Outcome(expect = FORBIDDEN, desc = "Overtaken between registration and post, or registered twice.")
    @State
    public static class SameTensorTwice {
        private final StressRig rig = new StressRig();
        private final int before = rig.transport.registrations.get();
        private final NrtTensor tensor = StressRig.tensor();
        private final SendRecvRequest second = new SendRecvRequest();

        public SameTensorTwice() {
            rig.post(tensor, 1, new SendRecvRequest());
        }

        @Actor
        public void producer() {
            rig.post(tensor, 2, second);
        }

        @Actor
        public void service() {
            rig.context.service().doWork();
        }

        @Arbiter
        public void order(final LL_Result result) {
            rig.drain();
            result.r1 = rig.transport.order();
            result.r2 = rig.transport.registrations.get() - before;
            rig.close();
        }
    }

    /** Two producers stash at once, each in its turn under the producers' lock. */
    @JCStressTest
    @Outcome(id = {"12", "21"}, expect = ACCEPTABLE, desc = "Both were posted, in either order.")
    @Outcome(expect = FORBIDDEN, desc = "One overwrote the other in the ring.")
    @State
    public static class TwoProducersStash {
        private final StressRig rig = new StressRig();
        private final NrtTensor one = StressRig.tensor();
        private final NrtTensor two = StressRig.tensor();
        private final SendRecvRequest first = new SendRecvRequest();
        private final SendRecvRequest second = new SendRecvRequest();

        @Actor
        public void oneProducer() {
            rig.post(one, 1, first);
        }

        @Actor
        public void otherProducer() {
            rig.post(two, 2, second);
        }

        @Arbiter
        public void order(final L_Result result) {
            rig.drain();
            result.r1 = rig.transport.order();
            rig.close();
        }
    }
}
