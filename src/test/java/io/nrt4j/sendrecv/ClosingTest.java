package io.nrt4j.sendrecv;

import static org.assertj.core.api.Assertions.assertThat;

import io.nrt4j.NrtStatus;
import io.nrt4j.NrtTensor;
import io.nrt4j.net.loopback.FaultPlan;
import io.nrt4j.net.loopback.FaultPlan.Operation;
import io.nrt4j.net.loopback.LoopbackTransport;
import io.nrt4j.testing.Await;
import io.nrt4j.testing.Leaks;
import io.nrt4j.testing.Stopwatch;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Close in any state: bounded, and nothing is left: no thread, no communicator, no registration, no memory. */
class ClosingTest {
    private final EngineRig rig = new EngineRig();
    private final List<NrtTensor> tensors = new ArrayList<>();

    @AfterEach
    void closeAll() {
        rig.close();
        tensors.forEach(NrtTensor::close);
    }

    /** Classes, native libraries and selectors that stay open once they were used are used once. */
    @BeforeAll
    static void warmUp() {
        try (EngineRig rig = new EngineRig(); NrtTensor tensor = NrtTensor.allocate(8)) {
            final NrtAsyncSendRecv a = rig.initialised(0);
            final NrtAsyncSendRecv b = rig.initialised(1);
            final EngineRig.Pair pair = EngineRig.connect(a, 0, b, 1);
            final SendRecvRequest recv = new SendRecvRequest();
            assertThat(a.sendTensor(tensor, 0, 8, pair.send(), new SendRecvRequest())).isEqualTo(NrtStatus.SUCCESS);
            assertThat(b.recvTensor(tensor, 0, 8, pair.recv(), recv)).isEqualTo(NrtStatus.SUCCESS);
            EngineRig.awaitDone(b, recv);
            assertThat(b.flush(1)).isEqualTo(NrtStatus.SUCCESS);
        }
        Leaks.descriptors();
    }

    private NrtTensor tensor(final long size) {
        final NrtTensor made = NrtTensor.allocate(size);
        tensors.add(made);
        return made;
    }

    static long serviceThreads() {
        return Thread.getAllStackTraces().keySet().stream()
            .filter(thread -> thread.isAlive() && thread.getName().startsWith("nrt4j-sr-")).count();
    }

    private static LoopbackTransport transport(final NrtAsyncSendRecv engine, final int lnc) {
        return (LoopbackTransport) engine.context(lnc).transport();
    }

    /** States in which a close finds a pair. */
    enum Situation { FRESH, CONNECTING, CONNECTED, STASHED, POSTED, COMPLETED_UNTESTED, FAILED_UNTESTED, IDLE_AFTER_USE }

    @ParameterizedTest
    @EnumSource(Situation.class)
    void leavesNothingBehind(final Situation situation) {
        final int descriptorsBefore = Leaks.descriptors();
        final FaultPlan plan = new FaultPlan();
        final NrtAsyncSendRecv a = rig.engine(builder -> builder, plan);
        final NrtAsyncSendRecv b = rig.initialised(1);
        EngineRig.init(a, 0);
        final LoopbackTransport transport = transport(a, 0);
        final NrtTensor tensor = tensor(64);
        final boolean clean = bring(situation, plan, a, b, tensor);
        final Stopwatch watch = Stopwatch.start();
        assertThat(a.close(0)).as(a.lastError()).isEqualTo(clean ? NrtStatus.SUCCESS : NrtStatus.FAILURE);
        assertThat(watch.elapsed()).isLessThan(Duration.ofSeconds(5));
        assertThat(transport.openComms()).isZero();
        assertThat(transport.openListeners()).isZero();
        assertThat(transport.openRegistrations()).isZero();
        assertThat(transport.pendingConnects()).isZero();
        assertThat(tensor.storage().toString()).contains(" 0 in use");
        a.close();
        b.close();
        Await.until(EngineRig.LIMIT, () -> Leaks.threads().toString(), () -> Leaks.threads().isEmpty());
        Leaks.awaitDescriptors(descriptorsBefore, EngineRig.LIMIT);
    }

    private boolean bring(
        final Situation situation, final FaultPlan plan, final NrtAsyncSendRecv a, final NrtAsyncSendRecv b, final NrtTensor tensor) {
        if (situation == Situation.FRESH) {
            return true;
        }
        if (situation == Situation.CONNECTING) {
            assertThat(a.connect(EngineRig.LOCALHOST, 1, 0, new SendRecvComm())).isEqualTo(NrtStatus.SUCCESS);
            assertThat(a.accept(EngineRig.LOCALHOST, 1, 0, new SendRecvComm())).isEqualTo(NrtStatus.SUCCESS);
            return false;
        }
        final EngineRig.Pair pair = EngineRig.connect(a, 0, b, 1);
        final SendRecvRequest send = new SendRecvRequest();
        final SendRecvRequest recv = new SendRecvRequest();
        switch (situation) {
            case CONNECTED:
                return true;
            case STASHED:
                plan.notYetUntilReleased(Operation.ISEND);
                break;
            case FAILED_UNTESTED:
                plan.failEvery(Operation.ISEND, "down");
                break;
            default:
                break;
        }
        assertThat(a.sendTensor(tensor, 0, 8, pair.send(), send)).isEqualTo(NrtStatus.SUCCESS);
        if (situation == Situation.COMPLETED_UNTESTED || situation == Situation.IDLE_AFTER_USE) {
            assertThat(b.recvTensor(tensor(8), 0, 8, pair.recv(), recv)).isEqualTo(NrtStatus.SUCCESS);
            EngineRig.awaitDone(b, recv);
        } else if (situation == Situation.FAILED_UNTESTED) {
            Await.until(EngineRig.LIMIT, send::toString,
                () -> RequestSlot.statusOf(send.slot().stateWord()) == RequestStatus.ERROR);
        }
        if (situation == Situation.IDLE_AFTER_USE) {
            EngineRig.awaitDone(a, send);
            return true;
        }
        return false;
    }

    @RepeatedTest(20)
    void aCloseInTheMiddleOfPostsAndTestsEndsThemAll() throws Exception {
        final NrtAsyncSendRecv a = rig.initialised(0);
        final NrtAsyncSendRecv b = rig.initialised(1);
        final EngineRig.Pair pair = EngineRig.connect(a, 0, b, 1);
        final NrtTensor tensor = tensor(64);
        final LoopbackTransport transport = transport(a, 0);
        final SendRecvRequest first = new SendRecvRequest();
        assertThat(a.sendTensor(tensor, 0, 8, pair.send(), first)).isEqualTo(NrtStatus.SUCCESS);
        final AtomicBoolean refused = new AtomicBoolean();
        final CountDownLatch going = new CountDownLatch(2);
        final ExecutorService pool = Executors.newFixedThreadPool(2);
        try {
            final List<Future<?>> posters = new ArrayList<>();
            for (int i = 0; i < 2; i++) {
                final boolean cold = i == 0;
                posters.add(pool.submit(() -> {
                    SendRecvRequest request = first;
                    NrtStatus status = NrtStatus.SUCCESS;
                    for (int n = 0; status == NrtStatus.SUCCESS || status == NrtStatus.RESOURCE; n++) {
                        final NrtTensor from = cold ? NrtTensor.allocate(64) : tensor;
                        final SendRecvRequest next = new SendRecvRequest();
                        status = a.sendTensor(from, 0, 8, pair.send(), next);
                        request = status == NrtStatus.SUCCESS ? next : request;
                        if (cold) {
                            from.close();
                        }
                        if (n == 20) {
                            going.countDown();
                        }
                    }
                    assertThat(status).isEqualTo(NrtStatus.INVALID_HANDLE);
                    assertThat(a.testRequest(request)).isEqualTo(NrtStatus.INVALID_HANDLE);
                    refused.set(true);
                }));
            }
            assertThat(going.await(20, TimeUnit.SECONDS)).isTrue();
            assertThat(a.close(0)).isEqualTo(NrtStatus.FAILURE);
            for (final Future<?> poster : posters) {
                poster.get(30, TimeUnit.SECONDS);
            }
        } finally {
            pool.shutdownNow();
        }
        assertThat(refused).isTrue();
        assertThat(tensor.storage().toString()).contains(" 0 in use");
        assertThat(transport.openComms()).isZero();
        assertThat(transport.openRegistrations()).isZero();
    }

    @RepeatedTest(10)
    void connectInitAndCloseRaceWithoutLeaks() throws Exception {
        final int descriptorsBefore = Leaks.descriptors();
        final NrtAsyncSendRecv engine = rig.engine();
        final ExecutorService pool = Executors.newFixedThreadPool(3);
        try {
            final List<Future<?>> racers = new ArrayList<>();
            for (int i = 0; i < 3; i++) {
                final int role = i;
                racers.add(pool.submit(() -> {
                    for (int n = 0; n < 30; n++) {
                        switch (role) {
                            case 0 -> engine.init(5);
                            case 1 -> engine.close(5);
                            default -> engine.connect(EngineRig.LOCALHOST, 6, 5, new SendRecvComm());
                        }
                    }
                }));
            }
            for (final Future<?> racer : racers) {
                racer.get(30, TimeUnit.SECONDS);
            }
        } finally {
            pool.shutdownNow();
        }
        engine.close();
        assertThat(serviceThreads()).isZero();
        Await.until(EngineRig.LIMIT, () -> Leaks.threads().toString(), () -> Leaks.threads().isEmpty());
        Leaks.awaitDescriptors(descriptorsBefore, EngineRig.LIMIT);
        EngineRig.init(engine, 5);
        assertThat(engine.close(5)).isEqualTo(NrtStatus.SUCCESS);
    }

    @Test
    void aPeerThatClosesFailsWhatIsInFlightAndLaterPosts() {
        final NrtAsyncSendRecv a = rig.initialised(0);
        final NrtAsyncSendRecv b = rig.initialised(1);
        final EngineRig.Pair pair = EngineRig.connect(a, 0, b, 1);
        final SendRecvRequest send = new SendRecvRequest();
        final NrtTensor tensor = tensor(8);
        assertThat(a.sendTensor(tensor, 0, 8, pair.send(), send)).isEqualTo(NrtStatus.SUCCESS);
        Await.until(EngineRig.LIMIT, send::toString,
            () -> RequestSlot.statusOf(send.slot().stateWord()) == RequestStatus.OFI_POSTED);
        assertThat(b.close(1)).isEqualTo(NrtStatus.SUCCESS);
        assertThat(EngineRig.awaitFailure(a, send)).isEqualTo(NrtStatus.FAILURE);
        assertThat(a.lastError()).contains("closed").contains("lnc 0");
        assertThat(a.sendTensor(tensor, 0, 8, pair.send(), send)).isEqualTo(NrtStatus.FAILURE);
        assertThat(a.close(0)).isEqualTo(NrtStatus.SUCCESS);
    }
}
