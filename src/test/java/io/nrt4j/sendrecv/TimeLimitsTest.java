package io.nrt4j.sendrecv;

import static org.assertj.core.api.Assertions.assertThat;

import io.nrt4j.NrtSetting;
import io.nrt4j.NrtStatus;
import io.nrt4j.NrtTensor;
import io.nrt4j.concurrent.NanoClock;
import io.nrt4j.net.loopback.FaultPlan;
import io.nrt4j.net.loopback.FaultPlan.Operation;
import io.nrt4j.net.loopback.LoopbackTransport;
import io.nrt4j.net.loopback.LoopbackTransportProvider;
import io.nrt4j.testing.Await;
import io.nrt4j.testing.Leaks;
import io.nrt4j.testing.Stopwatch;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.channels.SocketChannel;
import java.nio.file.Files;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Peers that are not there, silent or strange; transfers, flushes and inits that do not end by themselves. */
class TimeLimitsTest {
    private static final int STREAMED = 64 << 10;
    private static final int WINDOWS = 6;

    private final EngineRig rig = new EngineRig();

    @AfterEach
    void closeAll() {
        rig.close();
    }

    private NrtStatus awaitEnd(final NrtAsyncSendRecv engine, final SendRecvComm comm) {
        final NrtStatus[] status = new NrtStatus[1];
        Await.until(EngineRig.LIMIT, comm::toString, () -> {
            status[0] = engine.testComm(comm);
            return status[0] != NrtStatus.SUCCESS || comm.connected();
        });
        return status[0];
    }

    @Test
    void aTransferBeyondItsLimitAnswersTimeoutAndKeepsItsSlotUntilTheTransportGivesItUp() {
        final NrtAsyncSendRecv a = rig.engine(builder -> builder.requestTimeout(Duration.ofMillis(50)), null);
        final NrtAsyncSendRecv b = rig.initialised(1);
        EngineRig.init(a, 0);
        final EngineRig.Pair pair = EngineRig.connect(a, 0, b, 1);
        try (NrtTensor tensor = NrtTensor.allocate(8)) {
            final SendRecvRequest send = new SendRecvRequest();
            assertThat(a.sendTensor(tensor, 0, 8, pair.send(), send)).isEqualTo(NrtStatus.SUCCESS);
            Await.until(EngineRig.LIMIT, send::toString, () -> a.testRequest(send) == NrtStatus.TIMEOUT);
            assertThat(a.lastError()).contains("50 ms");
            assertThat(a.testRequest(send)).isEqualTo(NrtStatus.TIMEOUT);
            assertThat(pair.send().communicator().requestsInFlight()).isEqualTo(1);
            final SendRecvRequest recv = new SendRecvRequest();
            assertThat(b.recvTensor(tensor, 0, 8, pair.recv(), recv)).isEqualTo(NrtStatus.SUCCESS);
            EngineRig.awaitDone(b, recv);
            assertThat(EngineRig.awaitDone(a, send)).as("late is not lost").isEqualTo(8);
            assertThat(pair.send().communicator().requestsInFlight()).isZero();
        }
    }

    @Test
    void aStashedTransferHasTheSameLimit() {
        final FaultPlan plan = new FaultPlan();
        final NrtAsyncSendRecv a = rig.engine(builder -> builder.requestTimeout(Duration.ofMillis(50)), plan);
        final NrtAsyncSendRecv b = rig.initialised(1);
        EngineRig.init(a, 0);
        final EngineRig.Pair pair = EngineRig.connect(a, 0, b, 1);
        plan.notYetUntilReleased(Operation.ISEND);
        try (NrtTensor tensor = NrtTensor.allocate(8)) {
            final SendRecvRequest send = new SendRecvRequest();
            assertThat(a.sendTensor(tensor, 0, 8, pair.send(), send)).isEqualTo(NrtStatus.SUCCESS);
            Await.until(EngineRig.LIMIT, send::toString, () -> a.testRequest(send) == NrtStatus.TIMEOUT);
            assertThat(send.toString()).contains("STASHED");
        }
    }

    @Test
    void aFlushThatNeverEndsAnswersTimeout() {
        final FaultPlan plan = new FaultPlan();
        final NrtAsyncSendRecv a = rig.engine(builder -> builder.set(NrtSetting.FLUSH_TIMEOUT_MS, "50"), plan);
        EngineRig.init(a, 0);
        assertThat(a.flush(0)).isEqualTo(NrtStatus.SUCCESS);
        plan.neverComplete(Operation.IFLUSH, 1);
        assertThat(a.flush(0)).isEqualTo(NrtStatus.TIMEOUT);
        assertThat(a.lastError()).contains("flush of lnc 0");
        plan.releaseAll();
        assertThat(a.flush(0)).isEqualTo(NrtStatus.SUCCESS);
        plan.notYetUntilReleased(Operation.IFLUSH);
        assertThat(a.flush(0)).isEqualTo(NrtStatus.TIMEOUT);
        plan.releaseAll();
        plan.fail(Operation.IFLUSH, 1, "fence broken");
        assertThat(a.flush(0)).isEqualTo(NrtStatus.FAILURE);
        assertThat(a.lastError()).contains("fence broken");
        assertThat(a.close(0)).isEqualTo(NrtStatus.SUCCESS);
    }

    /** More fences are abandoned than a communicator has room for: they are collected once the transport gives them back. */
    @Test
    void flushesThatTimedOutDoNotUseTheTransportUp() {
        final FaultPlan plan = new FaultPlan();
        final NrtAsyncSendRecv a = rig.engine(builder -> builder.set(NrtSetting.FLUSH_TIMEOUT_MS, "5"), plan);
        EngineRig.init(a, 0);
        for (int outage = 0; outage < 8; outage++) {
            plan.neverComplete(Operation.IFLUSH, 20);
            for (int i = 0; i < 20; i++) {
                assertThat(a.flush(0)).isEqualTo(NrtStatus.TIMEOUT);
            }
            plan.releaseAll();
            awaitFlush(a);
        }
        plan.neverComplete(Operation.IFLUSH, 200); // more than there is room for
        for (int i = 0; i < 200; i++) {
            assertThat(a.flush(0)).isEqualTo(NrtStatus.TIMEOUT);
        }
        plan.releaseAll();
        awaitFlush(a);
        assertThat(a.close(0)).as(a.lastError()).isEqualTo(NrtStatus.SUCCESS);
    }

    /** Again after a time-out: five milliseconds may be too short for a right flush on a busy machine. */
    private static void awaitFlush(final NrtAsyncSendRecv engine) {
        Await.until(EngineRig.LIMIT, engine::lastError, () -> engine.flush(0) == NrtStatus.SUCCESS);
    }

    /** No native thread is left: an error, not an exception, at the last step of init. */
    @Test
    void aServiceThreadThatCannotStartFailsInitAndLeavesNothing() throws IOException {
        final AtomicBoolean exhausted = new AtomicBoolean(true);
        final List<LoopbackTransport> made = new ArrayList<>();
        final NrtAsyncSendRecv a = rig.add(new NrtAsyncSendRecv(
            rig.config(builder -> builder), new LoopbackTransportProvider(), NanoClock.SYSTEM, context -> {
                made.add((LoopbackTransport) context.transport());
                if (exhausted.get()) {
                    throw new OutOfMemoryError("unable to create native thread");
                }
                context.start();
            }));
        assertThat(a.init(0)).isEqualTo(NrtStatus.FAILURE);
        assertThat(a.lastError()).contains("unable to create native thread").contains("lnc 0");
        assertThat(a.context(0)).isNull();
        assertThat(made.get(0).openComms()).isZero();
        assertThat(made.get(0).openRegistrations()).isZero();
        assertThat(made.get(0).openListeners()).isZero();
        Await.until(EngineRig.LIMIT, () -> Leaks.threads().toString(), () -> Leaks.threads().isEmpty());
        try (ServerSocket port = new ServerSocket()) {
            port.bind(new InetSocketAddress(EngineRig.LOCALHOST, rig.port())); // nobody serves it any more
        }
        assertThat(a.close(0)).as("nothing to close").isEqualTo(NrtStatus.FAILURE);
        exhausted.set(false);
        EngineRig.init(a, 0);
        assertThat(a.flush(0)).isEqualTo(NrtStatus.SUCCESS);
        assertThat(a.close(0)).as(a.lastError()).isEqualTo(NrtStatus.SUCCESS);
    }

    @Test
    void initFailsWithItsCauseAndMayBeTriedAgain() {
        final FaultPlan plan = new FaultPlan();
        final NrtAsyncSendRecv a = rig.engine(builder -> builder, plan);
        plan.fail(Operation.REG_MR, 1, "no device memory can be registered");
        assertThat(a.init(0)).isEqualTo(NrtStatus.FAILURE);
        assertThat(a.lastError()).contains("flush buffer of lnc 0").contains("no device memory can be registered");
        EngineRig.init(a, 0);
        assertThat(ClosingTest.serviceThreads()).isEqualTo(1);
    }

    @Test
    void initEndsAtItsTimeLimitAndMayBeTriedAgain() {
        final FaultPlan plan = new FaultPlan();
        final NrtAsyncSendRecv a = rig.engine(builder -> builder.set(NrtSetting.INIT_TIMEOUT_MS, "300"), plan);
        plan.notYetUntilReleased(Operation.ACCEPT);
        assertThat(a.init(0)).isEqualTo(NrtStatus.FAILURE);
        assertThat(a.lastError()).contains("did not connect to itself");
        plan.releaseAll();
        // Again after a time-out: its limit may be too short for a right init on a busy machine.
        Await.until(EngineRig.LIMIT, a::lastError, () -> a.init(0) == NrtStatus.SUCCESS);
        assertThat(ClosingTest.serviceThreads()).isEqualTo(1);
    }

    @Test
    void anUnusableLockFolderFailsInitWithThePath() throws IOException {
        final var file = Files.createTempFile("nrt4j", "no-folder");
        final NrtAsyncSendRecv a = rig.engine(builder -> builder.kvLockDirectory(file), null);
        final Stopwatch watch = Stopwatch.start();
        assertThat(a.init(0)).isEqualTo(NrtStatus.FAILURE);
        assertThat(watch.elapsed()).isLessThan(Duration.ofSeconds(1));
        assertThat(a.lastError()).contains(file.toString());
        Files.delete(file);
    }

    @Test
    void aPortThatSomebodyElseHoldsFailsInitWithHostAndPort() throws IOException {
        try (ServerSocket stranger = new ServerSocket(rig.port(), 10, InetAddress.getByName(EngineRig.LOCALHOST))) {
            final NrtAsyncSendRecv a = rig.engine();
            assertThat(a.init(0)).isEqualTo(NrtStatus.FAILURE);
            assertThat(a.lastError()).contains(EngineRig.LOCALHOST + ":" + stranger.getLocalPort());
        }
    }

    /** Whoever answers at the peer's port in one of these ways is no key-value server. */
    @Test
    @Tag("slow")
    void strangersAtThePeersPortFailTheCommunicatorWithHostPortAndReason() throws IOException {
        final List<byte[]> greetings = List.of("SSH-2.0-OpenSSH_9.2\r\n".getBytes(java.nio.charset.StandardCharsets.US_ASCII),
            new byte[1156]);
        // Only the silent one is waited for until the time limit.
        final NrtAsyncSendRecv patient = rig.initialised(0);
        final NrtAsyncSendRecv hasty = rig.engine(builder -> builder.connectTimeout(Duration.ofSeconds(3)), null);
        EngineRig.init(hasty, 0);
        for (int i = 0; i < 4; i++) {
            final int kind = i;
            final NrtAsyncSendRecv a = kind == 3 ? hasty : patient;
            final String peer = "127.0.0." + (20 + i);
            try (ServerSocket stranger = new ServerSocket(rig.port(), 50, InetAddress.getByName(peer))) {
                final Thread answering = new Thread(() -> answer(stranger, kind < 2 ? greetings.get(kind) : null, kind == 2));
                answering.setDaemon(true);
                answering.start();
                final SendRecvComm comm = new SendRecvComm();
                assertThat(a.accept(peer, 1, 0, comm)).isEqualTo(NrtStatus.SUCCESS);
                final NrtStatus status = awaitEnd(a, comm);
                assertThat(status).as("kind %s: %s", kind, a.lastError())
                    .isEqualTo(kind == 3 ? NrtStatus.TIMEOUT : NrtStatus.FAILURE);
                assertThat(a.lastError()).contains(peer + ":" + rig.port()).contains("WAIT_FOR_HOSTNAME");
            }
        }
    }

    private static void answer(final ServerSocket server, final byte[] greeting, final boolean closeAtOnce) {
        final List<Socket> kept = new ArrayList<>();
        try {
            while (true) {
                final Socket client = server.accept();
                kept.add(client);
                if (greeting != null) {
                    client.getOutputStream().write(greeting);
                } else if (closeAtOnce) {
                    client.close();
                }
            }
        } catch (final IOException ex) {
            for (final Socket client : kept) {
                try {
                    client.close();
                } catch (final IOException ignored) {
                    continue;
                }
            }
        }
    }

    @Test
    @Tag("slow")
    void aPeerThatStartsTenSecondsLaterConnects() {
        final NrtAsyncSendRecv a = rig.initialised(0);
        final String peer = "127.0.0.8";
        final SendRecvComm send = new SendRecvComm();
        final SendRecvComm recv = new SendRecvComm();
        assertThat(a.connect(peer, 1, 0, send)).isEqualTo(NrtStatus.SUCCESS);
        assertThat(a.accept(peer, 1, 0, recv)).isEqualTo(NrtStatus.SUCCESS);
        final long startNs = System.nanoTime();
        Await.until(EngineRig.LIMIT, "ten seconds of refusals", () -> {
            assertThat(a.testComm(send)).isEqualTo(NrtStatus.SUCCESS);
            assertThat(a.testComm(recv)).isEqualTo(NrtStatus.SUCCESS);
            return System.nanoTime() - startNs > Duration.ofSeconds(10).toNanos();
        });
        try (EngineRig other = new EngineRig()) {
            final NrtAsyncSendRecv b = other.engine(
                builder -> builder.bootstrapPort(rig.port()).kvBindAddress(peer), null);
            EngineRig.init(b, 1);
            final SendRecvComm peerRecv = new SendRecvComm();
            final SendRecvComm peerSend = new SendRecvComm();
            assertThat(b.accept(EngineRig.LOCALHOST, 0, 1, peerRecv)).isEqualTo(NrtStatus.SUCCESS);
            assertThat(b.connect(EngineRig.LOCALHOST, 0, 1, peerSend)).isEqualTo(NrtStatus.SUCCESS);
            EngineRig.awaitConnected(a, send);
            EngineRig.awaitConnected(a, recv);
            EngineRig.awaitConnected(b, peerRecv);
            EngineRig.awaitConnected(b, peerSend);
        }
    }

    @Test
    @Tag("slow")
    void aRefusedPortEndsInTimeoutAtTheLimit() {
        final NrtAsyncSendRecv a = rig.engine(builder -> builder.connectTimeout(Duration.ofMillis(1500)), null);
        EngineRig.init(a, 0);
        final SendRecvComm comm = new SendRecvComm();
        final Stopwatch watch = Stopwatch.start();
        assertThat(a.connect("127.0.0.9", 1, 0, comm)).isEqualTo(NrtStatus.SUCCESS);
        assertThat(awaitEnd(a, comm)).isEqualTo(NrtStatus.TIMEOUT);
        assertThat(Duration.ofNanos(System.nanoTime() - watch.startNs())).isGreaterThanOrEqualTo(Duration.ofMillis(1500));
        assertThat(watch.elapsed()).isLessThan(Duration.ofMillis(2500));
        assertThat(a.lastError()).contains("127.0.0.9").containsIgnoringCase("refused");
    }

    /**
     * A listener whose queue is full swallows further connections without a word. Windows with such a peer and without one follow each
     * other, so that whatever else the machine does meets both.
     */
    @Test
    @Tag("slow")
    void aBlackHolePeerTimesOutWhileOthersConnectAndStreamAsFastAsWithoutIt() throws IOException {
        final String hole = "127.0.0.10";
        final Duration window = Duration.ofSeconds(1);
        // It is the limit of those that connect, too, and they need some time on a busy machine.
        final NrtAsyncSendRecv a = rig.engine(builder -> builder.connectTimeout(window.multipliedBy(4)), null);
        final NrtAsyncSendRecv b = rig.initialised(1);
        EngineRig.init(a, 0);
        final List<SocketChannel> fillers = new ArrayList<>();
        try (ServerSocket swallowing = new ServerSocket(rig.port(), 1, InetAddress.getByName(hole));
            NrtTensor tensor = NrtTensor.allocate(2 * STREAMED)) {
            for (int i = 0; i < 8; i++) {
                final SocketChannel filler = SocketChannel.open();
                filler.configureBlocking(false);
                filler.connect(new InetSocketAddress(hole, swallowing.getLocalPort()));
                fillers.add(filler);
            }
            final EngineRig.Pair pair = EngineRig.connect(a, 0, b, 1);
            stream(a, b, pair, tensor, window, null);
            final List<Double> with = new ArrayList<>();
            final List<Double> without = new ArrayList<>();
            // What else the machine does may slow a window down, though hardly each time the one with the hole and not its neighbour.
            double best = 0;
            for (int i = 0; i < WINDOWS && best < 0.5; i++) {
                without.add(stream(a, b, pair, tensor, window, null));
                final SendRecvComm lost = new SendRecvComm();
                assertThat(a.connect(hole, 1, 0, lost)).isEqualTo(NrtStatus.SUCCESS);
                EngineRig.connect(b, 1, a, 0); // another pair connects meanwhile
                with.add(stream(a, b, pair, tensor, window, lost));
                assertThat(a.testComm(lost)).isEqualTo(NrtStatus.TIMEOUT);
                assertThat(a.lastError()).contains(hole);
                best = Math.max(best, with.get(i) / without.get(i));
            }
            assertThat(best).as("transfers a second %s with the hole, %s without", with, without).isGreaterThanOrEqualTo(0.5);
        } finally {
            for (final SocketChannel filler : fillers) {
                filler.close();
            }
        }
    }

    /** Transfers a second, for so long, or as long as a communicator connects. */
    private static double stream(
        final NrtAsyncSendRecv a, final NrtAsyncSendRecv b, final EngineRig.Pair pair, final NrtTensor tensor, final Duration window,
        final SendRecvComm lost) {
        final SendRecvRequest send = new SendRecvRequest();
        final SendRecvRequest recv = new SendRecvRequest();
        final long startNs = System.nanoTime();
        int transfers = 0;
        while (lost == null ? System.nanoTime() - startNs < window.toNanos() : a.testComm(lost) == NrtStatus.SUCCESS) {
            assertThat(b.recvTensor(tensor, 0, STREAMED, pair.recv(), recv)).isEqualTo(NrtStatus.SUCCESS);
            assertThat(a.sendTensor(tensor, STREAMED, STREAMED, pair.send(), send)).isEqualTo(NrtStatus.SUCCESS);
            EngineRig.awaitDone(a, send);
            EngineRig.awaitDone(b, recv);
            transfers++;
        }
        return transfers * 1e9 / (System.nanoTime() - startNs);
    }
}
