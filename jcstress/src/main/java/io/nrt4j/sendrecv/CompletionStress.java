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

/** Suite 5: completion and recycling. */
public final class CompletionStress {
    private static final int COUNT = 8;

    private CompletionStress() {
    }

    private static SendRecvRequest[] handles() {
        final SendRecvRequest[] handles = new SendRecvRequest[COUNT];
        for (int i = 0; i < COUNT; i++) {
            handles[i] = new SendRecvRequest();
        }
        return handles;
    }

    private static SendRecvRequest[] posted(final StressRig rig, final NrtTensor tensor) {
        final SendRecvRequest[] handles = handles();
        for (final SendRecvRequest handle : handles) {
            rig.post(tensor, 1, handle);
        }
        return handles;
    }

    /** The end of all, or how the first one ended that did not as it should. */
    private static String testAll(final SendRecvRequest[] handles) {
        String end = "done";
        for (int i = 0; i < COUNT && "done".equals(end); i++) {
            end = StressRig.test(handles[i]);
        }
        return COUNT + " " + end;
    }

    /** Two pollers, each on its own eight requests of a communicator. */
    @JCStressTest
    @Outcome(id = "8 done, 8 done, 128 false", expect = ACCEPTABLE, desc = "All are done, and all slots are back.")
    @Outcome(expect = FORBIDDEN, desc = "A completion or a slot is lost, or a use of the tensor is left.")
    @State
    public static class TwoPollers {
        private final StressRig rig = new StressRig();
        private final NrtTensor tensor = rig.hotTensor();
        private final SendRecvRequest[] first = posted(rig, tensor);
        private final SendRecvRequest[] second = posted(rig, tensor);

        @Actor
        public void oneThread(final LLL_Result result) {
            result.r1 = testAll(first);
        }

        @Actor
        public void otherThread(final LLL_Result result) {
            result.r2 = testAll(second);
        }

        @Arbiter
        public void end(final LLL_Result result) {
            result.r3 = rig.comm.freelist().size() + " " + !tensor.storage().toString().contains(" 0 in use");
            rig.close();
        }
    }

    /**
     * A stale handle against the slot's next owner. One thread ends a request and posts the next, which gets the same slot; another
     * one tests a copy of the first handle.
     */
    @JCStressTest
    @Outcome(id = "done, stale, in flight 127", expect = ACCEPTABLE, desc = "The handle was stale; the next owner is untouched.")
    @Outcome(id = "stale, done, in flight 127", expect = ACCEPTABLE, desc = "The copy ended the request; the next owner is untouched.")
    @Outcome(expect = FORBIDDEN, desc = "Ended twice, or the stale handle saw the next owner.")
    @State
    public static class StaleHandle {
        private final StressRig rig = new StressRig();
        private final NrtTensor tensor = rig.hotTensor();
        private final SendRecvRequest handle = new SendRecvRequest();
        private final SendRecvRequest copy = new SendRecvRequest();
        private final SendRecvRequest next = new SendRecvRequest();

        public StaleHandle() {
            rig.post(tensor, 1, handle);
            copy.fill(handle.slot(), handle.generation());
        }

        @Actor
        public void owner(final LLL_Result result) {
            result.r1 = StressRig.test(handle);
            rig.post(tensor, 2, next);
        }

        @Actor
        public void late(final LLL_Result result) {
            result.r2 = StressRig.test(copy);
        }

        @Arbiter
        public void end(final LLL_Result result) {
            rig.transport.holdsBack = true;
            result.r3 = StressRig.test(next) + " " + rig.comm.freelist().size() + (rig.transport.faults.get() == 0 ? "" : " asked twice");
            rig.close();
        }
    }

    /** Two threads end one failed request. */
    @JCStressTest
    @Outcome(id = {"FAILURE, stale, 128", "stale, FAILURE, 128"}, expect = ACCEPTABLE, desc = "One is told, one slot is back.")
    @Outcome(expect = FORBIDDEN, desc = "Both are told, or the slot went back twice.")
    @State
    public static class FailedOnce {
        private final StressRig rig = new StressRig();
        private final SendRecvRequest handle = new SendRecvRequest();
        private final SendRecvRequest copy = new SendRecvRequest();

        /** A request whose post has failed, as the drain leaves it. */
        public FailedOnce() {
            rig.post(StressRig.tensor(), 1, handle);
            copy.fill(handle.slot(), handle.generation());
            rig.comm.stash().poll().fail(new IllegalStateException("refused"));
            rig.context.signal().retire();
        }

        @Actor
        public void oneThread(final LLL_Result result) {
            result.r1 = StressRig.test(handle);
        }

        @Actor
        public void otherThread(final LLL_Result result) {
            result.r2 = StressRig.test(copy);
        }

        @Arbiter
        public void end(final LLL_Result result) {
            result.r3 = rig.comm.freelist().size();
            rig.close();
        }
    }

    /** Requests are completed while the pool that their slots go back to is posted from. */
    @JCStressTest
    @Outcome(id = "8 done, 8 posted, 120 true", expect = ACCEPTABLE, desc = "Eight ended, eight are in flight, in whichever slots.")
    @Outcome(expect = FORBIDDEN, desc = "A slot was handed out before it was empty.")
    @State
    public static class RecycledAtOnce {
        private final StressRig rig = new StressRig();
        private final NrtTensor tensor = rig.hotTensor();
        private final SendRecvRequest[] first = posted(rig, tensor);
        private final SendRecvRequest[] second = handles();

        @Actor
        public void poller(final LLL_Result result) {
            result.r1 = testAll(first);
        }

        @Actor
        public void poster(final LLL_Result result) {
            String end = "posted";
            for (int i = 0; i < COUNT && "posted".equals(end); i++) {
                end = rig.post(tensor, 2, second[i]);
            }
            result.r2 = COUNT + " " + end;
        }

        @Arbiter
        public void end(final LLL_Result result) {
            boolean whole = true;
            for (final SendRecvRequest request : second) {
                whole &= request.slot() != null && request.slot().tensor() == tensor && request.slot().lengthBytes() == 2;
            }
            result.r3 = rig.comm.freelist().size() + " " + whole;
            rig.close();
        }
    }
}
