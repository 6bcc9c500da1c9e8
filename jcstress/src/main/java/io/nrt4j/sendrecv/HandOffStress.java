package io.nrt4j.sendrecv;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import io.nrt4j.NrtTensor;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.LLL_Result;
import org.openjdk.jcstress.infra.results.LL_Result;
import org.openjdk.jcstress.infra.results.L_Result;

/** Suite 4: what a request's state word publishes. */
public final class HandOffStress {
    private HandOffStress() {
    }

    /** Who sees OFI_POSTED sees the transport's request. */
    @JCStressTest
    @Outcome(id = "FREE", expect = ACCEPTABLE, desc = "Not posted yet.")
    @Outcome(id = "OFI_POSTED 77", expect = ACCEPTABLE, desc = "Posted, with the transport's request.")
    @Outcome(expect = FORBIDDEN, desc = "Posted, but the transport's request is not there yet.")
    @State
    public static class PostedShowsRequest {
        private final RequestSlot slot = new RequestSlot(null, 0);

        @Actor
        public void poster() {
            slot.posted(77, RequestStatus.FREE);
        }

        @Actor
        public void poller(final L_Result result) {
            result.r1 = seen(slot);
        }

        private static String seen(final RequestSlot slot) {
            final RequestStatus status = RequestSlot.statusOf(slot.stateWord());
            return status == RequestStatus.FREE ? "FREE" : status + " " + slot.netRequest();
        }
    }

    /** Who sees STASHED sees what is to be moved. */
    @JCStressTest
    @Outcome(id = "FREE", expect = ACCEPTABLE, desc = "Not stashed yet.")
    @Outcome(id = "STASHED 8 true", expect = ACCEPTABLE, desc = "Stashed, with length and tensor.")
    @Outcome(expect = FORBIDDEN, desc = "Stashed, but what is to be moved is not there yet.")
    @State
    public static class StashedShowsRange {
        private static final NrtTensor TENSOR = StressRig.tensor();
        private final RequestSlot slot = new RequestSlot(null, 0);

        @Actor
        public void poster() {
            slot.describe(TENSOR, 0, 8, 1);
            slot.stash();
        }

        @Actor
        public void service(final L_Result result) {
            final RequestStatus status = RequestSlot.statusOf(slot.stateWord());
            result.r1 = status == RequestStatus.FREE ? "FREE"
                : status + " " + slot.lengthBytes() + " " + (slot.tensor() == TENSOR && slot.postedNs() == 1);
        }
    }

    /** Who sees ERROR sees why. */
    @JCStressTest
    @Outcome(id = "STASHED", expect = ACCEPTABLE, desc = "Not failed yet.")
    @Outcome(id = "ERROR true", expect = ACCEPTABLE, desc = "Failed, with its reason.")
    @Outcome(expect = FORBIDDEN, desc = "Failed without a reason.")
    @State
    public static class ErrorShowsCause {
        private static final Throwable CAUSE = new IllegalStateException("refused");
        private final RequestSlot slot = new RequestSlot(null, 0);

        public ErrorShowsCause() {
            slot.stash();
        }

        @Actor
        public void service() {
            slot.fail(CAUSE);
        }

        @Actor
        public void poller(final L_Result result) {
            final RequestStatus status = RequestSlot.statusOf(slot.stateWord());
            result.r1 = status == RequestStatus.STASHED ? "STASHED" : status + " " + (slot.failure() == CAUSE);
        }
    }

    /** An application polls a stashed request while the service thread posts it. */
    @JCStressTest
    @Outcome(id = "in flight, done", expect = ACCEPTABLE, desc = "Polled while it was stashed; done at the next poll.")
    @Outcome(id = "done, stale", expect = ACCEPTABLE, desc = "Polled after it was posted; the handle is used up.")
    @Outcome(expect = FORBIDDEN, desc = "Polled in between: an unknown request, a wrong state, an end that is not seen.")
    @State
    public static class PolledWhileServicePosts {
        private final StressRig rig = new StressRig();
        private final SendRecvRequest request = new SendRecvRequest();

        public PolledWhileServicePosts() {
            rig.post(StressRig.tensor(), 1, request);
        }

        @Actor
        public void service(final LL_Result result) {
            try {
                rig.context.service().doWork();
            } catch (final RuntimeException ex) {
                result.r2 = ex.toString();
            }
        }

        @Actor
        public void poller(final LL_Result result) {
            result.r1 = StressRig.test(request);
        }

        @Arbiter
        public void end(final LL_Result result) {
            if (result.r2 == null) {
                result.r2 = StressRig.test(request) + (rig.transport.faults.get() == 0 ? "" : ", unknown to the transport");
            }
            rig.close();
        }
    }

    /** A cold post while the service thread looks into the stash: never a slot in the ring that is not STASHED. */
    @JCStressTest
    @Outcome(id = "posted, fine, 1", expect = ACCEPTABLE, desc = "Posted, by this duty cycle or by the next.")
    @Outcome(expect = FORBIDDEN, desc = "The service thread found a slot that was not ready, or none.")
    @State
    public static class DrainedWhileStashed {
        private final StressRig rig = new StressRig();
        private final NrtTensor cold = StressRig.tensor();
        private final SendRecvRequest request = new SendRecvRequest();

        @Actor
        public void poster(final LLL_Result result) {
            result.r1 = rig.post(cold, 1, request);
        }

        @Actor
        public void service(final LLL_Result result) {
            try {
                rig.context.service().doWork();
                result.r2 = "fine";
            } catch (final RuntimeException ex) {
                result.r2 = ex.toString();
            }
        }

        @Arbiter
        public void end(final LLL_Result result) {
            rig.drain();
            result.r3 = rig.transport.order();
            rig.close();
        }
    }
}
