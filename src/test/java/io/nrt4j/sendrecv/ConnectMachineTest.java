package io.nrt4j.sendrecv;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nrt4j.NrtConfig;
import io.nrt4j.NrtStatus;
import io.nrt4j.kv.KvClient;
import io.nrt4j.kv.KvOptions;
import io.nrt4j.net.loopback.FaultPlan;
import io.nrt4j.net.loopback.FaultPlan.Operation;
import io.nrt4j.net.loopback.LoopbackTransport;
import io.nrt4j.testing.Await;
import io.nrt4j.testing.HandClock;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** The connect machine step by step: duty cycles by hand, a clock by hand, a real key-value server. */
class ConnectMachineTest {
    private final EngineRig rig = new EngineRig();
    private final HandClock clock = new HandClock();
    private final FaultPlan planA = new FaultPlan();
    private final FaultPlan planB = new FaultPlan();
    private NrtAsyncSendRecv a;
    private NrtAsyncSendRecv b;

    @AfterEach
    void closeAll() {
        rig.close();
    }

    private void start() {
        a = rig.handDriven(builder -> builder.connectTimeout(Duration.ofSeconds(30)), planA, clock);
        b = rig.handDriven(builder -> builder.connectTimeout(Duration.ofSeconds(30)), planB, clock);
        EngineRig.init(a, 0);
        EngineRig.init(b, 1);
    }

    private Communicator send(final SendRecvComm handle) {
        assertThat(a.connect(EngineRig.LOCALHOST, 1, 0, handle)).isEqualTo(NrtStatus.SUCCESS);
        return handle.communicator();
    }

    private Communicator recv(final SendRecvComm handle) {
        assertThat(b.accept(EngineRig.LOCALHOST, 0, 1, handle)).isEqualTo(NrtStatus.SUCCESS);
        return handle.communicator();
    }

    private static void tick(final NrtAsyncSendRecv engine) {
        for (int lnc = 0; lnc < 2; lnc++) {
            if (engine.context(lnc) != null) {
                engine.context(lnc).service().doWork();
            }
        }
    }

    /** Ticks one engine, moving the clock a little each time, until a communicator is in a state; returns the states on the way. */
    private List<CommStatus> tickUntil(final NrtAsyncSendRecv engine, final Communicator comm, final CommStatus wanted) {
        final List<CommStatus> seen = new ArrayList<>(List.of(comm.status()));
        Await.until(EngineRig.LIMIT, () -> comm + " saw " + seen, () -> {
            tick(engine);
            clock.advance(100, TimeUnit.MICROSECONDS);
            if (seen.get(seen.size() - 1) != comm.status()) {
                seen.add(comm.status());
            }
            return comm.status() == wanted;
        });
        return seen;
    }

    @Test
    void bothWalkAsTheOriginalDoes() {
        start();
        final Communicator send = send(new SendRecvComm());
        final Communicator recv = recv(new SendRecvComm());
        final List<CommStatus> recvWalk = tickUntil(b, recv, CommStatus.NET_CONNECT);
        assertThat(recvWalk).containsExactly(CommStatus.START_INIT, CommStatus.WAIT_FOR_HOSTNAME, CommStatus.LISTEN,
            CommStatus.WAIT_FOR_NET_HANDLE_SET, CommStatus.NET_CONNECT);
        assertThat(send.status()).as("nobody ticked it").isEqualTo(CommStatus.START_INIT);
        assertThat(tickUntil(a, send, CommStatus.NET_CONNECT))
            .containsExactly(CommStatus.START_INIT, CommStatus.WAIT_FOR_NET_HANDLE_GET, CommStatus.NET_CONNECT);
        assertThat(send.connectState().netHandle).isEqualTo(recv.connectState().netHandle);
        tick(a);
        assertThat(send.status()).as("not accepted yet").isEqualTo(CommStatus.NET_CONNECT);
        tickUntil(b, recv, CommStatus.CONNECTED);
        tickUntil(a, send, CommStatus.CONNECTED);
        assertThat(send.connectState()).as("not needed any more").isNull();
        assertThat(recv.connectState()).isNull();
        assertThat(loopback(b, 1).openListeners()).isZero();
        assertThat(a.context(0).signal().count()).isZero();
        assertThat(b.context(1).signal().count()).isZero();
        assertThatThrownBy(() -> machine(a, 0).step(send)).isInstanceOf(IllegalStateException.class).hasMessageContaining("CONNECTED");
    }

    private ConnectMachine machine(final NrtAsyncSendRecv engine, final int lnc) {
        return new ConnectMachine(lnc, engine.context(lnc).transport(), new Rendezvous(new byte[128],
            new InetSocketAddress(EngineRig.LOCALHOST, rig.port()), rig.port(), KvOptions.DEFAULT), 0, clock);
    }

    @Test
    void refusesLoudlyAStateThatTheTypeNeverHas() {
        start();
        final Communicator send = send(new SendRecvComm());
        for (final CommStatus foreign : List.of(CommStatus.WAIT_FOR_HOSTNAME, CommStatus.LISTEN, CommStatus.WAIT_FOR_NET_HANDLE_SET)) {
            send.setStatus(foreign);
            assertThatThrownBy(() -> machine(a, 0).step(send)).isInstanceOf(IllegalStateException.class)
                .hasMessageContaining(foreign.name());
        }
        send.setStatus(CommStatus.START_INIT);
        final Communicator recv = recv(new SendRecvComm());
        recv.setStatus(CommStatus.WAIT_FOR_NET_HANDLE_GET);
        assertThatThrownBy(() -> machine(b, 1).step(recv)).isInstanceOf(IllegalStateException.class);
        recv.setStatus(CommStatus.START_INIT);
    }

    @Test
    void theDeadlineEndsEveryStateWithTimeoutAndSaysWhere() {
        start();
        final SendRecvComm handle = new SendRecvComm();
        final Communicator send = send(handle);
        tickUntil(a, send, CommStatus.WAIT_FOR_NET_HANDLE_GET);
        clock.advance(29, TimeUnit.SECONDS);
        tick(a);
        assertThat(a.testComm(handle)).isEqualTo(NrtStatus.SUCCESS);
        clock.advance(2, TimeUnit.SECONDS);
        tick(a);
        assertThat(a.testComm(handle)).isEqualTo(NrtStatus.TIMEOUT);
        assertThat(a.lastError()).contains("lnc 0").contains("127.0.0.1 lnc 1").contains("WAIT_FOR_NET_HANDLE_GET")
            .contains("30000 ms").contains(":" + rig.port());
        final CommFailure failure = handle.failure().orElseThrow();
        assertThat(failure.timedOut()).isTrue();
        assertThat(failure.elapsed()).isGreaterThan(Duration.ofSeconds(30));
        assertThat(failure.state()).isEqualTo("WAIT_FOR_NET_HANDLE_GET");
        assertThat(a.context(0).communicatorCount()).as("it no longer counts").isZero();
        assertThat(a.context(0).signal().count()).isZero();
    }

    @Test
    void aReceiverThatTimesOutWhileItAcceptsClosesItsListener() {
        start();
        final SendRecvComm handle = new SendRecvComm();
        final Communicator recv = recv(handle);
        tickUntil(b, recv, CommStatus.NET_CONNECT);
        clock.advance(31, TimeUnit.SECONDS);
        tick(b);
        assertThat(b.testComm(handle)).isEqualTo(NrtStatus.TIMEOUT);
        assertThat(loopback(b, 1).openListeners()).isZero();
    }

    private static LoopbackTransport loopback(final NrtAsyncSendRecv engine, final int lnc) {
        return (LoopbackTransport) engine.context(lnc).transport();
    }

    @Test
    void aSenderThatTimesOutWhileItConnectsWithdraws() {
        start();
        final SendRecvComm handle = new SendRecvComm();
        final Communicator send = send(handle);
        tickUntil(b, recv(new SendRecvComm()), CommStatus.NET_CONNECT);
        tickUntil(a, send, CommStatus.NET_CONNECT);
        tick(a);
        assertThat(loopback(a, 0).pendingConnects()).isEqualTo(1);
        clock.advance(31, TimeUnit.SECONDS);
        tick(a);
        assertThat(a.testComm(handle)).isEqualTo(NrtStatus.TIMEOUT);
        assertThat(loopback(a, 0).pendingConnects()).isZero();
    }

    @Test
    void everyFailureOfTheTransportIsItsFirstCause() {
        planB.fail(Operation.LISTEN, 2, "no interface"); // the first is the flush buffer's
        start();
        final SendRecvComm handle = new SendRecvComm();
        final Communicator recv = recv(handle);
        tickUntil(b, recv, CommStatus.CONNECTION_ERROR);
        assertThat(b.testComm(handle)).isEqualTo(NrtStatus.FAILURE);
        assertThat(b.lastError()).contains("accept of lnc 1").contains("LISTEN").contains("no interface");
        planA.fail(Operation.CONNECT, 1, "no route");
        final SendRecvComm sendHandle = new SendRecvComm();
        final Communicator send = send(sendHandle);
        tickUntil(b, recv(new SendRecvComm()), CommStatus.NET_CONNECT);
        tickUntil(a, send, CommStatus.CONNECTION_ERROR);
        assertThat(a.testComm(sendHandle)).isEqualTo(NrtStatus.FAILURE);
        assertThat(a.lastError()).contains("NET_CONNECT").contains("no route");
        assertThat(b.context(1).communicatorCount()).as("the failed one does not count").isEqualTo(1);
    }

    @Test
    void theSendersFirstWaitsForTheReceiverAndTheSecondWaitsForTheFirst() {
        start();
        final Communicator first = send(new SendRecvComm());
        final Communicator second = send(new SendRecvComm());
        tickUntil(a, first, CommStatus.WAIT_FOR_NET_HANDLE_GET);
        tick(a);
        assertThat(second.status()).isEqualTo(CommStatus.START_INIT);
        final Communicator recv = recv(new SendRecvComm());
        tickUntil(b, recv, CommStatus.NET_CONNECT);
        tickUntil(a, first, CommStatus.NET_CONNECT);
        tick(a);
        tickUntil(b, recv, CommStatus.CONNECTED);
        tickUntil(a, first, CommStatus.CONNECTED);
        assertThat(second.status()).isEqualTo(CommStatus.START_INIT);
        tickUntil(a, second, CommStatus.WAIT_FOR_NET_HANDLE_GET);
    }

    @Test
    void aStaleHandleSendsTheSenderBackToWaitForTheNextOne() {
        start();
        final SendRecvComm dying = new SendRecvComm();
        final Communicator gone = recv(dying);
        tickUntil(b, gone, CommStatus.NET_CONNECT);
        final byte[] staleHandle = gone.connectState().netHandle.clone();
        // The receiver's process dies, and its handle stays behind in the server of another process.
        b.close();
        final Communicator send = send(new SendRecvComm());
        final List<CommStatus> walk = tickUntil(a, send, CommStatus.NET_CONNECT);
        assertThat(walk).doesNotContain(CommStatus.CONNECTION_ERROR);
        assertThat(send.connectState().netHandle).isEqualTo(staleHandle);
        tick(a);
        assertThat(send.status()).isEqualTo(CommStatus.START_INIT);
        EngineRig.init(b, 1);
        final Communicator back = recv(new SendRecvComm());
        tickUntil(b, back, CommStatus.NET_CONNECT);
        tickUntil(a, send, CommStatus.NET_CONNECT);
        tick(a);
        tickUntil(b, back, CommStatus.CONNECTED);
        tickUntil(a, send, CommStatus.CONNECTED);
    }

    @Test
    void aHandleThatWasTakenByAPeerThatNeverCameIsPublishedAgain() {
        start();
        final Communicator recv = recv(new SendRecvComm());
        tickUntil(b, recv, CommStatus.NET_CONNECT);
        final byte[] key = HandleKey.of(0, 1, recv.connectState().peerHostname);
        assertThat(ask(key, true)).as("somebody takes it").isTrue();
        tickFor(recv, TimeUnit.SECONDS.toMillis(1));
        assertThat(ask(key, false)).as("the taker has time to come").isFalse();
        tickFor(recv, TimeUnit.SECONDS.toMillis(3));
        assertThat(ask(key, false)).as("published again").isTrue();
        assertThat(recv.status()).isEqualTo(CommStatus.NET_CONNECT);
    }

    /** Ticks b while its clock goes on for so long; the server's answers take none of it, however late they come. */
    private void tickFor(final Communicator comm, final long millis) {
        for (long i = 0; i < 10 * millis; i++) {
            clock.advance(100, TimeUnit.MICROSECONDS);
            tick(b);
            if (comm.connectState().kvRequest != null) {
                Await.until(EngineRig.LIMIT, () -> comm + " in " + comm.status(), () -> {
                    tick(b);
                    return comm.connectState().kvRequest == null;
                });
            }
        }
    }

    private boolean ask(final byte[] key, final boolean take) {
        try (KvClient client = KvClient.get(new InetSocketAddress(EngineRig.LOCALHOST, rig.port()), key, take, false,
            (buffer, offset, length) -> { }, KvOptions.DEFAULT)) {
            Await.until(EngineRig.LIMIT, client::describe, () -> {
                client.step();
                return client.isDone();
            });
            assertThat(client.isFailed()).as(client.describe()).isFalse();
            return client.found();
        }
    }

    @Test
    void aHandleOfAnotherLengthFailsTheSender() {
        start();
        final SendRecvComm handle = new SendRecvComm();
        final Communicator send = send(handle);
        tickUntil(a, send, CommStatus.WAIT_FOR_NET_HANDLE_GET);
        final NrtConfig config = a.config();
        final byte[] identity = new byte[128];
        get("hostname".getBytes(java.nio.charset.StandardCharsets.US_ASCII), identity);
        try (KvClient client = KvClient.set(new InetSocketAddress(EngineRig.LOCALHOST, config.bootstrapPort()),
            HandleKey.of(0, 1, identity), new byte[100], KvOptions.DEFAULT)) {
            Await.until(EngineRig.LIMIT, client::describe, () -> {
                client.step();
                return client.isDone();
            });
        }
        tickUntil(a, send, CommStatus.CONNECTION_ERROR);
        assertThat(a.testComm(handle)).isEqualTo(NrtStatus.FAILURE);
        assertThat(a.lastError()).contains("100 bytes instead of 128");
    }

    private void get(final byte[] key, final byte[] target) {
        try (KvClient client = KvClient.get(new InetSocketAddress(EngineRig.LOCALHOST, rig.port()), key, false, false,
            (buffer, offset, length) -> System.arraycopy(buffer, offset, target, 0, length), KvOptions.DEFAULT)) {
            Await.until(EngineRig.LIMIT, client::describe, () -> {
                client.step();
                return client.isDone();
            });
            assertThat(client.found()).isTrue();
        }
    }

    @Test
    void theKeysOfBothEndsAreTheSame() {
        final byte[] host = new byte[128];
        host[0] = 'h';
        final byte[] key = HandleKey.of(3, 127, host);
        assertThat(key).hasSize(143).startsWith('h', 'a', 'n', 'd', 'l', 'e', '-', 3, 0, 0, 0, 127, 0, 0, 0, 'h', 0);
        assertThatThrownBy(() -> HandleKey.of(0, 1, new byte[127])).isInstanceOf(IllegalArgumentException.class);
    }
}
