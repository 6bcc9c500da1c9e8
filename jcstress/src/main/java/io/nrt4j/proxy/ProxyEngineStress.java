package io.nrt4j.proxy;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.concurrent.AgentThread;
import java.util.concurrent.TimeUnit;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.LLL_Result;
import org.openjdk.jcstress.infra.results.LL_Result;

/** Suites 11 and 12 with real workers. Needs small strides: a state is a thread. */
public final class ProxyEngineStress {
    private ProxyEngineStress() {
    }

    /** A step of the worker, and the sleep behind it, against a stop. */
    @JCStressTest
    @Outcome(id = "appended, true, done", expect = ACCEPTABLE, desc = "Taken before the stop, stepped or ended by it.")
    @Outcome(id = "CLOSED, true, none", expect = ACCEPTABLE, desc = "Refused.")
    @Outcome(expect = FORBIDDEN, desc = "The worker did not end, or a task is left.")
    @State
    public static class StopAgainstStep {
        private final GlobalComm comm = new StressProxy(true).comm();
        private final EncContext ctx = EncContext.builder(comm).build();

        @Actor
        public void producer(final LLL_Result result) {
            try {
                comm.queue().append(new StressProxy.OneStep(ctx));
                result.r1 = "appended";
            } catch (final NrtException ex) {
                result.r1 = ex.status();
            }
        }

        @Actor
        public void stopper(final LLL_Result result) {
            result.r2 = comm.queue().stop(20, TimeUnit.SECONDS);
        }

        @Arbiter
        public void end(final LLL_Result result) {
            final TaskStatus status = new TaskStatus();
            result.r3 = comm.queue().checkProxyTaskStatus(ctx, TaskType.NETWORK, status) == NrtStatus.FAILURE ? "none"
                : status.done() ? "done" : "left";
        }
    }

    /** Set-up against the last freeing, with threads: never two workers of a group alive. */
    @JCStressTest
    @Outcome(id = "appended, (true|false)", expect = ACCEPTABLE, desc = "Shared, or a worker of its own after the first one ended.")
    @Outcome(expect = FORBIDDEN, desc = "Set up on a queue that stops, or beside a worker that still runs.")
    @State
    public static class SetupAgainstLastFree {
        private final StressProxy proxy = new StressProxy(true);
        private final GlobalComm old = proxy.comm();

        @Actor
        public void leaver() {
            old.free();
        }

        @Actor
        public void comer(final LL_Result result) {
            final GlobalComm comm = proxy.comm();
            final AgentThread first = proxy.workers.get(0);
            if (comm.queue() != old.queue() && first.thread().isAlive()) {
                result.r1 = "two workers";
            } else {
                result.r1 = StressProxy.takesTasks(comm.queue(), EncContext.builder(comm).build()) ? "appended" : "refused";
            }
            result.r2 = comm.queue() == old.queue();
            comm.free();
        }
    }
}
