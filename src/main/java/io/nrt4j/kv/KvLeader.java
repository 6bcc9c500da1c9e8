package io.nrt4j.kv;

import io.nrt4j.IpLiteral;
import io.nrt4j.NrtConfig;
import io.nrt4j.NrtSetting;
import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.concurrent.NanoClock;
import io.nrt4j.concurrent.StrangerLog;
import io.nrt4j.concurrent.Uninterrupted;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Takes part in the election of this host's key-value server. Whoever holds the lock file of the user and port runs the server; the
 * others wait for the lock, each in a thread {@code nrt4j-kv-elector-<port>}, and the next one serves as soon as the leader closes or
 * dies. What was stored is gone then, and {@link KvServer#epoch()} is another: whoever published something publishes it again.
 *
 * <p>Threads: any. {@code server} is written by the starting thread before the elector's thread starts and by the elector's from then
 * on; {@code identity} is written by whoever learns it first, always with the same bytes; {@code closing} by {@link #close()}. All are
 * volatile and read by any.
 */
public final class KvLeader implements AutoCloseable {
    /** Key of the host identity, which every server has from its beginning. */
    public static final String HOSTNAME_KEY = "hostname";

    private static final Logger LOG = LoggerFactory.getLogger(KvLeader.class);
    private static final long FIRST_BIND_PATIENCE_NS = TimeUnit.MILLISECONDS.toNanos(600);
    private static final long LOCK_CHECK_MS = 200;
    private static final long MIN_PAUSE_MS = 1;
    private static final long MAX_PAUSE_MS = 50;
    private static final long RESTART_PAUSE_MS = 100;
    private static final long ASK_PAUSE_NS = TimeUnit.MICROSECONDS.toNanos(100);
    private static final long CLOSE_TIMEOUT_MS = 5000;

    private final NrtConfig config;
    private final KvOptions options;
    private final InetSocketAddress bind;
    private final InetSocketAddress own;
    private final KvLockFile lockFile;
    private final Thread elector;
    private final StrangerLog troubles = new StrangerLog(NanoClock.SYSTEM, LOG::warn);
    private volatile KvServer server;
    private volatile byte[] identity;
    private volatile boolean closing;

    private KvLeader(final NrtConfig config, final KvOptions options) {
        this.config = config;
        this.options = options;
        final int port = config.bootstrapPort();
        if (port == 0) {
            throw new NrtException(NrtStatus.FAILURE, NrtSetting.BOOTSTRAP_PORT.variable() + " is not set");
        }
        final InetAddress address = IpLiteral.parse(config.kvBindAddress());
        bind = new InetSocketAddress(address, port);
        own = address.isAnyLocalAddress() ? KvAddress.loopbackIpv4(port) : bind;
        lockFile = KvLockFile.of(config.kvLockDirectory(), port);
        elector = new Thread(this::elect, "nrt4j-kv-elector-" + port);
        elector.setDaemon(true);
    }

    /**
     * Joins the election. When it returns, this instance leads and its server answers, or somebody else holds the lock.
     *
     * @param config port, bind address, lock folder, host name, secret.
     * @return to be closed.
     * @throws NrtException FAILURE within a second: with the path, if the lock file cannot be used; with host and port, if this instance
     *                      has the lock but a stranger has the port.
     */
    public static KvLeader start(final NrtConfig config) {
        return start(config, KvOptions.of(config));
    }

    static KvLeader start(final NrtConfig config, final KvOptions options) {
        final KvLeader leader = new KvLeader(config, options);
        leader.join();
        return leader;
    }

    private void join() {
        boolean joined = false;
        try {
            if (lockFile.tryAcquire()) {
                serve(FIRST_BIND_PATIENCE_NS);
            }
            elector.start();
            joined = true;
        } catch (final InterruptedException ex) {
            Thread.currentThread().interrupt();
            throw new NrtException(NrtStatus.FAILURE, "KV server at " + KvAddress.text(bind) + ": interrupted before it served", ex);
        } finally {
            if (!joined) {
                stop();
            }
        }
    }

    /** The elector's thread: wait for the lock, serve until the end, and again. */
    private void elect() {
        while (!closing) {
            try {
                if (server == null) {
                    lockFile.acquire();
                    serve(Long.MAX_VALUE);
                }
                awaitEnd();
            } catch (final InterruptedException ex) {
                // Only close() interrupts; the loop's condition sees it.
                Thread.currentThread().interrupt();
            } catch (final RuntimeException | OutOfMemoryError ex) { // no thread left is an OutOfMemoryError
                if (!closing) {
                    troubles.say("the election of the KV server at " + KvAddress.text(bind) + " failed: " + ex.getMessage());
                }
            } finally {
                stopQuietly();
            }
            pauseUnlessClosing();
        }
        // Closed before the loop was entered: what the starting thread took is still held.
        stopQuietly();
    }

    private void awaitEnd() throws InterruptedException {
        while (!server.awaitEnd(LOCK_CHECK_MS)) {
            // Temporary folders are swept, and files with "lock" in their name are removed by hand.
            if (!lockFile.isCurrent()) {
                LOG.warn("{} was removed; its server at {} is elected anew", lockFile.path(), KvAddress.text(bind));
                return;
            }
        }
        if (!closing) {
            LOG.error("the KV server at {} ended; it is started anew", KvAddress.text(bind));
        }
    }

    private void pauseUnlessClosing() {
        if (!closing) {
            LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(RESTART_PAUSE_MS));
        }
    }

    /** With the lock held: binds and serves. */
    private void serve(final long patienceNs) throws InterruptedException {
        final byte[] own128;
        try {
            own128 = KvHostIdentity.load(lockFile.channel(), identity, config.hostName());
        } catch (final IOException ex) {
            throw new NrtException(NrtStatus.FAILURE, "KV lock file " + lockFile.path() + " is unusable: " + KvAddress.reason(ex), ex);
        }
        server = bind(own128, patienceNs); // known before it starts: where no thread is left, it is closed all the same
        server.start();
        identity = own128;
        LOG.info("serving the key-value store of {} at {}, epoch {}", lockFile.path(), KvAddress.text(server.address()),
            Long.toHexString(server.epoch()));
    }

    private KvServer bind(final byte[] own128, final long patienceNs) throws InterruptedException {
        final long startNs = System.nanoTime();
        long pauseMs = MIN_PAUSE_MS;
        while (true) {
            try {
                return new KvServer(bind, Map.of(HOSTNAME_KEY, own128), options);
            } catch (final NrtException ex) {
                // A dead leader's lock may be free an instant before its port is.
                if (System.nanoTime() - startNs > patienceNs) {
                    throw ex;
                }
                if (pauseMs == MAX_PAUSE_MS) {
                    troubles.say(ex.getMessage() + "; trying on");
                }
            }
            Thread.sleep(pauseMs);
            pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS);
        }
    }

    private void stopQuietly() {
        try {
            stop();
        } catch (final RuntimeException ex) {
            LOG.warn("giving back {} failed", lockFile.path(), ex);
        }
    }

    /** Port first, then lock: the next one finds the port free. */
    private void stop() {
        final KvServer old = server;
        server = null;
        try {
            if (old != null) {
                old.close();
            }
        } finally {
            lockFile.release();
        }
    }

    /**
     * Where this host's clients find this host's server, whoever runs it.
     *
     * @return the bind address, or 127.0.0.1 if that is a wildcard.
     */
    public InetSocketAddress ownServer() {
        return own;
    }

    /**
     * Whether this instance runs the server.
     *
     * @return a fact of a moment.
     */
    public boolean isLeader() {
        return server != null;
    }

    /** The server while this instance leads, else null. */
    KvServer server() {
        return server;
    }

    /**
     * What this host calls itself in the rendezvous; the same for all processes of this user and port, and for no other host.
     *
     * @param deadlineNs reading of {@link System#nanoTime()} until which to wait for the server's answer.
     * @return 128 bytes, padded with zeros; a copy.
     * @throws NrtException FAILURE with host, port and reason if something that is not our server answers, or nothing in time.
     */
    public byte[] hostIdentity(final long deadlineNs) {
        final byte[] known = identity;
        return known != null ? known.clone() : ask(deadlineNs);
    }

    private byte[] ask(final long deadlineNs) {
        final byte[][] answer = new byte[1][];
        final byte[] key = HOSTNAME_KEY.getBytes(StandardCharsets.US_ASCII);
        try (KvClient client = KvClient.get(own, key, false, true,
            (buffer, offset, length) -> answer[0] = Arrays.copyOfRange(buffer, offset, offset + length), options)) {
            while (!client.isDone()) {
                final int work = client.step();
                if (closing || Thread.currentThread().isInterrupted() || System.nanoTime() - deadlineNs > 0) {
                    throw new NrtException(NrtStatus.FAILURE, "no host identity "
                        + (closing ? "before it was closed" : "in time") + ": " + client.describe());
                }
                if (work == 0) {
                    LockSupport.parkNanos(ASK_PAUSE_NS);
                }
            }
            if (client.isFailed()) {
                throw client.failure();
            }
        }
        if (answer[0].length != KvHostIdentity.LENGTH) {
            throw new NrtException(NrtStatus.FAILURE, "the host identity at " + KvAddress.text(own) + " has " + answer[0].length
                + " bytes, not " + KvHostIdentity.LENGTH);
        }
        identity = answer[0];
        return answer[0].clone();
    }

    /** Leaves the election; a leader stops serving, and the next one takes over at once. Bounded by 5 s, idempotent. */
    @Override
    public void close() {
        closing = true;
        elector.interrupt();
        if (Thread.currentThread() == elector) {
            return;
        }
        if (!Uninterrupted.join(elector, TimeUnit.MILLISECONDS.toNanos(CLOSE_TIMEOUT_MS))) {
            LOG.warn("{} did not end within {} ms", elector.getName(), CLOSE_TIMEOUT_MS);
        }
    }
}
