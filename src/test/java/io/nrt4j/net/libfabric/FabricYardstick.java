package io.nrt4j.net.libfabric;

import io.nrt4j.NrtConfig;
import io.nrt4j.NrtSetting;
import io.nrt4j.NrtTensor;
import io.nrt4j.net.NetTransport;
import java.io.DataInputStream;
import java.io.IOException;
import java.net.ConnectException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.Arrays;
import java.util.Locale;

/**
 * The counterpart of {@code src/test/native/fi_yardstick.c}: the same arguments, the same patterns and the same output, through
 * this transport. Run as two processes, {@code server} and {@code client}.
 */
final class FabricYardstick {
    private final boolean client;
    private final NetTransport transport;
    private final int size;
    private final int iterations;
    private final int warmUp;
    private final int window;
    private final long sendComm;
    private final long recvComm;
    private final NrtTensor out;
    private final NrtTensor in;
    private final long outRegistration;
    private final long inRegistration;

    private FabricYardstick(final String[] args) throws IOException {
        client = "client".equals(args[0]);
        size = Integer.parseInt(args[4]);
        iterations = Integer.parseInt(args[5]);
        warmUp = Integer.parseInt(args[6]);
        window = Integer.parseInt(args[7]);
        transport = new LibfabricProvider().create(NrtConfig.builder().set(NrtSetting.LIBFABRIC_PROVIDER, args[1])
            .set(NrtSetting.LIBFABRIC_ADDRESS, args[2]).build());
        final byte[] mine = new byte[NetTransport.HANDLE_BYTES];
        final byte[] theirs = new byte[NetTransport.HANDLE_BYTES];
        final long listen = transport.listen(0, mine);
        try (Socket socket = rendezvous(client, Integer.parseInt(args[3]))) {
            socket.getOutputStream().write(mine);
            new DataInputStream(socket.getInputStream()).readFully(theirs);
        }
        long send = 0;
        long recv = 0;
        while (send == 0 || recv == 0) {
            send = send == 0 ? transport.connect(0, theirs) : send;
            recv = recv == 0 ? transport.accept(listen) : recv;
            Thread.onSpinWait();
        }
        sendComm = send;
        recvComm = recv;
        final long bytes = (long) size * Math.max(1, window) + 64;
        out = NrtTensor.allocate(bytes);
        in = NrtTensor.allocate(bytes);
        outRegistration = FabricPair.register(transport, sendComm, out);
        inRegistration = FabricPair.register(transport, recvComm, in);
    }

    private static Socket rendezvous(final boolean client, final int port) throws IOException {
        if (!client) {
            try (ServerSocket server = new ServerSocket()) {
                server.setReuseAddress(true);
                server.bind(new java.net.InetSocketAddress(InetAddress.getLoopbackAddress(), port));
                return server.accept();
            }
        }
        final long deadlineNs = System.nanoTime() + 20_000_000_000L;
        while (true) {
            try {
                return new Socket(InetAddress.getLoopbackAddress(), port);
            } catch (final ConnectException ex) {
                if (System.nanoTime() - deadlineNs >= 0) {
                    throw ex;
                }
                java.util.concurrent.locks.LockSupport.parkNanos(10_000_000);
            }
        }
    }

    private long send(final long offset, final int length) {
        long request;
        do {
            request = transport.isend(sendComm, out.address() + offset, length, outRegistration);
        } while (request == NetTransport.NOT_YET);
        return request;
    }

    private long receive(final long offset, final int length) {
        long request;
        do {
            request = transport.irecv(recvComm, in.address() + offset, length, inRegistration);
        } while (request == NetTransport.NOT_YET);
        return request;
    }

    private void finish(final long request) {
        while (transport.test(request) == NetTransport.PENDING) {
            Thread.onSpinWait();
        }
    }

    private void pingPong() {
        final double[] half = new double[iterations];
        final com.sun.management.ThreadMXBean threads =
            (com.sun.management.ThreadMXBean) java.lang.management.ManagementFactory.getThreadMXBean();
        long allocatedBefore = 0;
        long receive = receive(0, size);
        for (int i = 0; i < warmUp + iterations; i++) {
            if (i == warmUp) {
                allocatedBefore = threads.getThreadAllocatedBytes(Thread.currentThread().getId());
            }
            final long start = System.nanoTime();
            long send = client ? send(0, size) : 0;
            finish(receive);
            receive = receive(0, size); // the next one, before the answer goes
            send = client ? send : send(0, size);
            finish(send);
            if (i >= warmUp) {
                half[i - warmUp] = (System.nanoTime() - start) / 2e3;
            }
        }
        final long allocated = threads.getThreadAllocatedBytes(Thread.currentThread().getId()) - allocatedBefore;
        if (client) {
            Arrays.sort(half);
            System.out.printf(Locale.ROOT, "{\"mode\":\"pingpong\",\"size\":%d,\"median_us\":%.3f,\"p99_us\":%.3f,\"allocated\":%.3f}%n",
                size, half[iterations / 2], half[(int) (iterations * 0.99)], (double) allocated / iterations);
        }
    }

    private void bandwidth() {
        final long total = (long) (warmUp + iterations) * window;
        final long[] requests = new long[window];
        long start = 0;
        if (!client) {
            for (int i = 0; i < window; i++) {
                requests[i] = receive((long) i * size, size);
            }
        }
        for (long i = 0; i < total; i++) {
            final int slot = (int) (i % window);
            if (i == (long) warmUp * window) {
                start = System.nanoTime();
            }
            if (client) {
                if (i >= window) {
                    finish(requests[slot]);
                }
                requests[slot] = send((long) slot * size, size);
            } else {
                finish(requests[slot]);
                if (i + window < total) {
                    requests[slot] = receive((long) slot * size, size);
                }
            }
        }
        if (client) {
            for (final long request : requests) {
                finish(request);
            }
            finish(receive(0, 8));
            System.out.printf(Locale.ROOT, "{\"mode\":\"bandwidth\",\"size\":%d,\"window\":%d,\"mb_per_s\":%.1f}%n", size, window,
                (double) iterations * window * size / ((System.nanoTime() - start) / 1e3));
        } else {
            finish(send(0, 8));
        }
    }

    /**
     * Runs one end.
     *
     * @param args role, provider, address, port, size, iterations, warm-up, window.
     * @throws IOException when the two ends do not find each other.
     */
    public static void main(final String[] args) throws IOException {
        final FabricYardstick yardstick = new FabricYardstick(args);
        if (yardstick.window == 0) {
            yardstick.pingPong();
        } else {
            yardstick.bandwidth();
        }
        yardstick.transport.close();
        yardstick.out.close();
        yardstick.in.close();
    }
}
