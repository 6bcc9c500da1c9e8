package io.nrt4j.net.loopback;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import io.nrt4j.NrtException;
import io.nrt4j.net.NetTransport;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.LL_Result;

/** Beside suite 8: how the two ends of a loopback connection find each other. */
public final class LoopbackConnectStress {
    private LoopbackConnectStress() {
    }

    /** A transport with a listener, and a connect that waits for it. */
    abstract static class Waiting {
        final LoopbackTransport transport = new LoopbackTransport();
        final byte[] handle = new byte[NetTransport.HANDLE_BYTES];
        final long listener = transport.listen(0, handle);

        Waiting() {
            transport.connect(0, handle);
        }

        final String connect() {
            try {
                return transport.connect(0, handle) == NetTransport.NOT_YET ? "not yet" : "connected";
            } catch (final NrtException ex) {
                return ex.status().name();
            }
        }
    }

    /** The connecting end asks while the listening one accepts. */
    @JCStressTest
    @Outcome(id = "not yet, accepted connected", expect = ACCEPTABLE, desc = "Asked before; connected when it asks again.")
    @Outcome(id = "connected, accepted", expect = ACCEPTABLE, desc = "Asked after.")
    @Outcome(expect = FORBIDDEN, desc = "Told that the listener is gone, which it is not; or the ends disagree.")
    @State
    public static class AskAgainstAccept extends Waiting {
        @Actor
        public void connector(final LL_Result result) {
            result.r1 = connect();
        }

        @Actor
        public void acceptor(final LL_Result result) {
            result.r2 = transport.accept(listener) == NetTransport.NOT_YET ? "none" : "accepted";
        }

        @Arbiter
        public void end(final LL_Result result) {
            if ("not yet".equals(result.r1)) {
                result.r2 = result.r2 + " " + connect();
            }
            transport.close();
        }
    }

    /** The connecting end asks while the listener is closed. */
    @JCStressTest
    @Outcome(id = "not yet, CLOSED 0 0", expect = ACCEPTABLE, desc = "Asked before; told when it asks again.")
    @Outcome(id = "CLOSED, 0 0", expect = ACCEPTABLE, desc = "Asked after.")
    @Outcome(expect = FORBIDDEN, desc = "Waits for a listener that is gone, or something is left open.")
    @State
    public static class AskAgainstClose extends Waiting {
        @Actor
        public void connector(final LL_Result result) {
            result.r1 = connect();
        }

        @Actor
        public void closer() {
            transport.closeListen(listener);
        }

        @Arbiter
        public void end(final LL_Result result) {
            result.r2 = ("not yet".equals(result.r1) ? connect() + " " : "") + transport.openComms() + " " + transport.pendingConnects();
            transport.close();
        }
    }
}
