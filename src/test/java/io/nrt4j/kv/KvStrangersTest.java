package io.nrt4j.kv;

import static io.nrt4j.kv.KvTesting.LIMIT;
import static io.nrt4j.kv.KvTesting.awaitConnections;
import static io.nrt4j.kv.KvTesting.connect;
import static io.nrt4j.kv.KvTesting.get;
import static io.nrt4j.kv.KvTesting.loopback;
import static io.nrt4j.kv.KvTesting.openDescriptors;
import static io.nrt4j.kv.KvTesting.request;
import static io.nrt4j.kv.KvTesting.set;
import static org.assertj.core.api.Assertions.assertThat;

import io.nrt4j.testing.Await;
import io.nrt4j.testing.Stopwatch;
import java.io.IOException;
import java.net.Socket;
import java.nio.channels.ServerSocketChannel;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Everything that may come along at an open port, while a healthy client sets and gets beside it. */
@Tag("slow")
class KvStrangersTest {
    private static final KvOptions OPTIONS = KvOptions.DEFAULT.withFrameTimeLimit(1, TimeUnit.SECONDS);
    private static final long MAX_HEAP_GROWTH = 20L << 20;
    private static final Duration SLOWEST_REQUEST = Duration.ofSeconds(2);

    /** When the server said something, by the clock as it read it: the line itself may come some time later. */
    private final List<Long> logTimesNs = new ArrayList<>();
    private final ThreadLocal<Long> lastReadNs = new ThreadLocal<>();
    private final List<Socket> sockets = new ArrayList<>();
    private KvServer server;
    private Healthy healthy;
    private int descriptorsBefore;
    private long heapBefore;

    /** A client that sets and gets all the time and notes the slowest request. */
    private static final class Healthy extends Thread {
        private final KvServer server;
        private final AtomicReference<Throwable> failure = new AtomicReference<>();
        private volatile boolean running = true;
        private volatile Duration slowest = Duration.ZERO;
        private volatile int rounds;

        Healthy(final KvServer server) {
            super("healthy-client");
            this.server = server;
        }

        @Override
        public void run() {
            try {
                while (running) {
                    final Stopwatch watch = Stopwatch.start();
                    set(server.address(), "healthy" + rounds % 10, "value" + rounds, OPTIONS);
                    assertThat(get(server.address(), "healthy" + rounds % 10, true, OPTIONS)).isEqualTo("value" + rounds);
                    if (watch.isOver(slowest)) {
                        slowest = watch.elapsed();
                    }
                    rounds++;
                    Thread.sleep(1); // a pace, so that the machine's ports last
                }
            } catch (final Throwable ex) { // an assertion too
                failure.set(ex);
            }
        }
    }

    @BeforeEach
    void start() {
        final KvOptions noting = OPTIONS.withClock(() -> {
            final long nowNs = System.nanoTime();
            lastReadNs.set(nowNs);
            return nowNs;
        });
        server = new KvServer(loopback(0), Map.of(), noting, ServerSocketChannel::accept, line -> logTimesNs.add(lastReadNs.get()))
            .start();
        for (int i = 0; i < 200; i++) {
            set(server.address(), "warm", "up", OPTIONS);
        }
        awaitConnections(server, 0);
        heapBefore = heapUsed();
        descriptorsBefore = openDescriptors();
        healthy = new Healthy(server);
        healthy.start();
        final Healthy client = healthy;
        Await.until(LIMIT, "a healthy client", () -> client.rounds > 3);
    }

    @AfterEach
    void healthyAndNothingLeaked() throws Exception {
        final int rounds = healthy.rounds;
        Await.until(LIMIT, () -> "the healthy client goes on; failure " + healthy.failure.get(), () -> healthy.rounds > rounds + 3);
        healthy.running = false;
        healthy.join(LIMIT.toMillis());
        for (final Socket socket : sockets) {
            socket.close();
        }
        assertThat(healthy.failure.get()).isNull();
        assertThat(healthy.slowest).isLessThan(SLOWEST_REQUEST);
        awaitConnections(server, 0);
        Await.until(LIMIT, () -> descriptorsBefore + " descriptors before, now " + openDescriptors(),
            () -> openDescriptors() <= descriptorsBefore);
        assertThat(heapUsed() - heapBefore).as("growth of the heap").isLessThan(MAX_HEAP_GROWTH);
        server.close();
        for (int i = 1; i < logTimesNs.size(); i++) {
            assertThat(logTimesNs.get(i) - logTimesNs.get(i - 1)).as("between two lines").isGreaterThanOrEqualTo(1_000_000_000);
        }
    }

    private static long heapUsed() {
        long least = Long.MAX_VALUE;
        for (int i = 0; i < 3; i++) {
            System.gc();
            least = Math.min(least, Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory());
        }
        return least;
    }

    private Socket open() throws IOException {
        final Socket socket = connect(server.address());
        sockets.add(socket);
        return socket;
    }

    private void awaitStrangersGone() {
        Await.until(LIMIT, () -> server.connectionCount() + " connections", () -> server.connectionCount() <= 1);
    }

    @Test
    void tenThousandConnectionsResetAtOnce() throws IOException {
        Strangers.RESETS.visit(server.address(), sockets);
        awaitStrangersGone();
    }

    @Test
    void someBytesAndThenSilence() throws IOException {
        Strangers.SOME_BYTES.visit(server.address(), sockets);
        // 20 of 2312 bytes are valid clients, which may be silent.
        Await.until(LIMIT, () -> server.connectionCount() + " connections", () -> server.connectionCount() <= 21);
    }

    @Test
    void tenThousandMutatedFrames() throws IOException {
        Strangers.MUTATED_FRAMES.visit(server.address(), sockets);
        awaitStrangersGone();
    }

    @Test
    void anHttpRequestABannerAndZeros() throws IOException {
        Strangers.OTHER_PROTOCOLS.visit(server.address(), sockets);
    }

    @Test
    void aStreamOfFiftyMegabytes() throws IOException {
        Strangers.STREAMS.visit(server.address(), sockets);
        awaitStrangersGone();
    }

    @Test
    void aStreamOfFiftyMegabytesOfRightFramesIsServed() throws IOException {
        final byte[] frame = request(KvFrame.SET, "k", "v");
        final int count = (50 << 20) / KvFrame.LENGTH;
        final Socket socket = open();
        final Thread writer = new Thread(() -> {
            try {
                for (int i = 0; i < count; i++) {
                    socket.getOutputStream().write(frame);
                }
            } catch (final IOException ex) {
                // the reader will see too few answers
            }
        });
        writer.start();
        for (int i = 0; i < count; i++) {
            assertThat(KvFrame.opcode(KvTesting.readFrame(socket))).isEqualTo(KvFrame.SET);
        }
    }

    @Test
    void twoHundredThatSayNothingAndTwoHundredThatSayAByteNowAndThen() throws IOException {
        final byte[] frame = request(KvFrame.SET, "k", "v");
        final List<Socket> slow = new ArrayList<>();
        for (int i = 0; i < 200; i++) {
            open();
            slow.add(open());
        }
        Await.until(LIMIT, () -> server.connectionCount() + " connections", () -> server.connectionCount() >= 400);
        final int[] at = new int[1];
        Await.until(LIMIT, () -> server.connectionCount() + " connections", () -> {
            if (at[0] < frame.length) {
                for (final Socket socket : slow) {
                    Strangers.write(socket, frame[at[0]]);
                }
                at[0]++;
            }
            Thread.sleep(10); // the pace of the bytes
            return server.connectionCount() <= 1;
        });
        assertThat(at[0]).as("bytes that each said").isLessThan(frame.length);
    }

    @Test
    void moreSilentConnectionsThanThereIsRoomFor() throws IOException {
        for (int i = 0; i < OPTIONS.maxConnections() + 200; i++) {
            open();
        }
        awaitStrangersGone();
    }
}
