package io.nrt4j.sendrecv;

import static org.assertj.core.api.Assertions.assertThat;

import io.nrt4j.NrtStatus;
import io.nrt4j.NrtTensor;
import io.nrt4j.kv.Strangers;
import io.nrt4j.testing.Await;
import io.nrt4j.testing.Leaks;
import io.nrt4j.testing.Stopwatch;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.IntConsumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Strangers at the port of the key-value server, while one pair streams and others connect beside them. */
@Tag("slow")
class StrangersBesideAPairTest {
    private static final long MAX_HEAP_GROWTH = 20L << 20;
    private static final Duration SLOWEST = Duration.ofSeconds(2);
    private static final int LONGS = 512;

    private final EngineRig rig = new EngineRig();
    private final List<Socket> sockets = new ArrayList<>();
    private final Activity streaming = new Activity("streaming-pair", this::transfer);
    private final Activity connecting = new Activity("connecting-pairs", this::connectAPair);
    private final NrtTensor from = NrtTensor.allocate(LONGS * 8L);
    private final NrtTensor to = NrtTensor.allocate(LONGS * 8L);
    private final SendRecvRequest send = new SendRecvRequest();
    private final SendRecvRequest recv = new SendRecvRequest();
    private NrtAsyncSendRecv a;
    private NrtAsyncSendRecv b;
    private NrtAsyncSendRecv c;
    private NrtAsyncSendRecv d;
    private EngineRig.Pair pair;
    private int descriptorsBefore;
    private long heapBefore;

    /** Does one thing again and again, and notes how often and the slowest. */
    private static final class Activity extends Thread {
        private final IntConsumer step;
        private final AtomicReference<Throwable> failure = new AtomicReference<>();
        private volatile boolean running = true;
        private volatile int done;
        private volatile Duration slowest = Duration.ZERO;

        Activity(final String name, final IntConsumer step) {
            super(name);
            this.step = step;
            setDaemon(true);
        }

        @Override
        public void run() {
            try {
                while (running) {
                    final Stopwatch watch = Stopwatch.start();
                    step.accept(done);
                    if (watch.isOver(slowest)) {
                        slowest = watch.elapsed();
                    }
                    done++;
                }
            } catch (final Throwable ex) { // an assertion too
                failure.set(ex);
            }
        }

        void awaitMore(final int more) {
            final int before = done;
            Await.until(EngineRig.LIMIT, () -> getName() + " goes on after " + before + ": " + done + ", " + failure.get(),
                () -> done >= before + more || failure.get() != null);
            assertThat(failure.get()).as(getName()).isNull();
        }

        void finish() throws InterruptedException {
            running = false;
            join(EngineRig.LIMIT.toMillis());
            assertThat(isAlive()).as(getName()).isFalse();
            assertThat(failure.get()).as(getName()).isNull();
            assertThat(slowest).as("slowest of %s in %s", done, getName()).isLessThan(SLOWEST);
        }
    }

    @BeforeEach
    void start() {
        a = rig.initialised(0); // serves the store
        b = rig.initialised(1);
        c = rig.initialised(2);
        d = rig.initialised(3);
        pair = EngineRig.connect(a, 0, b, 1);
        for (int i = 0; i < 200; i++) {
            transfer(i);
        }
        connectAPair(1);
        connectAPair(0); // and begins anew
        heapBefore = Leaks.heapBytes();
        descriptorsBefore = Leaks.descriptors();
    }

    @AfterEach
    void closeAll() {
        rig.close();
        from.close();
        to.close();
    }

    /** One tensor with its own content, checked whole. */
    private void transfer(final int number) {
        for (int i = 0; i < LONGS; i++) {
            from.view(i * 8L, 8).putLong(0, number * 1_000L + i);
        }
        assertThat(b.recvTensor(to, 0, LONGS * 8, pair.recv(), recv)).as(b.lastError()).isEqualTo(NrtStatus.SUCCESS);
        assertThat(a.sendTensor(from, 0, LONGS * 8, pair.send(), send)).as(a.lastError()).isEqualTo(NrtStatus.SUCCESS);
        assertThat(EngineRig.awaitDone(b, recv)).isEqualTo(LONGS * 8);
        assertThat(EngineRig.awaitDone(a, send)).isEqualTo(LONGS * 8);
        for (int i = 0; i < LONGS; i++) {
            assertThat(to.view(i * 8L, 8).getLong(0)).isEqualTo(number * 1_000L + i);
        }
    }

    /** A new pair, for which the store is asked several times; now and then its LNCs begin anew. */
    private void connectAPair(final int number) {
        EngineRig.connect(c, 2, d, 3);
        if (number % 50 == 0) {
            assertThat(c.close(2)).as(c.lastError()).isEqualTo(NrtStatus.SUCCESS);
            assertThat(d.close(3)).as(d.lastError()).isEqualTo(NrtStatus.SUCCESS);
            EngineRig.init(c, 2);
            EngineRig.init(d, 3);
        }
        try {
            Thread.sleep(10); // a pace, so that the machine's ports last
        } catch (final InterruptedException ex) {
            Thread.currentThread().interrupt();
        }
    }

    @ParameterizedTest
    @EnumSource(Strangers.class)
    void thePairsAreUnaffected(final Strangers strangers) throws Exception {
        streaming.start();
        connecting.start();
        streaming.awaitMore(10);
        connecting.awaitMore(3);
        strangers.visit(new InetSocketAddress(EngineRig.LOCALHOST, rig.port()), sockets);
        streaming.awaitMore(100);
        connecting.awaitMore(5);
        connecting.finish();
        streaming.finish();
        // The strangers that stay are still connected; what this test itself allocates without a pause is no part of it.
        assertThat(Leaks.heapBytes() - heapBefore).as("growth of the heap").isLessThan(MAX_HEAP_GROWTH);
        for (final Socket socket : sockets) {
            socket.close();
        }
        Leaks.awaitDescriptors(descriptorsBefore, EngineRig.LIMIT);
    }
}
