package io.nrt4j.sendrecv;

import static org.assertj.core.api.Assertions.assertThat;

import io.nrt4j.NrtConfig;
import io.nrt4j.NrtSetting;
import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.NrtTensor;
import io.nrt4j.net.MemoryInUseException;
import io.nrt4j.net.NetTransport;
import io.nrt4j.net.NetTransportProvider;
import io.nrt4j.net.loopback.FaultPlan;
import io.nrt4j.testing.Await;
import io.nrt4j.testing.Stopwatch;
import java.lang.ref.WeakReference;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A transport that throws where it should not, or does not come back: the damage stays where it is done. */
class BrokenTransportTest {
    private static final int NOBODY = 99;

    private final EngineRig rig = new EngineRig();
    private final HookedTransport hooked = new HookedTransport();
    private final NrtTensor tensor = NrtTensor.allocate(64);

    @AfterEach
    void closeAll() {
        hooked.unhook();
        rig.close();
        tensor.close();
    }

    private NrtAsyncSendRecv hookedEngine(final int lnc) {
        return hookedEngine(lnc, builder -> builder);
    }

    private NrtAsyncSendRecv hookedEngine(final int lnc, final UnaryOperator<NrtConfig.Builder> more) {
        final NrtAsyncSendRecv engine = rig.add(new NrtAsyncSendRecv(rig.config(more), hooked));
        EngineRig.init(engine, lnc);
        return engine;
    }

    private static SendRecvComm accept(final NrtAsyncSendRecv engine, final int peerLnc, final int lnc) {
        final SendRecvComm comm = new SendRecvComm();
        assertThat(engine.accept(EngineRig.LOCALHOST, peerLnc, lnc, comm)).as(engine.lastError()).isEqualTo(NrtStatus.SUCCESS);
        return comm;
    }

    private static void fail(final boolean expected) {
        if (expected) {
            throw new NrtException(NrtStatus.FAILURE, "planned");
        }
        throw new IllegalStateException("planned");
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aListenerThatCannotBeClosedCostsNeitherItsCommunicatorNorTheOthers(final boolean expected) {
        final NrtAsyncSendRecv a = rig.initialised(0);
        final NrtAsyncSendRecv b = hookedEngine(1);
        hooked.before("closeListen", () -> fail(expected));
        EngineRig.connect(a, 0, b, 1);
        EngineRig.connect(a, 0, b, 1);
        assertThat(b.context(1).fatal()).isNull();
        hooked.unhook();
        assertThat(b.close(1)).as(b.lastError()).isEqualTo(NrtStatus.SUCCESS);
        assertThat(hooked.real().openComms()).isZero();
    }

    @Test
    void anExceptionOfAnyKindFailsItsCommunicatorAndNoOther() {
        final NrtAsyncSendRecv a = rig.initialised(0);
        final NrtAsyncSendRecv b = hookedEngine(1);
        hooked.before("listen", () -> fail(false));
        final SendRecvComm broken = accept(b, NOBODY, 1);
        Await.until(EngineRig.LIMIT, b::toString, () -> b.testComm(broken) == NrtStatus.FAILURE);
        assertThat(b.lastError()).contains("planned").contains("LISTEN");
        hooked.unhook();
        EngineRig.connect(a, 0, b, 1);
        assertThat(b.context(1).fatal()).isNull();
    }

    @Test
    void aCloseGoesOnPastWhatCannotBeClosed() {
        final NrtAsyncSendRecv a = rig.initialised(0);
        final NrtAsyncSendRecv b = hookedEngine(1);
        final EngineRig.Pair pair = EngineRig.connect(a, 0, b, 1);
        assertThat(b.recvTensor(tensor, 0, 8, pair.recv(), new SendRecvRequest())).isEqualTo(NrtStatus.SUCCESS);
        final SendRecvComm alone = accept(b, NOBODY, 1);
        Await.until(EngineRig.LIMIT, b::toString, () -> alone.communicator().status() == CommStatus.NET_CONNECT);
        hooked.before("closeListen", () -> fail(false));
        assertThat(b.context(1).close(TimeUnit.SECONDS.toNanos(5), () -> { })).isNotNull();
        assertThat(hooked.real().openComms()).isZero();
        assertThat(hooked.real().openRegistrations()).isZero();
        assertThat(tensor.storage().toString()).contains(" 0 in use");
    }

    @Test
    void memoryThatCannotBeTakenBackIsNeverFreed() {
        final NrtAsyncSendRecv a = rig.initialised(0);
        final NrtAsyncSendRecv b = hookedEngine(1);
        final EngineRig.Pair pair = EngineRig.connect(a, 0, b, 1);
        assertThat(b.recvTensor(tensor, 0, 8, pair.recv(), new SendRecvRequest())).isEqualTo(NrtStatus.SUCCESS);
        hooked.before("closeRecv", () -> {
            throw new NrtException(NrtStatus.TIMEOUT, "the peer stands still");
        });
        assertThat(b.close(1)).isEqualTo(NrtStatus.FAILURE);
        hooked.unhook();
        tensor.close();
        assertThat(tensor.storage().toString()).as("closed, but kept for whoever may still write into it").contains(" 1 in use");
    }

    /** Nobody counts uses of a wrapped buffer but us: it stays only as long as something refers to it. */
    @Test
    void aWrappedBufferThatCannotBeTakenBackIsNeverCollected() {
        final NrtAsyncSendRecv a = rig.initialised(0);
        final NrtAsyncSendRecv b = hookedEngine(1); // keeps the transport open
        final WeakReference<ByteBuffer> kept = receiveAndClose(a, b, 2, () -> {
            throw new NrtException(NrtStatus.TIMEOUT, "the peer stands still");
        });
        final WeakReference<ByteBuffer> takenBack = receiveAndClose(a, b, 3, () -> { });
        a.close();
        b.close(); // no engine refers to anything any more
        Await.until(EngineRig.LIMIT, "the garbage collector to find a buffer that was taken back", () -> {
            System.gc();
            return takenBack.get() == null;
        });
        assertThat(kept.get()).as("a buffer that the transport may still write to").isNotNull();
    }

    private WeakReference<ByteBuffer> receiveAndClose(
        final NrtAsyncSendRecv a, final NrtAsyncSendRecv b, final int lnc, final HookedTransport.Hook closing) {
        EngineRig.init(b, lnc);
        final EngineRig.Pair pair = EngineRig.connect(a, 0, b, lnc);
        final ByteBuffer buffer = ByteBuffer.allocateDirect(64);
        final NrtTensor wrapped = NrtTensor.wrap(buffer);
        assertThat(b.recvTensor(wrapped, 0, 8, pair.recv(), new SendRecvRequest())).isEqualTo(NrtStatus.SUCCESS);
        hooked.before("closeRecv", closing);
        assertThat(b.close(lnc)).isEqualTo(NrtStatus.FAILURE);
        hooked.unhook();
        wrapped.close();
        return new WeakReference<>(buffer);
    }

    @Test
    void memoryOfAFailedRequestThatIsStillInUseIsNeverFreed() {
        final NrtAsyncSendRecv a = rig.initialised(0);
        final NrtAsyncSendRecv b = hookedEngine(1);
        final EngineRig.Pair pair = EngineRig.connect(a, 0, b, 1);
        final SendRecvRequest request = new SendRecvRequest();
        assertThat(b.recvTensor(tensor, 0, 8, pair.recv(), request)).isEqualTo(NrtStatus.SUCCESS);
        hooked.before("test", () -> {
            throw new MemoryInUseException(NrtStatus.CLOSED, "the peer may live");
        });
        Await.until(EngineRig.LIMIT, b::toString, () -> b.testRequest(request) == NrtStatus.FAILURE);
        assertThat(b.lastError()).contains("the peer may live").contains("must stay in place");
        hooked.unhook();
        tensor.close();
        assertThat(tensor.storage().toString()).as("closed, but kept for whoever may still write into it").contains(" 1 in use");
    }

    @Test
    void aTransportThatCannotBeClosedIsNotTheCallersException() {
        final NrtAsyncSendRecv b = hookedEngine(1);
        hooked.before("close", () -> fail(false));
        assertThat(b.close(1)).isIn(NrtStatus.SUCCESS, NrtStatus.FAILURE);
        hooked.unhook();
        b.close();
        EngineRig.init(b, 1);
    }

    /** Makes nothing, as a binding does whose native library lacks a symbol. */
    private static final class Unlinkable implements NetTransportProvider {
        @Override
        public String name() {
            return "unlinkable";
        }

        @Override
        public String unavailabilityCause(final NrtConfig config) {
            return null;
        }

        @Override
        public String describe(final NrtConfig config) {
            return name();
        }

        @Override
        public NetTransport create(final NrtConfig config) {
            throw new UnsatisfiedLinkError("no such symbol");
        }
    }

    @Test
    void aTransportThatCannotBeLinkedFailsTheInitAndLeavesNoServer() {
        final NrtAsyncSendRecv engine = rig.add(new NrtAsyncSendRecv(rig.config(builder -> builder), new Unlinkable()));
        assertThat(engine.init(0)).isEqualTo(NrtStatus.FAILURE);
        assertThat(engine.lastError()).contains("no such symbol");
        final String port = "-" + rig.port();
        assertThat(Thread.getAllStackTraces().keySet()).noneMatch(
            thread -> thread.isAlive() && thread.getName().startsWith("nrt4j-kv") && thread.getName().endsWith(port));
    }

    @Test
    void flushesThatTimedOutDoNotUseUpTheTransportsRoom() {
        final FaultPlan plan = new FaultPlan();
        final NrtAsyncSendRecv engine = rig.engine(builder -> builder.set(NrtSetting.FLUSH_TIMEOUT_MS, "5"), plan);
        EngineRig.init(engine, 0);
        plan.neverComplete(FaultPlan.Operation.IFLUSH, Integer.MAX_VALUE);
        for (int i = 0; i < 20; i++) {
            assertThat(engine.flush(0)).isEqualTo(NrtStatus.TIMEOUT);
        }
        plan.releaseAll();
        assertThat(engine.flush(0)).as(engine.lastError()).isEqualTo(NrtStatus.SUCCESS);
    }

    /** In regMr the service thread holds the communicator's cache, in irecv it or a poster holds the LNC's data path. */
    @ParameterizedTest
    @ValueSource(strings = {"regMr", "irecv", "irecv of a poster"})
    void nothingIsClosedUnderAThreadThatIsStillInTheTransport(final String where) throws Exception {
        final NrtAsyncSendRecv a = rig.initialised(0);
        final NrtAsyncSendRecv b = hookedEngine(1, builder -> builder.set(NrtSetting.CLOSE_TIMEOUT_MS, "200"));
        final EngineRig.Pair pair = EngineRig.connect(a, 0, b, 1);
        final CountDownLatch inside = new CountDownLatch(1);
        final CountDownLatch goOn = new CountDownLatch(1);
        final CountDownLatch transportClosed = new CountDownLatch(1);
        final boolean byPoster = where.endsWith("poster");
        if (byPoster) {
            assertThat(b.recvTensor(tensor, 0, 8, pair.recv(), new SendRecvRequest())).isEqualTo(NrtStatus.SUCCESS);
            Await.until(EngineRig.LIMIT, b::toString, () -> pair.recv().communicator().stash().isEmpty());
        }
        hooked.before(byPoster ? "irecv" : where, () -> {
            inside.countDown();
            goOn.await();
        });
        hooked.before("close", transportClosed::countDown);
        final Thread poster = new Thread(() -> b.recvTensor(tensor, 0, 8, pair.recv(), new SendRecvRequest()));
        poster.start();
        assertThat(inside.await(20, TimeUnit.SECONDS)).isTrue();
        final Stopwatch watch = Stopwatch.start();
        assertThat(b.close(1)).isEqualTo(NrtStatus.FAILURE);
        assertThat(watch.elapsed()).isLessThan(Duration.ofSeconds(5));
        assertThat(b.lastError()).contains(where.equals("regMr") ? "did not end within 200 ms" : "did not come back");
        assertThat(transportClosed.getCount()).as("the transport is still in use").isOne();
        goOn.countDown();
        assertThat(transportClosed.await(20, TimeUnit.SECONDS)).isTrue();
        poster.join(20_000);
        Await.until(EngineRig.LIMIT, tensor::toString, () -> tensor.storage().toString().contains(" 0 in use"));
        assertThat(hooked.real().openComms()).isZero();
        assertThat(hooked.real().openRegistrations()).isZero();
    }
}
