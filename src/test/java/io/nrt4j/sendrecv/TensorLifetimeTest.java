package io.nrt4j.sendrecv;

import static org.assertj.core.api.Assertions.assertThat;

import io.nrt4j.NrtStatus;
import io.nrt4j.NrtTensor;
import io.nrt4j.TensorStorage;
import io.nrt4j.net.loopback.FaultPlan;
import io.nrt4j.net.loopback.FaultPlan.Operation;
import io.nrt4j.net.loopback.LoopbackTransport;
import io.nrt4j.testing.Await;
import java.nio.ByteBuffer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Tensors that are closed or dropped before, while and after they are in flight. */
class TensorLifetimeTest {
    private final EngineRig rig = new EngineRig();
    private final FaultPlan plan = new FaultPlan();
    private final NrtAsyncSendRecv a = rig.engine(builder -> builder, plan);
    private final NrtAsyncSendRecv b = rig.initialised(1);
    private final EngineRig.Pair pair = connectPair();

    private EngineRig.Pair connectPair() {
        EngineRig.init(a, 0);
        return EngineRig.connect(a, 0, b, 1);
    }

    @AfterEach
    void closeAll() {
        rig.close();
    }

    private LoopbackTransport transport() {
        return (LoopbackTransport) a.context(0).transport();
    }

    private SendRecvRequest send(final NrtTensor tensor) {
        final SendRecvRequest request = new SendRecvRequest();
        assertThat(a.sendTensor(tensor, 0, tensor.sizeBytes(), pair.send(), request)).as(a.lastError()).isEqualTo(NrtStatus.SUCCESS);
        return request;
    }

    private void receive(final int size) {
        try (NrtTensor to = NrtTensor.allocate(size)) {
            final SendRecvRequest request = new SendRecvRequest();
            assertThat(b.recvTensor(to, 0, size, pair.recv(), request)).isEqualTo(NrtStatus.SUCCESS);
            assertThat(EngineRig.awaitDone(b, request)).isEqualTo(size);
        }
    }

    @Test
    void aClosedTensorIsRefusedAndTakesNoSlot() {
        final NrtTensor tensor = NrtTensor.allocate(8);
        tensor.close();
        assertThat(a.sendTensor(tensor, 0, 8, pair.send(), new SendRecvRequest())).isEqualTo(NrtStatus.FAILURE);
        assertThat(a.lastError()).contains("closed");
        assertThat(pair.send().communicator().requestsInFlight()).isZero();
    }

    @Test
    void closingATensorInFlightDefersItsReleaseToTheLastCompletion() {
        final int before = transport().openRegistrations();
        final NrtTensor tensor = NrtTensor.allocate(8);
        final TensorStorage storage = tensor.storage();
        final SendRecvRequest stashed = send(tensor);
        final SendRecvRequest second = send(tensor);
        tensor.close();
        assertThat(storage.toString()).contains("closed, 2 in use");
        assertThat(a.sendTensor(tensor, 0, 8, pair.send(), new SendRecvRequest())).isEqualTo(NrtStatus.FAILURE);
        receive(8);
        EngineRig.awaitDone(a, stashed);
        assertThat(transport().openRegistrations()).as("the second still needs it").isEqualTo(before + 1);
        receive(8);
        EngineRig.awaitDone(a, second);
        assertThat(transport().openRegistrations()).isEqualTo(before);
        assertThat(pair.send().communicator().mrCache().size()).isZero();
    }

    @Test
    void aTensorThatIsFreedAndAllocatedAgainAtTheSameAddressIsRegisteredAgain() {
        final ByteBuffer memory = ByteBuffer.allocateDirect(64);
        for (int i = 0; i < 3; i++) {
            try (NrtTensor tensor = NrtTensor.wrap(memory)) {
                final SendRecvRequest request = send(tensor);
                receive(64);
                EngineRig.awaitDone(a, request);
            }
        }
        assertThat(plan.calls(Operation.REG_MR)).as("the flush buffer and each life of the memory").isEqualTo(4);
        assertThat(plan.calls(Operation.DEREG_MR)).isEqualTo(3);
    }

    @Test
    void aDroppedTensorInFlightStaysAndIsCollectedAfterwards() {
        final int before = transport().openRegistrations();
        final SendRecvRequest request = sendDropped();
        for (int i = 0; i < 5; i++) {
            System.gc();
            ByteBuffer.allocateDirect(1 << 20);
        }
        try (NrtTensor to = NrtTensor.allocate(4096)) {
            final SendRecvRequest recv = new SendRecvRequest();
            assertThat(b.recvTensor(to, 0, 4096, pair.recv(), recv)).isEqualTo(NrtStatus.SUCCESS);
            assertThat(EngineRig.awaitDone(b, recv)).isEqualTo(4096);
            for (final byte value : to.read(0, 4096)) {
                assertThat(value).isEqualTo((byte) 42);
            }
        }
        EngineRig.awaitDone(a, request);
        Await.until(EngineRig.LIMIT, "the registration of a dropped tensor", () -> {
            System.gc();
            return transport().openRegistrations() == before;
        });
    }

    private SendRecvRequest sendDropped() {
        final ByteBuffer memory = ByteBuffer.allocateDirect(4096);
        for (int i = 0; i < 4096; i++) {
            memory.put(i, (byte) 42);
        }
        return send(NrtTensor.wrap(memory));
    }

    @Test
    void oneTensorOnManyCommunicatorsHasARegistrationEach() {
        final EngineRig.Pair second = EngineRig.connect(a, 0, b, 1);
        final int before = transport().openRegistrations();
        final NrtTensor tensor = NrtTensor.allocate(8);
        final SendRecvRequest first = send(tensor);
        final SendRecvRequest other = new SendRecvRequest();
        assertThat(a.sendTensor(tensor, 0, 8, second.send(), other)).isEqualTo(NrtStatus.SUCCESS);
        Await.until(EngineRig.LIMIT, "both registrations", () -> transport().openRegistrations() == before + 2);
        receive(8);
        EngineRig.awaitDone(a, first);
        tensor.close();
        assertThat(transport().openRegistrations()).isEqualTo(before + 2);
        try (NrtTensor to = NrtTensor.allocate(8)) {
            final SendRecvRequest recv = new SendRecvRequest();
            assertThat(b.recvTensor(to, 0, 8, second.recv(), recv)).isEqualTo(NrtStatus.SUCCESS);
            EngineRig.awaitDone(b, recv);
        }
        EngineRig.awaitDone(a, other);
        assertThat(transport().openRegistrations()).isEqualTo(before);
    }

    @Test
    void closingTheLncFirstAndTheTensorAfterwardsIsFine() {
        final NrtTensor tensor = NrtTensor.allocate(8);
        final SendRecvRequest request = send(tensor);
        receive(8);
        EngineRig.awaitDone(a, request);
        assertThat(a.close(0)).isEqualTo(NrtStatus.SUCCESS);
        tensor.close();
        tensor.close();
        assertThat(tensor.isClosed()).isTrue();
    }
}
