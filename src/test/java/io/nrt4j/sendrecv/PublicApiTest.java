package io.nrt4j.sendrecv;

import static org.assertj.core.api.Assertions.assertThat;

import io.nrt4j.NrtConfig;
import io.nrt4j.NrtSetting;
import io.nrt4j.NrtStatus;
import io.nrt4j.NrtTensor;
import io.nrt4j.Placement;
import io.nrt4j.net.loopback.FaultPlan;
import io.nrt4j.testing.Await;
import io.nrt4j.testing.Stopwatch;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.NullSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Each function of the API, with good input and with bad. */
class PublicApiTest {
    private final EngineRig rig = new EngineRig();
    private final List<NrtTensor> tensors = new ArrayList<>();

    @AfterEach
    void closeAll() {
        rig.close();
        tensors.forEach(NrtTensor::close);
    }

    private NrtTensor tensor(final long sizeBytes) {
        final NrtTensor made = NrtTensor.allocate(sizeBytes);
        tensors.add(made);
        return made;
    }

    @Test
    void tellsItsLimits() {
        final NrtAsyncSendRecv engine = rig.engine();
        final int[] num = new int[1];
        assertThat(engine.getMaxNumCommunicatorsPerLnc(num)).isEqualTo(NrtStatus.SUCCESS);
        assertThat(num[0]).isEqualTo(128);
        num[0] = 0;
        assertThat(engine.getMaxNumPendingRequest(num)).isEqualTo(NrtStatus.SUCCESS);
        assertThat(num[0]).isEqualTo(128);
        assertThat(engine.getMaxNumPendingRequest(null)).isEqualTo(NrtStatus.FAILURE);
        assertThat(engine.getMaxNumCommunicatorsPerLnc(new int[0])).isEqualTo(NrtStatus.FAILURE);
    }

    @Test
    void movesATensor() {
        final NrtAsyncSendRecv a = rig.initialised(0);
        final NrtAsyncSendRecv b = rig.initialised(1);
        final EngineRig.Pair pair = EngineRig.connect(a, 0, b, 1);
        final NrtTensor from = tensor(4096);
        final NrtTensor to = tensor(4096);
        from.write(100, new byte[] {1, 2, 3, 4});
        final SendRecvRequest send = new SendRecvRequest();
        final SendRecvRequest recv = new SendRecvRequest();
        assertThat(b.recvTensor(to, 7, 64, pair.recv(), recv)).isEqualTo(NrtStatus.SUCCESS);
        assertThat(a.sendTensor(from, 100, 4, pair.send(), send)).isEqualTo(NrtStatus.SUCCESS);
        assertThat(EngineRig.awaitDone(a, send)).isEqualTo(4);
        assertThat(EngineRig.awaitDone(b, recv)).isEqualTo(4);
        assertThat(b.flush(1)).isEqualTo(NrtStatus.SUCCESS);
        assertThat(to.read(6, 6)).containsExactly(0, 1, 2, 3, 4, 0);
        assertThat(a.close(0)).isEqualTo(NrtStatus.SUCCESS);
        assertThat(b.close(1)).isEqualTo(NrtStatus.SUCCESS);
    }

    @ParameterizedTest
    @ValueSource(ints = {-1, 128, Integer.MIN_VALUE, Integer.MAX_VALUE})
    void refusesAnLncOutOfRange(final int lnc) {
        final NrtAsyncSendRecv engine = rig.initialised(0);
        final SendRecvComm comm = new SendRecvComm();
        assertThat(engine.init(lnc)).isEqualTo(NrtStatus.FAILURE);
        assertThat(engine.close(lnc)).isEqualTo(NrtStatus.FAILURE);
        assertThat(engine.flush(lnc)).isEqualTo(NrtStatus.FAILURE);
        assertThat(engine.connect(EngineRig.LOCALHOST, lnc, 0, comm)).isEqualTo(NrtStatus.FAILURE);
        assertThat(engine.connect(EngineRig.LOCALHOST, 0, lnc, comm)).isEqualTo(NrtStatus.FAILURE);
        assertThat(engine.accept(EngineRig.LOCALHOST, lnc, 0, comm)).isEqualTo(NrtStatus.FAILURE);
        assertThat(engine.lastError()).contains(Integer.toString(lnc)).contains("0 and 127");
        assertThat(engine.testComm(comm)).as("the handle is untouched").isEqualTo(NrtStatus.INVALID_HANDLE);
        assertThat(engine.context(0).communicatorCount()).isZero();
    }

    @Test
    void initTwiceFailsAndLeavesTheFirstIntact() {
        final NrtAsyncSendRecv a = rig.initialised(0);
        final LncContext first = a.context(0);
        assertThat(a.init(0)).isEqualTo(NrtStatus.FAILURE);
        assertThat(a.lastError()).contains("initialised already");
        assertThat(a.context(0)).isSameAs(first);
        EngineRig.connect(a, 0, rig.initialised(1), 1);
    }

    @Test
    void refusesEveryCallBeforeInitAndAfterClose() {
        final NrtAsyncSendRecv engine = rig.engine();
        final NrtAsyncSendRecv peer = rig.initialised(1);
        final SendRecvComm empty = new SendRecvComm();
        assertThat(engine.close(0)).isEqualTo(NrtStatus.FAILURE);
        assertThat(engine.flush(0)).isEqualTo(NrtStatus.FAILURE);
        assertThat(engine.connect(EngineRig.LOCALHOST, 1, 0, empty)).isEqualTo(NrtStatus.FAILURE);
        assertThat(engine.testComm(empty)).isEqualTo(NrtStatus.INVALID_HANDLE);
        assertThat(engine.testRequest(new SendRecvRequest())).isEqualTo(NrtStatus.INVALID_HANDLE);
        EngineRig.init(engine, 0);
        final EngineRig.Pair pair = EngineRig.connect(engine, 0, peer, 1);
        final SendRecvRequest request = new SendRecvRequest();
        assertThat(engine.sendTensor(tensor(8), 0, 8, pair.send(), request)).isEqualTo(NrtStatus.SUCCESS);
        assertThat(engine.close(0)).as("a request is in flight").isEqualTo(NrtStatus.FAILURE);
        assertThat(engine.close(0)).isEqualTo(NrtStatus.FAILURE);
        assertThat(engine.testRequest(request)).isEqualTo(NrtStatus.INVALID_HANDLE);
        assertThat(engine.testComm(pair.send())).isEqualTo(NrtStatus.INVALID_HANDLE);
        assertThat(engine.sendTensor(tensor(8), 0, 8, pair.send(), request)).isEqualTo(NrtStatus.INVALID_HANDLE);
        assertThat(engine.flush(0)).isEqualTo(NrtStatus.FAILURE);
        assertThat(engine.connect(EngineRig.LOCALHOST, 1, 0, empty)).isEqualTo(NrtStatus.FAILURE);
    }

    @Test
    void afterAFailedCloseInitFailsUntilTheInstanceIsClosed() {
        final NrtAsyncSendRecv engine = rig.initialised(0);
        assertThat(engine.connect(EngineRig.LOCALHOST, 1, 0, new SendRecvComm())).isEqualTo(NrtStatus.SUCCESS);
        assertThat(engine.close(0)).isEqualTo(NrtStatus.FAILURE);
        assertThat(engine.lastError()).contains("not connected yet");
        assertThat(engine.init(0)).isEqualTo(NrtStatus.FAILURE);
        assertThat(engine.lastError()).contains("last close failed");
        EngineRig.init(engine, 3);
        engine.close();
        assertThat(engine.context(3)).isNull();
        EngineRig.init(engine, 0);
        assertThat(engine.close(0)).isEqualTo(NrtStatus.SUCCESS);
    }

    @Test
    void closedGatesNameTheVariable() {
        final NrtAsyncSendRecv disabled = rig.engine(builder -> builder.asyncSendRecvEnabled(false), null);
        assertThat(disabled.init(0)).isEqualTo(NrtStatus.FAILURE);
        assertThat(disabled.lastError()).contains("NEURON_RT_ASYNC_SENDRECV_EXPERIMENTAL_ENABLED");
        final NrtAsyncSendRecv portless = rig.add(new NrtAsyncSendRecv(
            NrtConfig.builder(Map.of(), Map.of()).asyncSendRecvEnabled(true).build()));
        assertThat(portless.init(0)).isEqualTo(NrtStatus.FAILURE);
        assertThat(portless.lastError()).contains("NEURON_RT_ASYNC_SENDRECV_BOOTSTRAP_PORT");
    }

    @ParameterizedTest
    @NullSource
    @ValueSource(strings = {"", "256.1.1.1", "010.0.0.1", "localhost", "example.invalid", "1.2.3", "1.2.3.4 ", ":", "fe80::1::2"})
    void refusesAPeerThatIsNoLiteral(final String peerIp) {
        final NrtAsyncSendRecv engine = rig.initialised(0);
        final Stopwatch watch = Stopwatch.start();
        assertThat(engine.connect(peerIp, 1, 0, new SendRecvComm())).isEqualTo(NrtStatus.FAILURE);
        assertThat(engine.accept(peerIp, 1, 0, new SendRecvComm())).isEqualTo(NrtStatus.FAILURE);
        assertThat(engine.lastError()).contains("literal");
        assertThat(watch.elapsed()).isLessThan(Duration.ofSeconds(1));
        assertThat(engine.context(0).communicatorCount()).isZero();
    }

    @ParameterizedTest
    @CsvSource({"4096,0,true", "0,0,true", "0,4096,true", "4096,1,false", "-1,1,false", "0,-1,false", "0,4097,false",
        "9223372036854775806,2,false", "9223372036854775807,9223372036854775807,false", "-9223372036854775808,1,false"})
    void checksTheRange(final long offset, final long length, final boolean works) {
        final NrtAsyncSendRecv a = rig.initialised(0);
        final NrtAsyncSendRecv b = rig.initialised(1);
        final EngineRig.Pair pair = EngineRig.connect(a, 0, b, 1);
        final SendRecvRequest send = new SendRecvRequest();
        final SendRecvRequest recv = new SendRecvRequest();
        final NrtStatus expected = works ? NrtStatus.SUCCESS : NrtStatus.FAILURE;
        assertThat(a.sendTensor(tensor(4096), offset, length, pair.send(), send)).isEqualTo(expected);
        assertThat(b.recvTensor(tensor(4096), offset, length, pair.recv(), recv)).isEqualTo(expected);
        final int taken = works ? 1 : 0;
        assertThat(pair.send().communicator().requestsInFlight()).isEqualTo(taken);
        assertThat(pair.recv().communicator().requestsInFlight()).isEqualTo(taken);
        if (works) {
            assertThat(EngineRig.awaitDone(a, send)).isEqualTo(length);
            assertThat(EngineRig.awaitDone(b, recv)).isEqualTo(length);
        } else {
            assertThat(a.lastError()).contains("out of bounds");
            assertThat(a.testRequest(send)).isEqualTo(NrtStatus.INVALID_HANDLE);
        }
    }

    @Test
    void refusesNullsWrongDirectionsAndUnconnectedCommunicators() {
        final NrtAsyncSendRecv a = rig.initialised(0);
        final NrtAsyncSendRecv b = rig.initialised(1);
        final EngineRig.Pair pair = EngineRig.connect(a, 0, b, 1);
        final NrtTensor tensor = tensor(8);
        final SendRecvRequest request = new SendRecvRequest();
        assertThat(a.sendTensor(null, 0, 8, pair.send(), request)).isEqualTo(NrtStatus.FAILURE);
        assertThat(a.sendTensor(tensor, 0, 8, null, request)).isEqualTo(NrtStatus.FAILURE);
        assertThat(a.sendTensor(tensor, 0, 8, pair.send(), null)).isEqualTo(NrtStatus.FAILURE);
        assertThat(a.recvTensor(tensor, 0, 8, pair.send(), request)).isEqualTo(NrtStatus.FAILURE);
        assertThat(b.sendTensor(tensor, 0, 8, pair.recv(), request)).isEqualTo(NrtStatus.FAILURE);
        assertThat(a.sendTensor(tensor, 0, 8, new SendRecvComm(), request)).isEqualTo(NrtStatus.INVALID_HANDLE);
        assertThat(b.sendTensor(tensor, 0, 8, pair.send(), request)).as("another instance's").isEqualTo(NrtStatus.INVALID_HANDLE);
        assertThat(a.testRequest(null)).isEqualTo(NrtStatus.INVALID_HANDLE);
        assertThat(a.testComm(null)).isEqualTo(NrtStatus.INVALID_HANDLE);
        assertThat(a.connect(EngineRig.LOCALHOST, 1, 0, null)).isEqualTo(NrtStatus.FAILURE);
        final SendRecvComm lonely = new SendRecvComm();
        assertThat(a.connect(EngineRig.LOCALHOST, 99, 0, lonely)).isEqualTo(NrtStatus.SUCCESS);
        assertThat(a.testComm(lonely)).isEqualTo(NrtStatus.SUCCESS);
        assertThat(lonely.connected()).isFalse();
        assertThat(a.sendTensor(tensor, 0, 8, lonely, request)).isEqualTo(NrtStatus.INVALID_HANDLE);
        assertThat(a.sendTensor(tensor, 0, 9, lonely, request)).isEqualTo(NrtStatus.INVALID_HANDLE);
        assertThat(pair.send().communicator().requestsInFlight()).isZero();
    }

    @Test
    void the129thPendingRequestIsRefusedUntilOneCompletes() {
        final NrtAsyncSendRecv a = rig.initialised(0);
        final NrtAsyncSendRecv b = rig.initialised(1);
        final EngineRig.Pair pair = EngineRig.connect(a, 0, b, 1);
        final NrtTensor tensor = tensor(128);
        final SendRecvRequest[] sends = new SendRecvRequest[128];
        for (int i = 0; i < sends.length; i++) {
            sends[i] = new SendRecvRequest();
            assertThat(a.sendTensor(tensor, i, 1, pair.send(), sends[i])).isEqualTo(NrtStatus.SUCCESS);
        }
        final SendRecvRequest next = new SendRecvRequest();
        assertThat(a.sendTensor(tensor, 0, 1, pair.send(), next)).isEqualTo(NrtStatus.RESOURCE);
        assertThat(a.lastError()).contains("Maximum number of pending requests 128 reached");
        assertThat(a.testRequest(next)).as("untouched").isEqualTo(NrtStatus.INVALID_HANDLE);
        final SendRecvRequest recv = new SendRecvRequest();
        assertThat(b.recvTensor(tensor(8), 0, 8, pair.recv(), recv)).isEqualTo(NrtStatus.SUCCESS);
        EngineRig.awaitDone(b, recv);
        EngineRig.awaitDone(a, sends[0]);
        assertThat(a.sendTensor(tensor, 0, 1, pair.send(), next)).isEqualTo(NrtStatus.SUCCESS);
        assertThat(a.sendTensor(tensor, 0, 1, pair.send(), sends[0])).isEqualTo(NrtStatus.RESOURCE);
    }

    @Test
    void the129thCommunicatorIsRefusedAndAfterCloseAndInitTheFullNumberIsThere() {
        final NrtAsyncSendRecv engine = rig.initialised(0);
        for (int round = 0; round < 2; round++) {
            for (int i = 0; i < 128; i++) {
                assertThat(engine.connect(EngineRig.LOCALHOST, i, 0, new SendRecvComm())).isEqualTo(NrtStatus.SUCCESS);
            }
            final SendRecvComm comm = new SendRecvComm();
            assertThat(engine.accept(EngineRig.LOCALHOST, 1, 0, comm)).isEqualTo(NrtStatus.RESOURCE);
            assertThat(engine.testComm(comm)).isEqualTo(NrtStatus.INVALID_HANDLE);
            engine.close();
            EngineRig.init(engine, 0);
        }
    }

    @Test
    void afterACleanCloseOf128ConnectedCommunicatorsTheFullNumberConnectsAgain() {
        final NrtAsyncSendRecv a = rig.initialised(0);
        final NrtAsyncSendRecv b = rig.initialised(1);
        for (int round = 0; round < 2; round++) {
            final List<EngineRig.Pair> pairs = new ArrayList<>();
            for (int i = 0; i < 128; i++) {
                pairs.add(EngineRig.begin(a, 0, b, 1));
            }
            pairs.forEach(pair -> EngineRig.awaitConnected(a, b, pair));
            final SendRecvComm oneMore = new SendRecvComm();
            assertThat(a.connect(EngineRig.LOCALHOST, 1, 0, oneMore)).as("connected ones count").isEqualTo(NrtStatus.RESOURCE);
            assertThat(b.accept(EngineRig.LOCALHOST, 0, 1, oneMore)).isEqualTo(NrtStatus.RESOURCE);
            assertThat(a.close(0)).as(a.lastError()).isEqualTo(NrtStatus.SUCCESS);
            assertThat(b.close(1)).as(b.lastError()).isEqualTo(NrtStatus.SUCCESS);
            EngineRig.init(a, 0);
            EngineRig.init(b, 1);
        }
    }

    @Test
    void aHandleThatNamesALiveCommunicatorIsRefusedAndTheCommunicatorStaysUsable() {
        final NrtAsyncSendRecv a = rig.initialised(0);
        final NrtAsyncSendRecv b = rig.initialised(1);
        final EngineRig.Pair pair = new EngineRig.Pair(new SendRecvComm(), new SendRecvComm());
        assertThat(a.connect(EngineRig.LOCALHOST, 1, 0, pair.send())).isEqualTo(NrtStatus.SUCCESS);
        assertRefusedAsInUse(a, 0, pair.send()); // it connects
        assertThat(b.accept(EngineRig.LOCALHOST, 0, 1, pair.recv())).isEqualTo(NrtStatus.SUCCESS);
        assertRefusedAsInUse(b, 1, pair.recv());
        EngineRig.awaitConnected(a, b, pair);
        assertRefusedAsInUse(a, 0, pair.send()); // it is connected
        assertRefusedAsInUse(b, 1, pair.recv());
        assertThat(a.context(0).communicatorCount()).isEqualTo(1);
        assertThat(b.context(1).communicatorCount()).isEqualTo(1);
        exchange(a, b, pair);
        assertThat(a.close(0)).as(a.lastError()).isEqualTo(NrtStatus.SUCCESS);
        EngineRig.init(a, 0);
        assertThat(a.connect(EngineRig.LOCALHOST, 1, 0, pair.send())).as("its communicator is closed").isEqualTo(NrtStatus.SUCCESS);
    }

    private static void assertRefusedAsInUse(final NrtAsyncSendRecv engine, final int lnc, final SendRecvComm handle) {
        final Communicator named = handle.communicator();
        assertThat(engine.connect(EngineRig.LOCALHOST, 7, lnc, handle)).isEqualTo(NrtStatus.FAILURE);
        assertThat(engine.lastError()).contains("still names");
        assertThat(engine.accept(EngineRig.LOCALHOST, 7, lnc, handle)).isEqualTo(NrtStatus.FAILURE);
        assertThat(handle.communicator()).isSameAs(named);
        assertThat(engine.testComm(handle)).isEqualTo(NrtStatus.SUCCESS);
    }

    private void exchange(final NrtAsyncSendRecv a, final NrtAsyncSendRecv b, final EngineRig.Pair pair) {
        final SendRecvRequest send = new SendRecvRequest();
        final SendRecvRequest recv = new SendRecvRequest();
        assertThat(a.sendTensor(tensor(8), 0, 8, pair.send(), send)).as(a.lastError()).isEqualTo(NrtStatus.SUCCESS);
        assertThat(b.recvTensor(tensor(8), 0, 8, pair.recv(), recv)).as(b.lastError()).isEqualTo(NrtStatus.SUCCESS);
        assertThat(EngineRig.awaitDone(a, send)).isEqualTo(8);
        assertThat(EngineRig.awaitDone(b, recv)).isEqualTo(8);
    }

    @Test
    void theHandleOfAFailedCommunicatorIsReusable() {
        final FaultPlan plan = new FaultPlan();
        final NrtAsyncSendRecv a = rig.engine(builder -> builder, plan);
        final NrtAsyncSendRecv b = rig.initialised(1);
        EngineRig.init(a, 0);
        EngineRig.init(b, 2);
        final EngineRig.Pair pair = new EngineRig.Pair(new SendRecvComm(), new SendRecvComm());
        plan.fail(FaultPlan.Operation.LISTEN, 1, "no interface");
        assertThat(a.accept(EngineRig.LOCALHOST, 1, 0, pair.recv())).isEqualTo(NrtStatus.SUCCESS);
        awaitFailed(a, pair.recv(), "no interface");
        assertThat(a.accept(EngineRig.LOCALHOST, 1, 0, pair.recv())).isEqualTo(NrtStatus.SUCCESS);
        assertThat(b.connect(EngineRig.LOCALHOST, 0, 1, pair.send())).isEqualTo(NrtStatus.SUCCESS);
        EngineRig.awaitConnected(b, a, pair);
        exchange(b, a, pair);
        final EngineRig.Pair back = new EngineRig.Pair(new SendRecvComm(), new SendRecvComm());
        plan.fail(FaultPlan.Operation.CONNECT, 1, "no route");
        assertThat(a.connect(EngineRig.LOCALHOST, 1, 0, back.send())).isEqualTo(NrtStatus.SUCCESS);
        assertThat(b.accept(EngineRig.LOCALHOST, 0, 1, new SendRecvComm())).isEqualTo(NrtStatus.SUCCESS);
        awaitFailed(a, back.send(), "no route");
        assertThat(a.connect(EngineRig.LOCALHOST, 2, 0, back.send())).isEqualTo(NrtStatus.SUCCESS);
        assertThat(back.send().failure()).as("of the new communicator").isEmpty();
        assertThat(b.accept(EngineRig.LOCALHOST, 0, 2, back.recv())).isEqualTo(NrtStatus.SUCCESS);
        EngineRig.awaitConnected(a, b, back);
        exchange(a, b, back);
    }

    private static void awaitFailed(final NrtAsyncSendRecv engine, final SendRecvComm comm, final String cause) {
        Await.until(EngineRig.LIMIT, comm::toString, () -> engine.testComm(comm) != NrtStatus.SUCCESS);
        assertThat(engine.testComm(comm)).isEqualTo(NrtStatus.FAILURE);
        assertThat(engine.lastError()).contains(cause);
    }

    /** Fails when the limit is looked at by the transport only, or after the slot was taken. */
    @Test
    void aMessageLongerThanTheTransportCarriesIsRefusedBeforeASlotIsTaken() {
        final AtomicInteger posts = new AtomicInteger();
        final AlteredLoopback.Alteration small = call -> {
            if (call.equals("isend") || call.equals("irecv")) {
                posts.incrementAndGet();
            }
            return call.equals("maxMessageBytes") ? Long.valueOf(1000) : null;
        };
        final NrtAsyncSendRecv a = rig.altered(small);
        final NrtAsyncSendRecv b = rig.altered(small);
        EngineRig.init(a, 0);
        EngineRig.init(b, 1);
        final EngineRig.Pair pair = EngineRig.connect(a, 0, b, 1);
        final NrtTensor tensor = tensor(4096);
        final SendRecvRequest send = new SendRecvRequest();
        final SendRecvRequest recv = new SendRecvRequest();
        for (int temperature = 0; temperature < 2; temperature++) { // cold first, hot then
            assertThat(a.sendTensor(tensor, 0, 1001, pair.send(), send)).isEqualTo(NrtStatus.FAILURE);
            assertThat(a.lastError()).contains("1001 bytes").contains("1000").contains("loopback");
            assertThat(b.recvTensor(tensor, 0, 4096, pair.recv(), recv)).isEqualTo(NrtStatus.FAILURE);
            assertThat(b.lastError()).contains("4096 bytes").contains("1000");
            assertThat(pair.send().communicator().requestsInFlight()).isZero();
            assertThat(pair.recv().communicator().requestsInFlight()).isZero();
            assertThat(pair.send().communicator().stash().isEmpty()).isTrue();
            assertThat(a.testRequest(send)).as("untouched, or still the last one").isEqualTo(NrtStatus.INVALID_HANDLE);
            assertThat(posts).as("of which the transport was told").hasValue(2 * temperature);
            assertThat(a.sendTensor(tensor, 0, 1000, pair.send(), send)).as(a.lastError()).isEqualTo(NrtStatus.SUCCESS);
            assertThat(b.recvTensor(tensor, 2000, 1000, pair.recv(), recv)).isEqualTo(NrtStatus.SUCCESS);
            assertThat(EngineRig.awaitDone(a, send)).isEqualTo(1000);
            assertThat(EngineRig.awaitDone(b, recv)).isEqualTo(1000);
        }
    }

    @Test
    void aFinishedStaleOrEmptyRequestHandleIsInvalid() {
        final NrtAsyncSendRecv a = rig.initialised(0);
        final NrtAsyncSendRecv b = rig.initialised(1);
        final EngineRig.Pair pair = EngineRig.connect(a, 0, b, 1);
        final NrtTensor tensor = tensor(8);
        final SendRecvRequest first = new SendRecvRequest();
        final SendRecvRequest recv = new SendRecvRequest();
        assertThat(a.testRequest(first)).isEqualTo(NrtStatus.INVALID_HANDLE);
        assertThat(a.sendTensor(tensor, 0, 8, pair.send(), first)).isEqualTo(NrtStatus.SUCCESS);
        assertThat(a.sendTensor(tensor, 0, 8, pair.send(), first)).as("a handle in use").isEqualTo(NrtStatus.FAILURE);
        assertThat(b.recvTensor(tensor(8), 0, 8, pair.recv(), recv)).isEqualTo(NrtStatus.SUCCESS);
        EngineRig.awaitDone(a, first);
        assertThat(a.testRequest(first)).isEqualTo(NrtStatus.INVALID_HANDLE);
        final SendRecvRequest second = new SendRecvRequest();
        assertThat(a.sendTensor(tensor, 0, 8, pair.send(), second)).isEqualTo(NrtStatus.SUCCESS);
        assertThat(second.slot()).as("the pool gives the same slot").isSameAs(first.slot());
        assertThat(a.testRequest(first)).as("stale").isEqualTo(NrtStatus.INVALID_HANDLE);
        assertThat(a.testRequest(second)).isEqualTo(NrtStatus.SUCCESS);
        assertThat(second.done()).isFalse();
    }

    @Test
    void aDeviceTensorMustBeOnTheDeviceOfTheLnc() {
        final NrtAsyncSendRecv a = rig.engine(builder -> builder.set(NrtSetting.VTPB_INDEX, "0=5"), null);
        EngineRig.init(a, 0);
        final NrtAsyncSendRecv b = rig.initialised(1);
        final EngineRig.Pair pair = EngineRig.connect(a, 0, b, 1);
        final ByteBuffer memory = ByteBuffer.allocateDirect(64);
        final long address = NrtTensor.wrap(memory).address();
        final SendRecvRequest request = new SendRecvRequest();
        assertThat(a.sendTensor(NrtTensor.wrapAddress(address, 64, Placement.DEVICE, 0), 0, 8, pair.send(), request))
            .isEqualTo(NrtStatus.FAILURE);
        assertThat(a.lastError()).contains("device 5");
        assertThat(a.sendTensor(NrtTensor.wrapAddress(address, 64, Placement.DEVICE, 5), 0, 8, pair.send(), request))
            .isEqualTo(NrtStatus.SUCCESS);
        final SendRecvRequest recv = new SendRecvRequest();
        assertThat(b.recvTensor(NrtTensor.wrap(memory.asReadOnlyBuffer()), 0, 8, pair.recv(), recv)).isEqualTo(NrtStatus.FAILURE);
        assertThat(b.lastError()).contains("read-only");
        assertThat(b.recvTensor(NrtTensor.wrapAddress(address, 64, Placement.DEVICE, 1), 0, 8, pair.recv(), recv))
            .isEqualTo(NrtStatus.SUCCESS);
        EngineRig.awaitDone(a, request);
        EngineRig.awaitDone(b, recv);
        java.lang.ref.Reference.reachabilityFence(memory);
    }

    @Test
    void aLongerMessageFailsItsReceiveOnlyAndAShorterOneCompletesWithItsSize() {
        final NrtAsyncSendRecv a = rig.initialised(0);
        final NrtAsyncSendRecv b = rig.initialised(1);
        final EngineRig.Pair pair = EngineRig.connect(a, 0, b, 1);
        final NrtTensor from = tensor(64);
        final NrtTensor to = tensor(64);
        from.write(0, new byte[] {9, 9, 9, 9, 9, 9, 9, 9});
        final SendRecvRequest[] sends = {new SendRecvRequest(), new SendRecvRequest()};
        final SendRecvRequest[] recvs = {new SendRecvRequest(), new SendRecvRequest()};
        assertThat(b.recvTensor(to, 0, 4, pair.recv(), recvs[0])).isEqualTo(NrtStatus.SUCCESS);
        assertThat(b.recvTensor(to, 32, 32, pair.recv(), recvs[1])).isEqualTo(NrtStatus.SUCCESS);
        assertThat(a.sendTensor(from, 0, 8, pair.send(), sends[0])).isEqualTo(NrtStatus.SUCCESS);
        assertThat(a.sendTensor(from, 0, 8, pair.send(), sends[1])).isEqualTo(NrtStatus.SUCCESS);
        assertThat(EngineRig.awaitFailure(b, recvs[0])).isEqualTo(NrtStatus.FAILURE);
        assertThat(b.lastError()).contains("8 bytes").contains("4 bytes");
        assertThat(EngineRig.awaitDone(b, recvs[1])).isEqualTo(8);
        assertThat(EngineRig.awaitFailure(a, sends[0])).isEqualTo(NrtStatus.FAILURE);
        assertThat(EngineRig.awaitDone(a, sends[1])).isEqualTo(8);
        assertThat(to.read(0, 32)).containsOnly(0);
        assertThat(to.read(32, 8)).containsOnly(9);
        assertThat(pair.recv().communicator().requestsInFlight()).isZero();
    }
}
