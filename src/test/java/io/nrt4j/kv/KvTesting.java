package io.nrt4j.kv;

import static org.assertj.core.api.Assertions.assertThat;

import io.nrt4j.NrtConfig;
import io.nrt4j.testing.Await;
import java.io.DataInputStream;
import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;

/** What the tests of this room share. */
final class KvTesting {
    static final Duration LIMIT = Duration.ofSeconds(20);
    static final KvClient.Callback IGNORE = (buffer, offset, length) -> {
    };

    private KvTesting() {
    }

    static byte[] bytes(final String text) {
        return text.getBytes(StandardCharsets.ISO_8859_1);
    }

    static InetSocketAddress loopback(final int port) {
        return new InetSocketAddress(InetAddress.getLoopbackAddress(), port);
    }

    static KvServer server(final KvOptions options) {
        return new KvServer(loopback(0), Map.of(), options);
    }

    static NrtConfig config(final Path folder, final int port) {
        return NrtConfig.builder(Map.of(), Map.of()).bootstrapPort(port).kvBindAddress("127.0.0.1").kvLockDirectory(folder).build();
    }

    static long deadline(final Duration limit) {
        return System.nanoTime() + limit.toNanos();
    }

    /** Drives a client to its end as a service thread does. */
    static KvClient run(final KvClient client) {
        final long deadlineNs = deadline(LIMIT);
        while (!client.isDone()) {
            if (System.nanoTime() - deadlineNs > 0) {
                throw new AssertionError("not in time: " + client.describe());
            }
            if (client.step() == 0) {
                LockSupport.parkNanos(50_000);
            }
        }
        return client;
    }

    static long set(final InetSocketAddress server, final String key, final String value, final KvOptions options) {
        try (KvClient client = run(KvClient.set(server, bytes(key), bytes(value), options))) {
            if (client.isFailed()) {
                throw client.failure();
            }
            assertThat(client.found()).isTrue();
            return client.serverEpoch();
        }
    }

    /** A value, or null if there is none. */
    static String get(final InetSocketAddress server, final String key, final boolean take, final KvOptions options) {
        final String[] value = new String[1];
        try (KvClient client = run(KvClient.get(server, bytes(key), take, false,
            (buffer, offset, length) -> value[0] = new String(buffer, offset, length, StandardCharsets.ISO_8859_1), options))) {
            if (client.isFailed()) {
                throw client.failure();
            }
            assertThat(client.found()).isEqualTo(value[0] != null);
            return value[0];
        }
    }

    static byte[] request(final int opcode, final String key, final String value) {
        final byte[] frame = new byte[KvFrame.LENGTH];
        KvFrame.encode(frame, opcode, bytes(key), bytes(value), 0, key.hashCode());
        return frame;
    }

    static Socket connect(final InetSocketAddress server) throws IOException {
        final Socket socket = new Socket(server.getAddress(), server.getPort());
        socket.setSoTimeout((int) LIMIT.toMillis());
        socket.setTcpNoDelay(true);
        return socket;
    }

    static byte[] readFrame(final Socket socket) throws IOException {
        final byte[] frame = new byte[KvFrame.LENGTH];
        new DataInputStream(socket.getInputStream()).readFully(frame);
        return frame;
    }

    /** Whether the other side has closed or cut the connection, waiting for it. */
    static void awaitCut(final Socket socket) {
        try {
            final InputStream input = socket.getInputStream();
            assertThat(input.read()).as("answer of the server").isEqualTo(-1);
        } catch (final java.net.SocketTimeoutException ex) {
            throw new AssertionError("the server kept the connection", ex);
        } catch (final IOException ex) {
            assertThat(ex).hasMessageMatching("(?i).*(reset|broken pipe|abort).*");
        }
    }

    /** The kernel's folder of a thread of this process. */
    static Path task(final String threadName) throws IOException {
        try (Stream<Path> tasks = Files.list(Path.of("/proc/self/task").toRealPath())) {
            return tasks.filter(task -> threadName.equals(read(task.resolve("comm")).strip())).findFirst().orElseThrow();
        }
    }

    /** Processor time that a thread has used. */
    static long cpuNs(final Path task) {
        return Long.parseLong(read(task.resolve("schedstat")).split(" ")[0]);
    }

    private static String read(final Path file) {
        try {
            return Files.readString(file);
        } catch (final IOException ex) {
            throw new UncheckedIOException(ex);
        }
    }

    static int openDescriptors() {
        final String[] names = new File("/proc/self/fd").list();
        return names == null ? 0 : names.length;
    }

    static void awaitConnections(final KvServer server, final int count) {
        Await.until(LIMIT, () -> count + " connections, there are " + server.connectionCount(), () -> server.connectionCount() == count);
    }

    static byte[] concat(final byte[] one, final byte[] other) {
        final byte[] both = Arrays.copyOf(one, one.length + other.length);
        System.arraycopy(other, 0, both, one.length, other.length);
        return both;
    }
}
