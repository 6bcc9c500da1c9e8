package io.nrt4j.sendrecv;

import static org.assertj.core.api.Assertions.assertThat;

import io.nrt4j.NrtStatus;
import io.nrt4j.NrtTensor;
import io.nrt4j.concurrent.NanoClock;
import io.nrt4j.net.loopback.FaultPlan;
import io.nrt4j.net.loopback.FaultPlan.Operation;
import io.nrt4j.testing.Await;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** The gate between fast and slow path, which keeps the order of a communicator. */
class OrderingGateTest {
    private final EngineRig rig = new EngineRig();
    private final FaultPlan plan = new FaultPlan();
    private final List<NrtTensor> tensors = new ArrayList<>();
    private final List<SendRecvRequest> requests = new ArrayList<>();
    private NrtAsyncSendRecv a;
    private NrtAsyncSendRecv b;
    private EngineRig.Pair pair;

    @AfterEach
    void closeAll() {
        rig.close();
        tensors.forEach(NrtTensor::close);
    }

    /** Lengths of the sends that the transport of a saw, in its order. */
    private final List<Long> seen = new ArrayList<>();

    private void startHandDriven() {
        a = rig.handDriven(builder -> builder, plan, NanoClock.SYSTEM);
        b = rig.handDriven(builder -> builder, null, NanoClock.SYSTEM);
        EngineRig.init(a, 0);
        EngineRig.init(b, 1);
        pair = EngineRig.begin(a, 0, b, 1);
        Await.until(EngineRig.LIMIT, () -> pair.toString(), () -> {
            tick();
            return pair.send().connected() && pair.recv().connected();
        });
        plan.onPost((operation, comm, address, length) -> {
            if (operation == Operation.ISEND) {
                seen.add(length);
            }
        });
    }

    private void tick() {
        a.context(0).service().doWork();
        b.context(1).service().doWork();
    }

    private NrtTensor tensor(final long size) {
        final NrtTensor made = NrtTensor.allocate(size);
        tensors.add(made);
        return made;
    }

    private void send(final NrtTensor tensor, final long length) {
        final SendRecvRequest request = new SendRecvRequest();
        assertThat(a.sendTensor(tensor, 0, length, pair.send(), request)).as(a.lastError()).isEqualTo(NrtStatus.SUCCESS);
        requests.add(request);
    }

    private RequestStatus status(final int index) {
        return RequestSlot.statusOf(requests.get(index).slot().stateWord());
    }

    @Test
    void aColdTensorIsStashedAndAHotOnePostedAtOnce() {
        startHandDriven();
        final NrtTensor tensor = tensor(64);
        send(tensor, 1);
        assertThat(status(0)).isEqualTo(RequestStatus.STASHED);
        assertThat(a.testRequest(requests.get(0))).isEqualTo(NrtStatus.SUCCESS);
        assertThat(requests.get(0).done()).isFalse();
        assertThat(seen).isEmpty();
        tick();
        assertThat(status(0)).isEqualTo(RequestStatus.OFI_POSTED);
        send(tensor, 2);
        assertThat(status(1)).isEqualTo(RequestStatus.OFI_POSTED);
        assertThat(seen).containsExactly(1L, 2L);
        assertThat(plan.calls(Operation.REG_MR)).as("flush buffer and one tensor").isEqualTo(2);
    }

    /** Fails when the gate looks at the registration cache alone. */
    @Test
    void aHotTensorBehindAColdOneIsStashedToo() {
        startHandDriven();
        final NrtTensor hot = tensor(64);
        send(hot, 1);
        tick();
        send(tensor(64), 2);
        send(hot, 3);
        send(tensor(64), 4);
        send(hot, 5);
        assertThat(seen).as("everything behind the cold one waits").containsExactly(1L);
        assertThat(status(2)).isEqualTo(RequestStatus.STASHED);
        tick();
        assertThat(seen).containsExactly(1L, 2L, 3L, 4L, 5L);
        send(hot, 6);
        assertThat(seen).as("fast again").endsWith(6L);
        assertThat(a.context(0).signal().count()).isZero();
    }

    @Test
    void withoutRoomEverythingWaitsInOrderAndOtherCommunicatorsGoOn() {
        startHandDriven();
        final NrtTensor hot = tensor(64);
        send(hot, 1);
        tick();
        plan.notYetUntilReleased(Operation.ISEND);
        send(hot, 2);
        send(hot, 3);
        assertThat(status(1)).isEqualTo(RequestStatus.STASHED);
        tick();
        tick();
        assertThat(seen).containsExactly(1L);
        assertThat(a.context(0).signal().count()).as("two stashed requests keep the service awake").isEqualTo(2);
        plan.release(Operation.ISEND);
        send(hot, 4);
        assertThat(seen).as("room, but others are first").containsExactly(1L);
        tick();
        assertThat(seen).containsExactly(1L, 2L, 3L, 4L);
    }

    @Test
    void aFailedRegistrationFailsItsRequestOnlyAndIsTriedAgain() {
        startHandDriven();
        plan.fail(Operation.REG_MR, 1, "not enough pinned memory");
        final NrtTensor tensor = tensor(64);
        send(tensor, 1);
        send(tensor, 2);
        tick();
        assertThat(a.testRequest(requests.get(0))).isEqualTo(NrtStatus.FAILURE);
        assertThat(a.lastError()).contains("not enough pinned memory").contains("lnc 0").contains("127.0.0.1 lnc 1");
        assertThat(a.testRequest(requests.get(0))).as("it was recycled").isEqualTo(NrtStatus.INVALID_HANDLE);
        assertThat(status(1)).isEqualTo(RequestStatus.OFI_POSTED);
        assertThat(pair.send().communicator().requestsInFlight()).isEqualTo(1);
        assertThat(a.context(0).signal().count()).isZero();
    }

    @Test
    void aFailedPostFailsAtOnceOnTheFastPathAndAtTheTestOnTheSlowOne() {
        startHandDriven();
        final NrtTensor hot = tensor(64);
        send(hot, 1);
        tick();
        plan.fail(Operation.ISEND, 1, "the link is down");
        final SendRecvRequest refused = new SendRecvRequest();
        assertThat(a.sendTensor(hot, 0, 2, pair.send(), refused)).isEqualTo(NrtStatus.FAILURE);
        assertThat(a.lastError()).contains("the link is down");
        assertThat(a.testRequest(refused)).as("untouched").isEqualTo(NrtStatus.INVALID_HANDLE);
        assertThat(pair.send().communicator().requestsInFlight()).isEqualTo(1);
        plan.fail(Operation.ISEND, 1, "down again");
        send(tensor(64), 3);
        tick();
        assertThat(status(1)).isEqualTo(RequestStatus.ERROR);
        assertThat(a.testRequest(requests.get(1))).isEqualTo(NrtStatus.FAILURE);
        assertThat(a.lastError()).contains("down again");
        send(hot, 4);
        assertThat(seen).containsExactly(1L, 4L);
    }

    /** 128 stashed requests, the first fails, and its slot is used again before the ring moves: the ring must not be full. */
    @Test
    void theRingHoldsAllSlotsEvenWhenAFailedOneIsReusedAtOnce() {
        startHandDriven();
        plan.failEvery(Operation.REG_MR, "never");
        final NrtTensor tensor = tensor(64);
        for (int round = 0; round < 3; round++) {
            for (int i = 0; i < 128; i++) {
                send(tensor, i & 63);
            }
            assertThat(pair.send().communicator().stash().size()).isEqualTo(128);
            tick();
            for (final SendRecvRequest request : requests) {
                assertThat(a.testRequest(request)).isEqualTo(NrtStatus.FAILURE);
            }
            requests.clear();
        }
    }

    @Test
    @Tag("slow")
    void coldAndHotTensorsInRandomOrderArriveInTheOrderOfTheirPosts() {
        a = rig.engine(builder -> builder, plan);
        b = rig.engine();
        EngineRig.init(a, 0);
        EngineRig.init(b, 1);
        pair = EngineRig.connect(a, 0, b, 1);
        final List<Long> order = java.util.Collections.synchronizedList(new ArrayList<>());
        plan.onPost((operation, comm, address, length) -> {
            if (operation == Operation.ISEND) {
                order.add(length);
            }
        });
        final Random random = new Random(7);
        final NrtTensor hot = tensor(4096);
        final NrtTensor sink = tensor(4096);
        final int rounds = 400;
        long expected = 0;
        for (int round = 0; round < rounds; round++) {
            final int burst = 1 + random.nextInt(16);
            final SendRecvRequest[] sends = new SendRecvRequest[burst];
            final SendRecvRequest[] recvs = new SendRecvRequest[burst];
            for (int i = 0; i < burst; i++) {
                sends[i] = new SendRecvRequest();
                recvs[i] = new SendRecvRequest();
                assertThat(b.recvTensor(sink, 0, 4096, pair.recv(), recvs[i])).isEqualTo(NrtStatus.SUCCESS);
                final NrtTensor from = random.nextInt(3) == 0 ? NrtTensor.allocate(4096) : hot;
                assertThat(a.sendTensor(from, 0, expected + i & 4095, pair.send(), sends[i])).isEqualTo(NrtStatus.SUCCESS);
                if (from != hot) {
                    from.close(); // its memory stays until the request is done
                }
            }
            for (int i = 0; i < burst; i++) {
                assertThat(EngineRig.awaitDone(b, recvs[i])).as("message %s", expected).isEqualTo(expected & 4095);
                EngineRig.awaitDone(a, sends[i]);
                expected++;
            }
        }
        assertThat(order).hasSize((int) expected);
        for (int i = 0; i < order.size(); i++) {
            assertThat(order.get(i)).isEqualTo(i & 4095);
        }
        assertThat(pair.send().communicator().mrCache().size()).as("closed tensors leave no registration").isEqualTo(1);
    }
}
