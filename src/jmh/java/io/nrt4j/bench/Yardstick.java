package io.nrt4j.bench;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.ConnectException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.Arrays;
import java.util.Locale;
import java.util.concurrent.locks.LockSupport;

/**
 * A program like {@code src/test/native/fi_yardstick.c} over something else: the same patterns and the same output, all cases
 * one after the other. Run as two processes, {@code server PORT} and {@code client PORT}.
 *
 * <p>Threads: one.
 */
abstract class Yardstick {
    private static final long CONNECT_NS = 20_000_000_000L;

    /** Client: one message there and one back, with the receive of the next round posted early where there are posts. */
    abstract void roundTrip(int sizeBytes) throws Exception;

    /** Server: one message in and one back. */
    abstract void answer(int sizeBytes) throws Exception;

    /** Before the round trips of a size, and, with 0, after them. */
    void begin(final int sizeBytes) throws Exception {
    }

    /** Client: so many messages, a window of them in flight; calls back when it has sent the first so many. */
    abstract void stream(int sizeBytes, int window, int warmUp, int total, Runnable warm) throws Exception;

    /** Server: takes them, and tells the client when it has. */
    abstract void drain(int sizeBytes, int window, int total) throws Exception;

    /** Runs an end. */
    final void run(final boolean client) throws Exception {
        for (final Case one : Case.ALL) {
            if (one.window() == 0) {
                pingPong(one, client);
            } else {
                bandwidth(one, client);
            }
        }
    }

    private void pingPong(final Case one, final boolean client) throws Exception {
        final double[] half = new double[one.count()];
        begin(one.sizeBytes());
        for (int i = 0; i < one.warmUp() + one.count(); i++) {
            final long startNs = System.nanoTime();
            if (client) {
                roundTrip(one.sizeBytes());
            } else {
                answer(one.sizeBytes());
            }
            if (i >= one.warmUp()) {
                half[i - one.warmUp()] = (System.nanoTime() - startNs) / 2e3;
            }
        }
        begin(0);
        if (client) {
            Arrays.sort(half);
            System.out.printf(Locale.ROOT, "{%s\"median_us\":%.3f,\"p99_us\":%.3f}%n", one.key(), half[half.length / 2],
                half[(int) (half.length * 0.99)]);
        }
    }

    private void bandwidth(final Case one, final boolean client) throws Exception {
        final int total = (one.warmUp() + one.count()) * one.window();
        if (!client) {
            drain(one.sizeBytes(), one.window(), total);
            return;
        }
        final long[] startNs = new long[1];
        stream(one.sizeBytes(), one.window(), one.warmUp() * one.window(), total, () -> startNs[0] = System.nanoTime());
        System.out.printf(Locale.ROOT, "{%s\"window\":%d,\"mb_per_s\":%.1f}%n", one.key(), one.window(),
            (double) one.count() * one.window() * one.sizeBytes() / ((System.nanoTime() - startNs[0]) / 1e3));
    }

    /** A connection between the two ends. */
    static Socket connect(final boolean client, final int port) throws IOException {
        if (!client) {
            try (ServerSocket server = new ServerSocket()) {
                server.setReuseAddress(true);
                server.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), port));
                return server.accept();
            }
        }
        final long startNs = System.nanoTime();
        while (true) {
            try {
                return new Socket(InetAddress.getLoopbackAddress(), port);
            } catch (final ConnectException ex) {
                if (System.nanoTime() - startNs > CONNECT_NS) {
                    throw ex;
                }
                LockSupport.parkNanos(10_000_000);
            }
        }
    }

    /** Sends bytes to the other end and answers the other end's. */
    static byte[] swap(final Socket socket, final byte[] mine) throws IOException {
        final DataOutputStream out = new DataOutputStream(socket.getOutputStream());
        out.writeInt(mine.length);
        out.write(mine);
        out.flush();
        final DataInputStream in = new DataInputStream(socket.getInputStream());
        return in.readNBytes(in.readInt());
    }
}
