package io.nrt4j.sendrecv;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import io.nrt4j.NrtConfig;
import io.nrt4j.NrtSetting;
import io.nrt4j.NrtStatus;
import io.nrt4j.NrtTensor;
import io.nrt4j.concurrent.NanoClock;
import io.nrt4j.net.libnccom.LibnccomProvider;
import io.nrt4j.net.libnccom.NccomStandIn;
import io.nrt4j.net.libnccom.StandInGuard;
import io.nrt4j.testing.Await;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;

/** The engine over libnccom, played by the stand-in: two hosts in one process. */
@ExtendWith(StandInGuard.class)
@Timeout(value = 200, unit = TimeUnit.SECONDS)
class LibnccomEngineTest {
    private static final int STREAM = 1000;

    private final EngineRig rig = new EngineRig();
    private final List<NrtTensor> tensors = new ArrayList<>();

    @AfterEach
    void nothingIsLeft() {
        rig.close();
        tensors.forEach(NrtTensor::close);
        NccomStandIn.assertNothingOpen();
    }

    private NrtConfig config(final UnaryOperator<NrtConfig.Builder> more) {
        return rig.config(builder -> more.apply(builder.transport("libnccom")
            .set(NrtSetting.LIBNCCOM_PATH, NccomStandIn.library().toString())));
    }

    private NrtAsyncSendRecv initialised(final int lnc) {
        final NrtAsyncSendRecv engine = engine();
        EngineRig.init(engine, lnc);
        return engine;
    }

    private NrtAsyncSendRecv engine() {
        return rig.add(new NrtAsyncSendRecv(config(builder -> builder)));
    }

    private NrtTensor tensor(final long bytes) {
        final NrtTensor tensor = NrtTensor.allocate(bytes);
        tensors.add(tensor);
        return tensor;
    }

    private static SendRecvRequest send(
        final NrtAsyncSendRecv engine, final SendRecvComm comm, final NrtTensor tensor, final long offset, final long length) {
        final SendRecvRequest request = new SendRecvRequest();
        assertThat(engine.sendTensor(tensor, offset, length, comm, request)).as(engine.lastError()).isEqualTo(NrtStatus.SUCCESS);
        return request;
    }

    private static SendRecvRequest recv(
        final NrtAsyncSendRecv engine, final SendRecvComm comm, final NrtTensor tensor, final long offset, final long length) {
        final SendRecvRequest request = new SendRecvRequest();
        assertThat(engine.recvTensor(tensor, offset, length, comm, request)).as(engine.lastError()).isEqualTo(NrtStatus.SUCCESS);
        return request;
    }

    /** 300 messages of mixed sizes from hot and cold tensors, in order; then a flush. */
    private void exchange(final NrtAsyncSendRecv a, final NrtAsyncSendRecv b, final EngineRig.Pair pair) {
        final int rounds = 300;
        final Random random = new Random(3);
        final NrtTensor hot = tensor(1 << 20);
        final NrtTensor sink = tensor(1 << 20);
        for (int round = 0; round < rounds; round++) {
            final int length = round % 50 == 0 ? 1 << 20 : random.nextInt(5000);
            final NrtTensor from = round % 3 == 0 ? NrtTensor.allocate(1 << 20) : hot;
            final byte[] bytes = new byte[length];
            random.nextBytes(bytes);
            from.write(0, bytes);
            final SendRecvRequest receive = recv(b, pair.recv(), sink, 0, 1 << 20);
            final SendRecvRequest sent = send(a, pair.send(), from, 0, length);
            if (from != hot) {
                from.close();
            }
            final long[] sizes = awaitBoth(a, sent, b, receive);
            assertThat(sizes).containsExactly(length, length);
            assertThat(sink.read(0, length)).isEqualTo(bytes);
        }
        assertThat(b.flush(1)).as(b.lastError()).isEqualTo(NrtStatus.SUCCESS);
    }

    private static long[] awaitBoth(
        final NrtAsyncSendRecv a, final SendRecvRequest sent, final NrtAsyncSendRecv b, final SendRecvRequest received) {
        Await.until(EngineRig.LIMIT, () -> sent + " and " + received, () -> {
            if (!sent.done()) {
                assertThat(a.testRequest(sent)).as(a.lastError()).isEqualTo(NrtStatus.SUCCESS);
            }
            if (!received.done()) {
                assertThat(b.testRequest(received)).as(b.lastError()).isEqualTo(NrtStatus.SUCCESS);
            }
            return sent.done() && received.done();
        });
        return new long[] {sent.size(), received.size()};
    }

    private void connectAndExchange() {
        final NrtAsyncSendRecv a = initialised(0);
        final NrtAsyncSendRecv b = initialised(1);
        exchange(a, b, EngineRig.connect(a, 0, b, 1));
        assertThat(a.close(0)).as(a.lastError()).isEqualTo(NrtStatus.SUCCESS);
        assertThat(b.close(1)).as(b.lastError()).isEqualTo(NrtStatus.SUCCESS);
        NccomStandIn.assertNothingOpen();
    }

    @Test
    void oneConfigurationValueIsEnough() {
        connectAndExchange();
    }

    @Test
    void overSockets() {
        NccomStandIn.set("SOCKETS", 1);
        connectAndExchange();
    }

    @Test
    void aLibraryThatIsNeverReadyAtOnce() {
        NccomStandIn.set("NULL_COMMS", 20);
        NccomStandIn.set("NULL_REQUESTS", 50);
        NccomStandIn.set("SLOW_TEST", 5);
        NccomStandIn.set("CONNECT_WAITS", 1);
        connectAndExchange();
    }

    @Test
    void overSocketsWithAConnectThatWaits() {
        NccomStandIn.set("SOCKETS", 1);
        NccomStandIn.set("CONNECT_WAITS", 1);
        connectAndExchange();
    }

    /** By hand: while one registration is outstanding, a hot tensor behind it waits too. */
    @Test
    void theGateKeepsTheOrder() {
        final NrtAsyncSendRecv a =
            rig.add(new NrtAsyncSendRecv(config(builder -> builder), new LibnccomProvider(), NanoClock.SYSTEM, context -> { }));
        final NrtAsyncSendRecv b =
            rig.add(new NrtAsyncSendRecv(config(builder -> builder), new LibnccomProvider(), NanoClock.SYSTEM, context -> { }));
        EngineRig.init(a, 0);
        EngineRig.init(b, 1);
        final EngineRig.Pair pair = EngineRig.begin(a, 0, b, 1);
        final Runnable tick = () -> {
            a.context(0).service().doWork();
            b.context(1).service().doWork();
        };
        Await.until(EngineRig.LIMIT, pair::toString, () -> {
            tick.run();
            return pair.send().connected() && pair.recv().connected();
        });
        final NrtTensor hot = tensor(64);
        final NrtTensor sink = tensor(64);
        final List<SendRecvRequest> sends = new ArrayList<>();
        final List<SendRecvRequest> recvs = new ArrayList<>();
        sends.add(send(a, pair.send(), hot, 0, 1));
        tick.run();
        for (int i = 2; i <= 6; i++) {
            sends.add(send(a, pair.send(), i % 2 == 0 ? tensor(64) : hot, 0, i));
            assertThat(RequestSlot.statusOf(sends.get(i - 1).slot().stateWord())).isEqualTo(RequestStatus.STASHED);
        }
        for (int i = 0; i < 6; i++) {
            recvs.add(recv(b, pair.recv(), sink, 0, 64));
        }
        tick.run();
        for (int i = 0; i < 6; i++) {
            assertThat(awaitBoth(a, sends.get(i), b, recvs.get(i))).containsExactly(i + 1, i + 1);
        }
    }

    @Test
    void aHundredAndTwentyEightPendingAndNoMore() {
        final NrtAsyncSendRecv a = initialised(0);
        final NrtAsyncSendRecv b = initialised(1);
        final EngineRig.Pair pair = EngineRig.connect(a, 0, b, 1);
        final NrtTensor out = tensor(128);
        final NrtTensor in = tensor(128);
        final List<SendRecvRequest> sends = new ArrayList<>();
        for (int i = 0; i < 128; i++) {
            sends.add(send(a, pair.send(), out, i, 1));
        }
        assertThat(a.sendTensor(out, 0, 1, pair.send(), new SendRecvRequest())).isEqualTo(NrtStatus.RESOURCE);
        // Before the close: it fails the peer's communicator some time later.
        for (int i = 0; i < 128; i++) {
            assertThat(b.recvTensor(in, i, 1, pair.recv(), new SendRecvRequest())).isEqualTo(NrtStatus.SUCCESS);
        }
        assertThat(b.recvTensor(in, 0, 1, pair.recv(), new SendRecvRequest())).isEqualTo(NrtStatus.RESOURCE);
        assertThat(a.close(0)).as("requests are in flight").isEqualTo(NrtStatus.FAILURE);
    }

    @Test
    void tooLongForTheReceiveFailsAndTheNextOneWorks() {
        final NrtAsyncSendRecv a = initialised(0);
        final NrtAsyncSendRecv b = initialised(1);
        final EngineRig.Pair pair = EngineRig.connect(a, 0, b, 1);
        final NrtTensor out = tensor(100);
        final NrtTensor in = tensor(100);
        out.write(0, "x".repeat(100).getBytes(StandardCharsets.US_ASCII));
        final SendRecvRequest receive = recv(b, pair.recv(), in, 0, 10);
        final SendRecvRequest sent = send(a, pair.send(), out, 0, 11);
        assertThat(EngineRig.awaitFailure(b, receive)).isEqualTo(NrtStatus.FAILURE);
        assertThat(b.lastError()).contains("neuronNetTest", "10 bytes", "size 11");
        assertThat(EngineRig.awaitFailure(a, sent)).isEqualTo(NrtStatus.FAILURE);
        assertThat(in.read(0, 100)).containsOnly(0);
        final SendRecvRequest again = recv(b, pair.recv(), in, 0, 10);
        assertThat(awaitBoth(a, send(a, pair.send(), out, 0, 10), b, again)).containsExactly(10, 10);
    }

    /** A size is a C int. */
    @Test
    void twoGibibytesAreRefused() {
        final NrtAsyncSendRecv a = initialised(0);
        final NrtAsyncSendRecv b = initialised(1);
        final EngineRig.Pair pair = EngineRig.connect(a, 0, b, 1);
        final NrtTensor huge = NrtTensor.wrapAddress(0x10000, 1L << 33, io.nrt4j.Placement.HOST, 0);
        for (final long length : new long[] {1L << 31, (1L << 32) + 5}) {
            final NrtStatus status = a.sendTensor(huge, 0, length, pair.send(), new SendRecvRequest());
            assertThat(status).isEqualTo(NrtStatus.FAILURE);
            assertThat(a.lastError()).contains(Long.toString(length));
        }
        huge.close();
    }

    @Test
    void everyErrorOfTheLibraryIsTheFirstCause() {
        for (final String function : List.of("neuronNetListen", "neuronNetConnect", "neuronNetAccept", "neuronNetRegMrOG")) {
            final NrtAsyncSendRecv a = initialised(0);
            final NrtAsyncSendRecv b = initialised(1);
            NccomStandIn.reset();
            NccomStandIn.set("FAIL", function + ":1+:6");
            NccomStandIn.configure();
            final EngineRig.Pair pair = EngineRig.begin(a, 0, b, 1);
            if (function.equals("neuronNetRegMrOG")) {
                EngineRig.awaitConnected(a, b, pair);
                final SendRecvRequest sent = send(a, pair.send(), tensor(8), 0, 8);
                assertThat(EngineRig.awaitFailure(a, sent)).isEqualTo(NrtStatus.FAILURE);
                assertThat(a.lastError()).contains(function, "6 (HW_ERROR)");
            } else {
                final NrtAsyncSendRecv failing = function.equals("neuronNetConnect") ? a : b;
                final SendRecvComm comm = failing == a ? pair.send() : pair.recv();
                Await.until(EngineRig.LIMIT, comm::toString, () -> failing.testComm(comm) == NrtStatus.FAILURE);
                assertThat(comm.failure().toString()).contains(function, "6 (HW_ERROR)");
            }
            NccomStandIn.reset();
            a.close();
            b.close();
        }
    }

    /** Each pair has threads of its own; the stand-in reports two threads in one communicator. */
    @Test
    @Tag("slow")
    void manyLncsAtOnce() throws Exception {
        final int pairs = 8;
        final NrtAsyncSendRecv a = engine();
        final NrtAsyncSendRecv b = engine();
        final ExecutorService threads = Executors.newFixedThreadPool(2 * pairs);
        try {
            final List<Future<Long>> all = new ArrayList<>();
            for (int lnc = 0; lnc < pairs; lnc++) {
                EngineRig.init(a, lnc);
                EngineRig.init(b, 64 + lnc);
                final EngineRig.Pair pair = EngineRig.connect(a, lnc, b, 64 + lnc);
                final NrtTensor out = tensor(4096);
                final NrtTensor in = tensor(4096);
                final Callable<Long> sender = () -> stream(a, pair.send(), out, true);
                final Callable<Long> receiver = () -> stream(b, pair.recv(), in, false);
                all.add(threads.submit(sender));
                all.add(threads.submit(receiver));
            }
            for (final Future<Long> each : all) {
                assertThat(each.get(150, TimeUnit.SECONDS)).isEqualTo(STREAM * 64L);
            }
        } finally {
            threads.shutdownNow();
        }
    }

    /** Yields while it waits: there are many more threads than processors. */
    private static long stream(final NrtAsyncSendRecv engine, final SendRecvComm comm, final NrtTensor tensor, final boolean sending) {
        long moved = 0;
        final long deadlineNs = System.nanoTime() + TimeUnit.SECONDS.toNanos(150);
        for (int i = 0; i < STREAM; i++) {
            final SendRecvRequest request = sending ? send(engine, comm, tensor, 0, 64) : recv(engine, comm, tensor, 0, 64);
            while (!request.done()) {
                assertThat(engine.testRequest(request)).as(engine.lastError()).isEqualTo(NrtStatus.SUCCESS);
                assertThat(System.nanoTime() - deadlineNs).as("%s in %s", request, engine).isNegative();
                Thread.yield();
            }
            moved += request.size();
        }
        return moved;
    }

    @Test
    void postsAndTestsAllocateNothing() {
        final NrtAsyncSendRecv a = initialised(0);
        final NrtAsyncSendRecv b = initialised(1);
        final EngineRig.Pair pair = EngineRig.connect(a, 0, b, 1);
        final NrtTensor tensor = tensor(4096);
        final SendRecvRequest sent = new SendRecvRequest();
        final SendRecvRequest received = new SendRecvRequest();
        final ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        final int cycles = 50_000;
        cycle(a, b, pair, tensor, sent, received, cycles);
        final long before = threads.getThreadAllocatedBytes(Thread.currentThread().getId());
        cycle(a, b, pair, tensor, sent, received, cycles);
        assertThat(threads.getThreadAllocatedBytes(Thread.currentThread().getId()) - before).isLessThan(cycles / 10);
    }

    private static void cycle(
        final NrtAsyncSendRecv a, final NrtAsyncSendRecv b, final EngineRig.Pair pair, final NrtTensor tensor,
        final SendRecvRequest sent, final SendRecvRequest received, final int cycles) {
        for (int i = 0; i < cycles; i++) {
            NrtStatus worst = b.recvTensor(tensor, 2048, 8, pair.recv(), received);
            worst = worst == NrtStatus.SUCCESS ? a.sendTensor(tensor, 0, 8, pair.send(), sent) : worst;
            while (worst == NrtStatus.SUCCESS && !sent.done()) {
                worst = a.testRequest(sent);
            }
            while (worst == NrtStatus.SUCCESS && !received.done()) {
                worst = b.testRequest(received);
            }
            if (worst != NrtStatus.SUCCESS) {
                throw new AssertionError(worst + " " + a.lastError() + " " + b.lastError());
            }
        }
    }
}
