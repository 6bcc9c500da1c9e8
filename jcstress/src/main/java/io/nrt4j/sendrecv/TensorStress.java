package io.nrt4j.sendrecv;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import io.nrt4j.NrtTensor;
import io.nrt4j.TensorStorage;
import java.util.concurrent.atomic.AtomicInteger;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.LI_Result;
import org.openjdk.jcstress.infra.results.LL_Result;
import org.openjdk.jcstress.infra.results.I_Result;

/** Suite 15: a tensor's memory goes once, with its last use. */
public final class TensorStress {
    private TensorStress() {
    }

    /** A tensor that counts how often it was freed, and whether anybody used it then. */
    static final class Watched {
        private final NrtTensor tensor = StressRig.tensor();
        private final TensorStorage storage = tensor.storage();
        private final AtomicInteger freed = new AtomicInteger();

        Watched() {
            storage.addReleaseListener(gone -> freed.addAndGet(gone.toString().contains(" 0 in use") ? 1 : 100));
        }
    }

    /** The last use ends while the tensor is closed. */
    @JCStressTest
    @Outcome(id = "1", expect = ACCEPTABLE, desc = "Freed once, by whichever came last.")
    @Outcome(expect = FORBIDDEN, desc = "Freed under a user, twice, or never.")
    @State
    public static class CloseAgainstLastUse {
        private final Watched watched = new Watched();

        public CloseAgainstLastUse() {
            watched.storage.retain();
        }

        @Actor
        public void application() {
            watched.tensor.close();
        }

        @Actor
        public void poller() {
            watched.storage.release();
        }

        @Arbiter
        public void count(final I_Result result) {
            result.r1 = watched.freed.get();
        }
    }

    /** Two uses end, of a tensor that is closed. */
    @JCStressTest
    @Outcome(id = "1", expect = ACCEPTABLE, desc = "Freed once, by the last.")
    @Outcome(expect = FORBIDDEN, desc = "Freed under a user, twice, or never.")
    @State
    public static class TwoLastUses {
        private final Watched watched = new Watched();

        public TwoLastUses() {
            watched.storage.retain();
            watched.storage.retain();
            watched.tensor.close();
        }

        @Actor
        public void first() {
            watched.storage.release();
        }

        @Actor
        public void second() {
            watched.storage.release();
        }

        @Arbiter
        public void count(final I_Result result) {
            result.r1 = watched.freed.get();
        }
    }

    /** A new use against the close. */
    @JCStressTest
    @Outcome(id = "used 0, 1", expect = ACCEPTABLE, desc = "The use came first: not freed under it, but after it.")
    @Outcome(id = "refused, 1", expect = ACCEPTABLE, desc = "The close came first.")
    @Outcome(expect = FORBIDDEN, desc = "Freed under a user, twice, or never.")
    @State
    public static class UseAgainstClose {
        private final Watched watched = new Watched();

        @Actor
        public void poster(final LI_Result result) {
            if (watched.storage.retain()) {
                result.r1 = "used " + watched.freed.get();
                watched.storage.release();
            } else {
                result.r1 = "refused";
            }
        }

        @Actor
        public void application() {
            watched.tensor.close();
        }

        @Arbiter
        public void count(final LI_Result result) {
            result.r2 = watched.freed.get();
        }
    }

    /** A whole post against the close; then the transfer ends. */
    @JCStressTest
    @Outcome(id = "posted, done 1 1", expect = ACCEPTABLE, desc = "Posted: freed by the completion, deregistered once.")
    @Outcome(id = "FAILURE, refused 1 1", expect = ACCEPTABLE, desc = "Refused: freed by the close, deregistered once.")
    @Outcome(expect = FORBIDDEN, desc = "Freed or deregistered under the transport, twice, or never.")
    @State
    public static class PostAgainstClose {
        private final StressRig rig = new StressRig();
        private final NrtTensor tensor = rig.hotTensor();
        private final SendRecvRequest request = new SendRecvRequest();
        private final AtomicInteger freed = new AtomicInteger();

        public PostAgainstClose() {
            tensor.storage().addReleaseListener(gone -> freed.incrementAndGet());
        }

        @Actor
        public void poster(final LL_Result result) {
            result.r1 = rig.post(tensor, 1, request);
        }

        @Actor
        public void application() {
            tensor.close();
        }

        @Arbiter
        public void count(final LL_Result result) {
            final String end;
            if (request.slot() == null) {
                end = "refused";
            } else {
                end = freed.get() > 0 ? "freed under the transport" : StressRig.test(request);
            }
            result.r2 = end + " " + freed.get() + " " + rig.transport.deregistrations.get();
            rig.close();
        }
    }
}
