package io.nrt4j.kv;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import io.nrt4j.NrtConfig;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.BindException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.LLL_Result;

/** Suite 10: two starters, one server. Needs small strides: a state is a port, a folder and three threads. */
public final class KvLeaderEngineStress {
    private static final int FIRST_PORT = 15_000;
    private static final int PORTS = 17_000;
    private static final AtomicInteger NEXT_PORT = new AtomicInteger(ThreadLocalRandom.current().nextInt(PORTS));

    private KvLeaderEngineStress() {
    }

    /** Two instances of one host start at once. */
    @JCStressTest
    @Outcome(id = "joined, joined, one leads, same host", expect = ACCEPTABLE, desc = "One serves, the other waits for the lock.")
    @Outcome(expect = FORBIDDEN, desc = "None or both serve, one was refused, or they disagree on what the host is called.")
    @State
    public static class TwoStarters {
        private final Path folder = folder();
        private final NrtConfig config = NrtConfig.builder(Map.of(), Map.of()).bootstrapPort(freePort()).kvBindAddress("127.0.0.1")
            .kvLockDirectory(folder).build();
        private KvLeader one;
        private KvLeader other;

        @Actor
        public void first(final LLL_Result result) {
            try {
                one = KvLeader.start(config);
                result.r1 = "joined";
            } catch (final RuntimeException ex) {
                result.r1 = ex.toString();
            }
        }

        @Actor
        public void second(final LLL_Result result) {
            try {
                other = KvLeader.start(config);
                result.r2 = "joined";
            } catch (final RuntimeException ex) {
                result.r2 = ex.toString();
            }
        }

        @Arbiter
        public void end(final LLL_Result result) {
            if (one == null || other == null) {
                result.r3 = "one is missing";
            } else {
                final long deadlineNs = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
                final boolean same = Arrays.equals(one.hostIdentity(deadlineNs), other.hostIdentity(deadlineNs));
                result.r3 = (one.isLeader() && other.isLeader() ? "both lead" : one.isLeader() || other.isLeader() ? "one leads"
                    : "none leads") + (same ? ", same host" : ", two hosts");
            }
            // The one that waits goes first: it would take over.
            close(one != null && one.isLeader() ? other : one);
            close(one != null && one.isLeader() ? one : other);
            delete(folder);
        }
    }

    private static void close(final KvLeader leader) {
        if (leader != null) {
            leader.close();
        }
    }

    /** Below the ports that the kernel gives to clients, and each only once: nobody else takes one between this look and the start. */
    private static int freePort() {
        while (true) {
            final int port = FIRST_PORT + NEXT_PORT.getAndIncrement() % PORTS;
            try (ServerSocket socket = new ServerSocket(port, 1, InetAddress.getLoopbackAddress())) {
                return socket.getLocalPort();
            } catch (final BindException ex) {
                // Taken: another one.
            } catch (final IOException ex) {
                throw new UncheckedIOException(ex);
            }
        }
    }

    private static Path folder() {
        try {
            return Files.createTempDirectory("nrt4j-stress");
        } catch (final IOException ex) {
            throw new UncheckedIOException(ex);
        }
    }

    private static void delete(final Path folder) {
        try (var files = Files.list(folder)) {
            for (final Path file : files.toList()) {
                Files.deleteIfExists(file);
            }
            Files.deleteIfExists(folder);
        } catch (final IOException ex) {
            throw new UncheckedIOException(ex);
        }
    }
}
