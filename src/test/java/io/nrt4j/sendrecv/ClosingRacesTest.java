package io.nrt4j.sendrecv;

import static org.assertj.core.api.Assertions.assertThat;

import io.nrt4j.NrtStatus;
import io.nrt4j.NrtTensor;
import io.nrt4j.net.NetTransport;
import io.nrt4j.net.loopback.LoopbackTransport;
import io.nrt4j.testing.Await;
import io.nrt4j.testing.HandClock;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** What a close meets halfway, one interleaving each. */
class ClosingRacesTest {
    private final EngineRig rig = new EngineRig();
    private final HookedTransport hooked = new HookedTransport();
    private final NrtTensor tensor = NrtTensor.allocate(64);

    @AfterEach
    void closeAll() {
        hooked.unhook();
        rig.close();
        tensor.close();
    }

    /** A pair of one engine's LNCs 0 and 1, whose duty cycles the test makes. */
    private EngineRig.Pair handDrivenPair(final NrtAsyncSendRecv engine) {
        EngineRig.init(engine, 0);
        EngineRig.init(engine, 1);
        final EngineRig.Pair pair = EngineRig.begin(engine, 0, engine, 1);
        Await.until(EngineRig.LIMIT, engine::toString, () -> {
            engine.context(0).service().doWork();
            engine.context(1).service().doWork();
            return pair.send().connected() && pair.recv().connected();
        });
        return pair;
    }

    private NrtAsyncSendRecv handDriven() {
        return rig.add(new NrtAsyncSendRecv(rig.config(builder -> builder), hooked, System::nanoTime, context -> { }));
    }

    @Test
    void aRequestThatTheCloserReclaimsBeforeItIsInTheStashIsGivenBackOnce() throws Exception {
        final NrtAsyncSendRecv engine = handDriven();
        final EngineRig.Pair pair = handDrivenPair(engine);
        final Communicator comm = pair.send().communicator();
        final CountDownLatch goOn = new CountDownLatch(1);
        final CountDownLatch inside = new CountDownLatch(1);
        final TaskSignal signal = engine.context(0).signal();
        signal.idle(0); // what woke it before is seen now
        hooked.before("needsProgress", () -> {
            inside.countDown();
            goOn.await();
        });
        // Its question is asked under the signal's lock, where a poster then waits between marking its slot and stashing it.
        final Thread idler = start(() -> signal.idle(0));
        inside.await();
        final AtomicReference<NrtStatus> status = new AtomicReference<>();
        final AtomicReference<String> error = new AtomicReference<>();
        final Thread poster = start(() -> {
            status.set(engine.sendTensor(tensor, 0, 8, pair.send(), new SendRecvRequest()));
            error.set(engine.lastError());
        });
        Await.until(EngineRig.LIMIT, () -> poster + " " + poster.getState(),
            () -> comm.requestsInFlight() == 1 && poster.getState() == Thread.State.WAITING);
        comm.kill();
        assertThat(comm.reclaimSlots(true)).isOne();
        goOn.countDown();
        poster.join(EngineRig.LIMIT.toMillis());
        signal.wakeUp();
        idler.join(EngineRig.LIMIT.toMillis());
        assertThat(status.get()).isEqualTo(NrtStatus.INVALID_HANDLE);
        assertThat(error.get()).contains("lnc 0 is closed").doesNotContain("Exception");
        assertThat(tensor.storage().toString()).contains(" 0 in use");
    }

    private static Thread start(final Runnable what) {
        final Thread thread = new Thread(what);
        thread.setDaemon(true);
        thread.start();
        return thread;
    }

    @Test
    void memoryStaysWhileTheCommunicatorThatHasItRegisteredIsBeingClosed() throws Exception {
        try (NetTransport transport = new LoopbackTransport(); NrtTensor other = NrtTensor.allocate(8)) {
            final byte[] handle = new byte[NetTransport.HANDLE_BYTES];
            final long listenComm = transport.listen(0, handle);
            assertThat(transport.connect(0, handle)).isEqualTo(NetTransport.NOT_YET);
            final long recvComm = transport.accept(listenComm);
            final MrCache cache = new MrCache(transport, recvComm);
            assertThat(other.storage().retain()).isTrue();
            cache.findOrRegister(other.storage(), other.placement());
            other.storage().release();
            final Thread[] releasing = new Thread[1];
            cache.close(() -> {
                releasing[0] = start(other::close);
                Await.until(EngineRig.LIMIT, "the release", () -> releasing[0].getState() == Thread.State.TERMINATED
                    || releasing[0].getState() == Thread.State.WAITING);
                assertThat(releasing[0].getState()).as("memory is freed under a registration").isEqualTo(Thread.State.WAITING);
                transport.closeRecv(recvComm);
            });
            releasing[0].join(EngineRig.LIMIT.toMillis());
            assertThat(releasing[0].isAlive()).isFalse();
        }
    }

    @Test
    void aCommunicatorThatFailedIsDeadAfterTheCloseLikeAnyOther() {
        final HandClock clock = new HandClock();
        final NrtAsyncSendRecv engine = rig.handDriven(builder -> builder.connectTimeout(Duration.ofMillis(1)), null, clock);
        EngineRig.init(engine, 0);
        final SendRecvComm comm = new SendRecvComm();
        assertThat(engine.connect(EngineRig.LOCALHOST, 1, 0, comm)).isEqualTo(NrtStatus.SUCCESS);
        clock.advance(2, TimeUnit.MILLISECONDS);
        engine.context(0).service().doWork();
        assertThat(engine.testComm(comm)).isEqualTo(NrtStatus.TIMEOUT);
        assertThat(engine.close(0)).isEqualTo(NrtStatus.SUCCESS);
        assertThat(engine.testComm(comm)).isEqualTo(NrtStatus.INVALID_HANDLE);
    }

    @Test
    void oneBusyCommunicatorLeavesTheOthersTheirTurn() {
        final NrtAsyncSendRecv engine = handDriven();
        final EngineRig.Pair pair = handDrivenPair(engine);
        final List<NrtTensor> cold = new ArrayList<>();
        final SendRecvRequest recv = new SendRecvRequest();
        final SendRecvRequest[] sends = {new SendRecvRequest(), new SendRecvRequest()};
        assertThat(engine.recvTensor(tensor, 0, 8, pair.recv(), recv)).isEqualTo(NrtStatus.SUCCESS);
        engine.context(1).service().doWork();
        final int[] turns = new int[1];
        // What another thread may do: whenever the drain has one, it adds the next.
        hooked.before("regMr", () -> {
            if (turns[0]++ < 1000) {
                final SendRecvRequest before = sends[turns[0] % 2];
                if (turns[0] > 1) {
                    EngineRig.awaitDone(engine, before);
                    EngineRig.awaitDone(engine, recv);
                    assertThat(engine.recvTensor(tensor, 0, 8, pair.recv(), recv)).isEqualTo(NrtStatus.SUCCESS);
                }
                cold.add(NrtTensor.allocate(8));
                assertThat(engine.sendTensor(cold.get(cold.size() - 1), 0, 8, pair.send(), before))
                    .as(engine.lastError()).isEqualTo(NrtStatus.SUCCESS);
            }
        });
        assertThat(engine.sendTensor(tensor, 0, 8, pair.send(), sends[0])).isEqualTo(NrtStatus.SUCCESS);
        engine.context(0).service().doWork();
        assertThat(turns[0]).as("requests of one communicator in one tick").isLessThanOrEqualTo(Communicator.MAX_PENDING_REQUESTS);
        hooked.unhook();
        engine.close();
        cold.forEach(NrtTensor::close);
    }

    @Test
    void anEngineCanBePrintedWhileItConnects() throws Exception {
        final NrtAsyncSendRecv engine = rig.initialised(0);
        final AtomicBoolean stop = new AtomicBoolean();
        final AtomicReference<Throwable> thrown = new AtomicReference<>();
        final Thread printer = start(() -> {
            try {
                while (!stop.get()) {
                    engine.toString();
                }
            } catch (final RuntimeException ex) {
                thrown.set(ex);
            }
        });
        for (int round = 0; round < 20; round++) {
            for (int peer = 0; peer < 100; peer++) {
                engine.connect(EngineRig.LOCALHOST, peer, 0, new SendRecvComm());
            }
            engine.close();
            EngineRig.init(engine, 0);
        }
        stop.set(true);
        printer.join(EngineRig.LIMIT.toMillis());
        assertThat(thrown.get()).isNull();
    }
}
