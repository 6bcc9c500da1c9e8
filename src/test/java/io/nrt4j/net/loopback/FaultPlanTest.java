package io.nrt4j.net.loopback;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nrt4j.NrtConfig;
import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.NrtTensor;
import io.nrt4j.Placement;
import io.nrt4j.net.NetTransport;
import io.nrt4j.net.loopback.FaultPlan.Operation;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Planned faults happen as planned, and nothing but them. */
class FaultPlanTest {
    private final FaultPlan plan = new FaultPlan();
    private final NetTransport transport =
        new LoopbackTransportProvider(plan).create(NrtConfig.builder(Map.of(), Map.of()).build());
    private final NrtTensor memory = NrtTensor.allocate(64);
    private long send;
    private long recv;
    private long sendMr;
    private long recvMr;

    @BeforeEach
    void connect() {
        final byte[] handle = new byte[NetTransport.HANDLE_BYTES];
        final long listen = transport.listen(0, handle);
        transport.connect(0, handle);
        recv = transport.accept(listen);
        send = transport.connect(0, handle);
        sendMr = transport.regMr(send, memory.address(), 64, Placement.HOST);
        recvMr = transport.regMr(recv, memory.address(), 64, Placement.HOST);
    }

    @AfterEach
    void close() {
        transport.close();
        memory.close();
    }

    private long isend(final long lengthBytes) {
        return transport.isend(send, memory.address(), lengthBytes, sendMr);
    }

    private long irecv(final long lengthBytes) {
        return transport.irecv(recv, memory.address() + 32, lengthBytes, recvMr);
    }

    private static void assertPlanned(final ThrowingCallable call, final NrtStatus status, final String text) {
        assertThatThrownBy(call).isInstanceOf(NrtException.class).hasMessageContaining(text).hasMessageContaining("planned fault")
            .extracting(ex -> ((NrtException) ex).status()).isEqualTo(status);
    }

    @Test
    void theNthCallFails() {
        plan.fail(Operation.ISEND, 2, "cable cut");
        irecv(1);
        irecv(1);
        assertThat(isend(1)).isNotEqualTo(NetTransport.NOT_YET);
        assertPlanned(() -> isend(1), NrtStatus.FAILURE, "cable cut");
        assertThat(transport.test(isend(1))).isEqualTo(1);
        assertThat(plan.calls(Operation.ISEND)).isEqualTo(3);
    }

    @Test
    void everyCallFailsUntilReleased() {
        final byte[] handle = new byte[NetTransport.HANDLE_BYTES];
        final long listen = transport.listen(0, handle);
        final Map<Operation, ThrowingCallable> calls = Map.of(
            Operation.LISTEN, () -> transport.listen(0, new byte[NetTransport.HANDLE_BYTES]),
            Operation.CONNECT, () -> transport.connect(0, handle.clone()),
            Operation.ACCEPT, () -> transport.accept(listen),
            Operation.REG_MR, () -> transport.regMr(send, memory.address(), 1, Placement.HOST),
            Operation.DEREG_MR, () -> transport.deregMr(send, transport.regMr(send, memory.address(), 1, Placement.HOST)),
            Operation.ISEND, () -> isend(1),
            Operation.IRECV, () -> irecv(1),
            Operation.IFLUSH, () -> transport.iflush(recv, memory.address(), 4, recvMr));
        calls.forEach((operation, call) -> {
            plan.failEvery(operation, "no " + operation);
            assertPlanned(call, NrtStatus.FAILURE, "no " + operation);
            assertPlanned(call, NrtStatus.FAILURE, "no " + operation);
            plan.release(operation);
            try {
                call.call();
            } catch (final Throwable ex) {
                throw new AssertionError(operation + " still fails", ex);
            }
        });
    }

    @Test
    void aFailedConnectLeavesNothingBehind() {
        final byte[] handle = new byte[NetTransport.HANDLE_BYTES];
        final long listen = transport.listen(0, handle);
        final byte[] mine = handle.clone();
        assertThat(transport.connect(0, mine)).isEqualTo(NetTransport.NOT_YET);
        plan.fail(Operation.CONNECT, 1, NrtStatus.CLOSED, "refused");
        assertPlanned(() -> transport.connect(0, mine), NrtStatus.CLOSED, "refused");
        assertThat(mine).isEqualTo(handle);
        assertThat(transport.accept(listen)).isEqualTo(NetTransport.NOT_YET);
    }

    @Test
    void notYetForSomeCalls() {
        plan.notYet(Operation.ISEND, 2);
        final long receive = irecv(8);
        assertThat(isend(8)).isEqualTo(NetTransport.NOT_YET);
        assertThat(isend(8)).isEqualTo(NetTransport.NOT_YET);
        assertThat(transport.test(receive)).isEqualTo(NetTransport.PENDING);
        assertThat(transport.test(isend(8))).isEqualTo(8);
        assertThat(transport.test(receive)).isEqualTo(8);
    }

    @Test
    void notYetUntilReleased() {
        plan.notYetUntilReleased(Operation.IRECV).notYetUntilReleased(Operation.TEST);
        for (int i = 0; i < 1000; i++) {
            assertThat(irecv(8)).isEqualTo(NetTransport.NOT_YET);
        }
        plan.release(Operation.IRECV);
        final long receive = irecv(8);
        isend(8);
        assertThat(transport.test(receive)).isEqualTo(NetTransport.PENDING);
        plan.releaseAll();
        assertThat(transport.test(receive)).isEqualTo(8);
    }

    @Test
    void aRequestNeverCompletesUntilReleased() {
        plan.neverComplete(Operation.IRECV, 1);
        final long held = irecv(8);
        final long next = irecv(8);
        final long first = isend(8);
        final long second = isend(8);
        assertThat(transport.test(first)).isEqualTo(8);
        assertThat(transport.test(second)).isEqualTo(8);
        for (int i = 0; i < 1000; i++) {
            assertThat(transport.test(held)).isEqualTo(NetTransport.PENDING);
        }
        assertThat(transport.test(next)).isEqualTo(8);
        plan.release(Operation.IRECV);
        assertThat(transport.test(held)).isEqualTo(8);
    }

    @Test
    void aRequestCompletesAfterSomeTests() {
        plan.completeAfterTests(Operation.ISEND, 3);
        irecv(8);
        final long sent = isend(8);
        for (int i = 0; i < 3; i++) {
            assertThat(transport.test(sent)).isEqualTo(NetTransport.PENDING);
        }
        assertThat(transport.test(sent)).isEqualTo(8);
    }

    @Test
    void aFailedTestGivesTheRequestUpAndKeepsTheOrder() {
        final long lost = irecv(8);
        final long next = irecv(8);
        plan.fail(Operation.TEST, 1, "bad completion");
        assertPlanned(() -> transport.test(lost), NrtStatus.FAILURE, "bad completion");
        assertThatThrownBy(() -> transport.test(lost)).isInstanceOf(NrtException.class).hasMessageContaining("no request");
        memory.write(0, new byte[] {1, 2, 3, 4, 5, 6, 7, 8});
        final long first = isend(8);
        assertThatThrownBy(() -> transport.test(first)).isInstanceOf(NrtException.class).hasMessageContaining("gave its request up");
        assertThat(memory.read(32, 8)).containsOnly(0);
        assertThat(transport.test(isend(5))).isEqualTo(5);
        assertThat(transport.test(next)).isEqualTo(5);
    }

    @Test
    void slotsOfFailedTestsComeBack() {
        plan.failEvery(Operation.TEST, "bad completion");
        for (int i = 0; i < 1000; i++) {
            final long receive = irecv(8);
            assertThat(receive).as("receive %d", i).isNotEqualTo(NetTransport.NOT_YET);
            final long sent = isend(8);
            assertThatThrownBy(() -> transport.test(receive)).isInstanceOf(NrtException.class);
            assertThatThrownBy(() -> transport.test(sent)).isInstanceOf(NrtException.class);
        }
    }

    @Test
    void theObserverSeesTheOrderOfThePosts() {
        final List<String> seen = new ArrayList<>();
        plan.onPost((operation, comm, address, lengthBytes) -> seen.add(operation + " " + (comm == send ? "send" : "recv") + " "
            + (address - memory.address()) + "+" + lengthBytes));
        plan.notYet(Operation.ISEND, 1);
        isend(1);
        isend(2);
        irecv(3);
        transport.iflush(recv, memory.address(), 4, recvMr);
        assertThatThrownBy(() -> isend(1000)).isInstanceOf(NrtException.class);
        assertThat(seen).containsExactly("ISEND send 0+2", "IRECV recv 32+3", "IFLUSH recv 0+4");
    }

    @Test
    void nonsenseIsRefused() {
        assertThatThrownBy(() -> plan.notYet(Operation.REG_MR, 1)).isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> plan.neverComplete(Operation.TEST, 1)).isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> plan.fail(Operation.TEST, 0, "x")).isInstanceOf(IllegalArgumentException.class);
    }
}
