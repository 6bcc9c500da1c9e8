package io.nrt4j.sendrecv;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nrt4j.NrtStatus;
import io.nrt4j.kv.KvClient;
import io.nrt4j.kv.KvOptions;
import io.nrt4j.net.NetTransport;
import io.nrt4j.net.loopback.FaultPlan;
import io.nrt4j.net.loopback.FaultPlan.Operation;
import io.nrt4j.net.loopback.LoopbackTransport;
import io.nrt4j.testing.Await;
import io.nrt4j.testing.HandClock;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** How connecting ends other than by being connected: out of every state of both walks, by time and by failure. */
class ConnectEndsTest {
    private static final int LNC = 0;
    private static final int PEER_LNC = 1;
    private static final Duration TIME_LIMIT = Duration.ofSeconds(30);
    private static final String STRANGER = "127.0.0.50";

    private final EngineRig rig = new EngineRig();
    private final HandClock clock = new HandClock();
    private final FaultPlan plan = new FaultPlan();
    private final SendRecvComm handle = new SendRecvComm();
    private NrtAsyncSendRecv engine;
    private ServerSocket stranger;

    @AfterEach
    void closeAll() throws IOException {
        rig.close();
        if (stranger != null) {
            stranger.close();
        }
    }

    /** What ends it. */
    enum End {
        /** The time limit. */
        TIMEOUT,
        /** A server that is none, or a clock of the client that breaks where no server has been asked yet. */
        KV_FAILURE,
        /** The transport. */
        NET_FAILURE
    }

    static Stream<Arguments> everyStateAndWhatEndsIt() {
        return Stream.of(
            Arguments.of(CommType.SEND_COMM, CommStatus.START_INIT, End.TIMEOUT),
            Arguments.of(CommType.SEND_COMM, CommStatus.START_INIT, End.KV_FAILURE),
            Arguments.of(CommType.SEND_COMM, CommStatus.WAIT_FOR_NET_HANDLE_GET, End.TIMEOUT),
            Arguments.of(CommType.SEND_COMM, CommStatus.WAIT_FOR_NET_HANDLE_GET, End.KV_FAILURE),
            Arguments.of(CommType.SEND_COMM, CommStatus.NET_CONNECT, End.TIMEOUT),
            Arguments.of(CommType.SEND_COMM, CommStatus.NET_CONNECT, End.NET_FAILURE),
            Arguments.of(CommType.RECV_COMM, CommStatus.START_INIT, End.TIMEOUT),
            Arguments.of(CommType.RECV_COMM, CommStatus.START_INIT, End.KV_FAILURE),
            Arguments.of(CommType.RECV_COMM, CommStatus.WAIT_FOR_HOSTNAME, End.TIMEOUT),
            Arguments.of(CommType.RECV_COMM, CommStatus.WAIT_FOR_HOSTNAME, End.KV_FAILURE),
            Arguments.of(CommType.RECV_COMM, CommStatus.LISTEN, End.TIMEOUT),
            Arguments.of(CommType.RECV_COMM, CommStatus.LISTEN, End.NET_FAILURE),
            Arguments.of(CommType.RECV_COMM, CommStatus.WAIT_FOR_NET_HANDLE_SET, End.TIMEOUT),
            Arguments.of(CommType.RECV_COMM, CommStatus.WAIT_FOR_NET_HANDLE_SET, End.KV_FAILURE),
            Arguments.of(CommType.RECV_COMM, CommStatus.NET_CONNECT, End.TIMEOUT),
            Arguments.of(CommType.RECV_COMM, CommStatus.NET_CONNECT, End.NET_FAILURE));
    }

    @ParameterizedTest
    @MethodSource("everyStateAndWhatEndsIt")
    void everyStateEndsInConnectionErrorAndLeavesNothing(final CommType type, final CommStatus state, final End end)
        throws IOException {
        engine = rig.handDriven(builder -> builder, plan, clock);
        EngineRig.init(engine, LNC);
        final LoopbackTransport transport = (LoopbackTransport) engine.context(LNC).transport();
        final int listeners = transport.openListeners();
        final ConnectMachine machine = machine(state, end);
        final Communicator comm = communicator(type, state, end);
        if (type == CommType.SEND_COMM && state == CommStatus.NET_CONNECT) {
            publishHandle(transport);
        }
        stepTo(machine, comm, state);
        if (state == CommStatus.NET_CONNECT && end == End.TIMEOUT) {
            machine.step(comm); // the transport is asked, and answers "not yet"
            assertThat(transport.pendingConnects()).isEqualTo(type == CommType.SEND_COMM ? 1 : 0);
        }
        if (end == End.TIMEOUT) {
            clock.advance(TIME_LIMIT.toSeconds() + 1, TimeUnit.SECONDS);
        } else if (end == End.NET_FAILURE) {
            plan.fail(type == CommType.SEND_COMM ? Operation.CONNECT : state == CommStatus.LISTEN ? Operation.LISTEN : Operation.ACCEPT,
                1, "no such luck");
        }
        stepTo(machine, comm, CommStatus.CONNECTION_ERROR);
        assertEnded(comm, type, state, end);
        assertThat(transport.pendingConnects()).isZero();
        assertThat(transport.openListeners() - listeners).as("its own is closed; what is left stands for the peer's")
            .isEqualTo(type == CommType.SEND_COMM && state == CommStatus.NET_CONNECT ? 1 : 0);
        assertThat(comm.connectState().kvRequest).isNull();
        assertThatThrownBy(() -> machine.step(comm)).isInstanceOf(BrokenMachineException.class).hasMessageContaining("CONNECTION_ERROR");
    }

    private void assertEnded(final Communicator comm, final CommType type, final CommStatus state, final End end) {
        assertThat(engine.testComm(handle)).isEqualTo(end == End.TIMEOUT ? NrtStatus.TIMEOUT : NrtStatus.FAILURE);
        final CommFailure failure = handle.failure().orElseThrow();
        assertThat(failure.state()).isEqualTo(state.name());
        assertThat(failure.timedOut()).isEqualTo(end == End.TIMEOUT);
        assertThat(failure.operation()).isEqualTo(type == CommType.SEND_COMM ? "connect" : "accept");
        assertThat(failure.lnc()).isEqualTo(LNC);
        assertThat(failure.peerLnc()).isEqualTo(PEER_LNC);
        assertThat(failure.peerIp()).isEqualTo(comm.peer().ip());
        assertThat(failure.elapsed().compareTo(TIME_LIMIT)).isEqualTo(end == End.TIMEOUT ? 1 : -1);
        assertThat(engine.lastError()).contains(state.name()).contains("lnc 0").contains(switch (end) {
            case TIMEOUT -> "30000 ms";
            case NET_FAILURE -> "no such luck";
            case KV_FAILURE -> state == CommStatus.START_INIT ? "broken clock" : STRANGER + ":" + rig.port();
        });
    }

    private ConnectMachine machine(final CommStatus state, final End end) throws IOException {
        KvOptions options = KvOptions.DEFAULT.withClock(clock);
        String ownServer = EngineRig.LOCALHOST;
        if (end == End.KV_FAILURE && state == CommStatus.START_INIT) {
            options = options.withClock(() -> {
                throw new IllegalStateException("broken clock");
            });
        } else if (end == End.KV_FAILURE) {
            letAStrangerAnswer();
            ownServer = STRANGER;
        }
        return new ConnectMachine(LNC, engine.context(LNC).transport(), new Rendezvous(identity(),
            new InetSocketAddress(ownServer, rig.port()), rig.port(), options), TIME_LIMIT.toNanos(), clock);
    }

    private Communicator communicator(final CommType type, final CommStatus state, final End end) throws IOException {
        final boolean asksStranger = end == End.KV_FAILURE
            && (state == CommStatus.WAIT_FOR_HOSTNAME || state == CommStatus.WAIT_FOR_NET_HANDLE_GET);
        final Communicator comm = new Communicator(engine.context(LNC), type,
            InetAddress.getByName(asksStranger ? STRANGER : EngineRig.LOCALHOST), PEER_LNC, clock.nanoTime());
        handle.fill(comm);
        return comm;
    }

    private void letAStrangerAnswer() throws IOException {
        stranger = new ServerSocket(rig.port(), 10, InetAddress.getByName(STRANGER));
        final ServerSocket server = stranger;
        final Thread answering = new Thread(() -> {
            final List<Socket> kept = new ArrayList<>();
            try {
                while (true) {
                    final Socket client = server.accept();
                    kept.add(client);
                    client.getOutputStream().write("220 mail.example ESMTP\r\n".getBytes(StandardCharsets.US_ASCII));
                }
            } catch (final IOException ex) {
                kept.forEach(ConnectEndsTest::close);
            }
        });
        answering.setDaemon(true);
        answering.start();
    }

    private static void close(final Socket socket) {
        try {
            socket.close();
        } catch (final IOException ex) {
            throw new UncheckedIOException(ex);
        }
    }

    private void stepTo(final ConnectMachine machine, final Communicator comm, final CommStatus wanted) {
        Await.until(EngineRig.LIMIT, () -> comm + " is in " + comm.status() + " " + comm.failure(), () -> {
            if (comm.status() != wanted) {
                machine.step(comm);
                clock.advance(100, TimeUnit.MICROSECONDS);
            }
            return comm.status() == wanted;
        });
    }

    private byte[] identity() {
        final byte[] identity = new byte[HandleKey.HOSTNAME_BYTES];
        assertThat(ask(HandleKey.hostname(), identity)).isTrue();
        return identity;
    }

    private boolean ask(final byte[] key, final byte[] target) {
        try (KvClient client = KvClient.get(new InetSocketAddress(EngineRig.LOCALHOST, rig.port()), key, false, false,
            (buffer, offset, length) -> System.arraycopy(buffer, offset, target, 0, length), KvOptions.DEFAULT)) {
            finish(client);
            return client.found();
        }
    }

    private static void finish(final KvClient client) {
        Await.until(EngineRig.LIMIT, client::describe, () -> {
            client.step();
            return client.isDone();
        });
        assertThat(client.isFailed()).as(client.describe()).isFalse();
    }

    /** As a receiver that listens and never accepts. */
    private void publishHandle(final LoopbackTransport transport) {
        final byte[] listening = new byte[NetTransport.HANDLE_BYTES];
        transport.listen(PEER_LNC, listening);
        try (KvClient client = KvClient.set(new InetSocketAddress(EngineRig.LOCALHOST, rig.port()),
            HandleKey.of(LNC, PEER_LNC, identity()), listening, KvOptions.DEFAULT)) {
            finish(client);
        }
    }

    /** The server that had the handle is gone, and another process serves. */
    @Test
    void aHandleThatWasLostWithItsServerIsPublishedToTheNextOne() {
        final NrtAsyncSendRecv leader = rig.handDriven(builder -> builder, null, clock);
        EngineRig.init(leader, 5);
        engine = rig.handDriven(builder -> builder, plan, clock);
        EngineRig.init(engine, LNC);
        assertThat(engine.accept(EngineRig.LOCALHOST, PEER_LNC, LNC, handle)).isEqualTo(NrtStatus.SUCCESS);
        final Communicator recv = handle.communicator();
        tickTo(recv, CommStatus.NET_CONNECT);
        final byte[] published = recv.connectState().netHandle.clone();
        final byte[] key = HandleKey.of(PEER_LNC, LNC, recv.connectState().peerHostname);
        final long firstEpoch = recv.connectState().publishedEpoch;
        assertThat(ask(key, new byte[NetTransport.HANDLE_BYTES])).isTrue();
        leader.close();
        tickTo(recv, CommStatus.WAIT_FOR_NET_HANDLE_SET); // one step back
        tickTo(recv, CommStatus.NET_CONNECT);
        assertThat(recv.connectState().publishedEpoch).isNotEqualTo(firstEpoch);
        final byte[] found = new byte[NetTransport.HANDLE_BYTES];
        assertThat(ask(key, found)).as("in the other server").isTrue();
        assertThat(found).isEqualTo(published);
        final NrtAsyncSendRecv peer = rig.initialised(PEER_LNC);
        final SendRecvComm send = new SendRecvComm();
        assertThat(peer.connect(EngineRig.LOCALHOST, LNC, PEER_LNC, send)).isEqualTo(NrtStatus.SUCCESS);
        tickTo(recv, CommStatus.CONNECTED);
        EngineRig.awaitConnected(peer, send);
    }

    private void tickTo(final Communicator comm, final CommStatus wanted) {
        Await.until(EngineRig.LIMIT, () -> comm + " is in " + comm.status(), () -> {
            engine.context(LNC).service().doWork();
            clock.advance(1, TimeUnit.MILLISECONDS);
            return comm.status() == wanted;
        });
    }

    /** The one method that changes a status refuses, and its refusal is no failure of the communicator but of the machine. */
    @Test
    void aTransitionThatCannotBeIsRefusedLoudly() throws IOException {
        final AtomicReference<Communicator> victim = new AtomicReference<>();
        engine = rig.add(new NrtAsyncSendRecv(rig.config(builder -> builder), new AlteredLoopback(call -> {
            if (call.equals("listen") && victim.get() != null) {
                victim.getAndSet(null).setStatus(CommStatus.CONNECTED); // behind the machine's back, in the middle of a step
            }
            return null;
        }), clock, context -> { }));
        EngineRig.init(engine, LNC);
        final ConnectMachine machine = machine(CommStatus.LISTEN, End.TIMEOUT);
        final Communicator recv = communicator(CommType.RECV_COMM, CommStatus.LISTEN, End.TIMEOUT);
        stepTo(machine, recv, CommStatus.LISTEN);
        victim.set(recv);
        assertThatThrownBy(() -> machine.step(recv)).isInstanceOf(BrokenMachineException.class)
            .hasMessageContaining("cannot go from CONNECTED to WAIT_FOR_NET_HANDLE_SET").hasMessageContaining("lnc 0");
        assertThat(recv.status()).as("left as it was found").isEqualTo(CommStatus.CONNECTED);
        assertThat(recv.failure()).isNull();
        recv.setStatus(CommStatus.CONNECTION_ERROR);
        assertThatThrownBy(() -> machine.abort(recv)).isInstanceOf(BrokenMachineException.class)
            .hasMessageContaining("cannot go from CONNECTION_ERROR to CONNECTION_ERROR");
    }
}
