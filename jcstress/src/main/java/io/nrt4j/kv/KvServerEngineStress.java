package io.nrt4j.kv;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import io.nrt4j.stress.Watchdog;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.Map;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.L_Result;

/** Suite 10: the server's thread in its selector. Needs small strides: a state is a selector and a port. */
public final class KvServerEngineStress {
    private KvServerEngineStress() {
    }

    /** A close while the thread looks at the selector and then waits in it. */
    @JCStressTest
    @Outcome(id = "awake", expect = ACCEPTABLE, desc = "Woken, or it did not wait.")
    @Outcome(expect = FORBIDDEN, desc = "The look at the selector ate the wake-up, and the thread waits on.")
    @State
    public static class WakeUp {
        private final KvServer server =
            new KvServer(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), Map.of(), KvOptions.DEFAULT);
        private volatile boolean woken;

        @Actor
        public void serverThread(final L_Result result) {
            result.r1 = Watchdog.comesBack(() -> server.waiting().idle(server.doWork()), () -> woken, server.waiting()::wakeUp)
                ? "awake" : "slept on";
        }

        @Actor
        public void closer() {
            server.waiting().wakeUp();
            woken = true;
        }

        @Arbiter
        public void end(final L_Result result) {
            server.close();
        }
    }
}
