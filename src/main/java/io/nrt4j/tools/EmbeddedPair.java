package io.nrt4j.tools;

import io.nrt4j.NrtSetting;
import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.sendrecv.NrtAsyncSendRecv;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletionService;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorCompletionService;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Function;

/**
 * Both ends of a command in this JVM: two engines as two hosts, each with a key-value server at a loopback address of its own
 * (where the system has a second one, as Linux does; otherwise they are two processes of one host).
 *
 * <p>Threads: {@link #run} by one thread; each role has one of its own. {@code cancelled} is raised when the other role has
 * failed and had its time to tell.
 *
 * @param <R> what a role answers.
 */
final class EmbeddedPair<R> {
    private static final long GRACE_MS = 3000;
    private static final long END_MS = 15_000;
    private static final int FIRST_PORT = 10_000;
    /** From here on Linux gives ports to clients by default, other systems from higher ones. */
    private static final int PORTS_OF_CLIENTS = 32_768;

    private final PeerOptions options;
    private final EngineFactory engines;
    private final AtomicBoolean cancelled = new AtomicBoolean();

    EmbeddedPair(final PeerOptions options, final EngineFactory engines) {
        this.options = options;
        this.engines = engines;
    }

    /**
     * Runs both roles to their ends.
     *
     * @param first  role of host A; its link is not connected yet.
     * @param second role of host B.
     * @return what the first role answered.
     * @throws RuntimeException that of the role that failed first; the other's, if it failed too, is suppressed in it.
     */
    R run(final Function<PeerLink, R> first, final Function<PeerLink, R> second) {
        final Path locks = temporaryFolder();
        final String ipA = "127.0.0.1";
        final String ipB = canListenAt("127.0.0.2") ? "127.0.0.2" : ipA;
        final int port = options.port() != 0 ? options.port() : freePort(ipA, ipB);
        try (NrtAsyncSendRecv hostA = engine("host-a", ipA, port, locks);
            NrtAsyncSendRecv hostB = engine("host-b", ipB, port, locks)) {
            final PeerLink linkA = link(hostA, options.lnc(), ipB, options.peerLnc());
            final PeerLink linkB = link(hostB, options.peerLnc(), ipA, options.lnc());
            return runBoth(() -> first.apply(linkA), () -> second.apply(linkB));
        } finally {
            ScratchFolders.deleteQuietly(locks);
        }
    }

    private PeerLink link(final NrtAsyncSendRecv engine, final int lnc, final String peerIp, final int peerLnc) {
        return new PeerLink(engine, lnc, peerIp, peerLnc, new Patience(options.timeout(), cancelled::get));
    }

    private NrtAsyncSendRecv engine(final String name, final String ip, final int port, final Path locks) {
        // Two hosts have two lock folders; two processes of one host share theirs.
        return engines.create(options.config(port)
            .kvBindAddress(ip)
            .kvLockDirectory(folder(locks.resolve(ip)))
            .set(NrtSetting.HOST_NAME, name)
            .build());
    }

    private R runBoth(final Callable<R> roleA, final Callable<R> roleB) {
        final ExecutorService threads = Executors.newFixedThreadPool(2, task -> {
            final Thread thread = new Thread(task, "nrt4j-end");
            thread.setDaemon(true);
            return thread;
        });
        try {
            final CompletionService<R> ends = new ExecutorCompletionService<>(threads);
            final Future<R> endB = ends.submit(roleB);
            final Future<R> endA = ends.submit(roleA);
            final Future<R> first = ends.take();
            final RuntimeException failure = failureOf(first);
            if (failure != null) {
                fail(failure, ends);
            }
            final RuntimeException second = failureOf(first == endA ? endB : endA);
            if (second != null) {
                throw second;
            }
            return endA.get();
        } catch (final InterruptedException ex) {
            cancelled.set(true);
            Thread.currentThread().interrupt();
            throw new NrtException(NrtStatus.FAILURE, "interrupted", ex);
        } catch (final ExecutionException ex) {
            throw new IllegalStateException(ex); // it was asked before
        } finally {
            threads.shutdown();
        }
    }

    /** One end failed: the other was told, and is cancelled when it does not end all the same. */
    private void fail(final RuntimeException failure, final CompletionService<R> ends) throws InterruptedException {
        Future<R> other = ends.poll(GRACE_MS, TimeUnit.MILLISECONDS);
        if (other == null) {
            cancelled.set(true);
            other = ends.poll(END_MS, TimeUnit.MILLISECONDS);
        }
        final RuntimeException second = other == null
            ? new NrtException(NrtStatus.TIMEOUT, "the other end did not end within " + END_MS + " ms") : failureOf(other);
        if (second != null) {
            failure.addSuppressed(second);
        }
        throw failure;
    }

    private static RuntimeException failureOf(final Future<?> end) throws InterruptedException {
        try {
            end.get();
            return null;
        } catch (final ExecutionException ex) {
            return ex.getCause() instanceof RuntimeException known ? known
                : new NrtException(NrtStatus.FAILURE, ex.getCause().toString(), ex.getCause());
        }
    }

    private static boolean canListenAt(final String ip) {
        try (ServerSocket socket = new ServerSocket()) {
            socket.bind(new InetSocketAddress(InetAddress.getByName(ip), 0)); // a literal: no name service is asked
            return true;
        } catch (final IOException ex) {
            return false;
        }
    }

    /**
     * A port that nobody listens on at either address. It is below those that systems give to clients by themselves: one of these could
     * be another connection's between this look and the server's.
     */
    static int freePort(final String ipA, final String ipB) {
        for (int attempt = 0; attempt < 100; attempt++) {
            final int port = ThreadLocalRandom.current().nextInt(FIRST_PORT, PORTS_OF_CLIENTS);
            try (ServerSocket first = new ServerSocket(); ServerSocket second = new ServerSocket()) {
                first.bind(new InetSocketAddress(InetAddress.getByName(ipA), port));
                if (!ipA.equals(ipB)) {
                    second.bind(new InetSocketAddress(InetAddress.getByName(ipB), first.getLocalPort()));
                }
                return first.getLocalPort();
            } catch (final IOException ex) {
                continue;
            }
        }
        throw new NrtException(NrtStatus.FAILURE, "found no free TCP port at " + ipA + " and " + ipB);
    }

    private static Path temporaryFolder() {
        try {
            return ScratchFolders.create(null, "nrt4j-pair-");
        } catch (final IOException ex) {
            throw new NrtException(NrtStatus.FAILURE, "cannot make a temporary folder: " + ex, ex);
        }
    }

    private static Path folder(final Path path) {
        try {
            return Files.createDirectories(path);
        } catch (final IOException ex) {
            throw new NrtException(NrtStatus.FAILURE, "cannot make the folder '" + path + "': " + ex, ex);
        }
    }
}
