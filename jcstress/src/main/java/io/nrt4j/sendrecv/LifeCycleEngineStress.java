package io.nrt4j.sendrecv;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import io.nrt4j.NrtConfig;
import io.nrt4j.NrtStatus;
import io.nrt4j.net.NetTransport;
import io.nrt4j.net.NetTransportProvider;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.reflect.Array;
import java.lang.reflect.Field;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.LLL_Result;

/**
 * Suite 9, whole: init and close of one LNC, with its service thread. All states of a JVM share one engine, whose LNC 127 is always
 * initialised, so that the key-value server stays; each state has an LNC of its own.
 *
 * <p>Needs small strides: a state is a thread.
 */
public final class LifeCycleEngineStress {
    private static final int KEPT_LNC = 127;
    private static final BlockingQueue<Integer> FREE_LNCS = new ArrayBlockingQueue<>(KEPT_LNC);
    private static final NrtAsyncSendRecv ENGINE = engine();

    private LifeCycleEngineStress() {
    }

    private static NrtAsyncSendRecv engine() {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            final Path folder = Files.createTempDirectory("nrt4j-stress");
            folder.toFile().deleteOnExit();
            final int port = socket.getLocalPort();
            socket.close();
            final NrtConfig config = NrtConfig.builder(Map.of(), Map.of()).asyncSendRecvEnabled(true).bootstrapPort(port)
                .kvBindAddress("127.0.0.1").kvLockDirectory(folder).build();
            final NrtAsyncSendRecv engine = new NrtAsyncSendRecv(config, new StubProvider());
            if (engine.init(KEPT_LNC) != NrtStatus.SUCCESS) {
                throw new IllegalStateException(engine.lastError());
            }
            for (int lnc = 0; lnc < KEPT_LNC; lnc++) {
                FREE_LNCS.add(lnc);
            }
            return engine;
        } catch (final IOException ex) {
            throw new UncheckedIOException(ex);
        }
    }

    private static final class StubProvider implements NetTransportProvider {
        @Override
        public String name() {
            return "stub";
        }

        @Override
        public String unavailabilityCause(final NrtConfig config) {
            return null;
        }

        @Override
        public String describe(final NrtConfig config) {
            return "a network that does nothing";
        }

        @Override
        public NetTransport create(final NrtConfig config) {
            return new StubTransport();
        }
    }

    /**
     * Lets an LNC whose close has failed, as it must when a communicator was not connected, be initialised again. What clears that in
     * life is the close of the whole instance.
     */
    private static void forgetFailedClose(final int lnc) {
        final Object statuses = statuses();
        Array.set(statuses, lnc, statuses.getClass().getComponentType().getEnumConstants()[0]);
    }

    private static Object statuses() {
        try {
            final Field statuses = NrtAsyncSendRecv.class.getDeclaredField("statuses");
            statuses.setAccessible(true);
            return statuses.get(ENGINE);
        } catch (final ReflectiveOperationException ex) {
            throw new IllegalStateException(ex);
        }
    }

    /** An LNC of the state's own. */
    abstract static class Lnc {
        final int lnc;

        Lnc() {
            try {
                lnc = FREE_LNCS.take();
            } catch (final InterruptedException ex) {
                throw new IllegalStateException(ex);
            }
        }

        final NrtStatus init() {
            return ENGINE.init(lnc);
        }

        final NrtStatus close() {
            return ENGINE.close(lnc);
        }

        /** Closes it if it is open, and gives it back; whether it was, whether its status said so, and whether its thread has ended. */
        final String end() {
            final LncContext context = ENGINE.context(lnc);
            final boolean saysOpen = Array.get(statuses(), lnc).toString().equals("INITIALIZED");
            final NrtStatus last = context == null ? null : ENGINE.close(lnc);
            final boolean threadLeft = context != null && context.thread().isAlive();
            forgetFailedClose(lnc);
            FREE_LNCS.add(lnc);
            return (last == null ? "shut" : "open " + last) + (threadLeft ? ", a thread is left" : "")
                + (saysOpen == (context != null) ? "" : ", and not as its status says");
        }
    }

    /** Init against close of an LNC that is not open. */
    @JCStressTest
    @Outcome(id = "SUCCESS, FAILURE, open SUCCESS", expect = ACCEPTABLE, desc = "The close came first and was refused.")
    @Outcome(id = "SUCCESS, SUCCESS, shut", expect = ACCEPTABLE, desc = "The close came second.")
    @Outcome(expect = FORBIDDEN, desc = "Half open: a thread or a context is left, or a status is wrong.")
    @State
    public static class InitAgainstClose extends Lnc {
        @Actor
        public void opener(final LLL_Result result) {
            result.r1 = init();
        }

        @Actor
        public void closer(final LLL_Result result) {
            result.r2 = close();
        }

        @Arbiter
        public void end(final LLL_Result result) {
            result.r3 = end();
        }
    }

    /** Close against init of an LNC that is open. */
    @JCStressTest
    @Outcome(id = "SUCCESS, FAILURE, shut", expect = ACCEPTABLE, desc = "The init came first and was refused.")
    @Outcome(id = "SUCCESS, SUCCESS, open SUCCESS", expect = ACCEPTABLE, desc = "The init came second.")
    @Outcome(expect = FORBIDDEN, desc = "Half open: a thread or a context is left, or a status is wrong.")
    @State
    public static class CloseAgainstInit extends Lnc {
        public CloseAgainstInit() {
            init();
        }

        @Actor
        public void closer(final LLL_Result result) {
            result.r1 = close();
        }

        @Actor
        public void opener(final LLL_Result result) {
            result.r2 = init();
        }

        @Arbiter
        public void end(final LLL_Result result) {
            result.r3 = end();
        }
    }

    /** Two inits of one LNC. */
    @JCStressTest
    @Outcome(id = {"SUCCESS, FAILURE, open SUCCESS", "FAILURE, SUCCESS, open SUCCESS"}, expect = ACCEPTABLE, desc = "One opened it.")
    @Outcome(expect = FORBIDDEN, desc = "Both opened it, or none.")
    @State
    public static class InitTwice extends Lnc {
        @Actor
        public void first(final LLL_Result result) {
            result.r1 = init();
        }

        @Actor
        public void second(final LLL_Result result) {
            result.r2 = init();
        }

        @Arbiter
        public void end(final LLL_Result result) {
            result.r3 = end();
        }
    }

    /** A connect, on the API, against the close with its service thread. */
    @JCStressTest
    @Outcome(id = "SUCCESS, FAILURE, INVALID_HANDLE shut", expect = ACCEPTABLE,
        desc = "Begun, and ended by the close, which says that it was not connected.")
    @Outcome(id = "FAILURE, SUCCESS, INVALID_HANDLE shut", expect = ACCEPTABLE, desc = "Refused.")
    @Outcome(expect = FORBIDDEN, desc = "A communicator that is not dead after the close.")
    @State
    public static class ConnectAgainstClose extends Lnc {
        private final SendRecvComm comm = new SendRecvComm();

        public ConnectAgainstClose() {
            init();
        }

        @Actor
        public void application(final LLL_Result result) {
            result.r1 = ENGINE.connect("127.0.0.1", KEPT_LNC, lnc, comm);
        }

        @Actor
        public void closer(final LLL_Result result) {
            result.r2 = close();
        }

        @Arbiter
        public void end(final LLL_Result result) {
            final NrtStatus tested = ENGINE.testComm(comm);
            result.r3 = tested + " " + end();
        }
    }
}
