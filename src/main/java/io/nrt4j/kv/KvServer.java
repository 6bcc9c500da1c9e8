package io.nrt4j.kv;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.concurrent.Agent;
import io.nrt4j.concurrent.AgentThread;
import io.nrt4j.concurrent.IdleStrategy;
import io.nrt4j.concurrent.NanoClock;
import io.nrt4j.concurrent.StrangerLog;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.BindException;
import java.net.InetSocketAddress;
import java.net.StandardProtocolFamily;
import java.net.StandardSocketOptions;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The key-value store's server: one selector thread, {@code nrt4j-kv-<port>}, for all clients.
 *
 * <p>It expects anything at its port. A connection is dropped at the first byte that cannot begin a frame, and when a first byte,
 * the rest of a frame or the taking of an answer lets it wait longer than the limit; a client that once sent a right frame may be
 * silent between frames for ever. When all places are taken, the connection that never said anything right and has been silent for
 * longest gives way, but not before it had time for its first word; else the client that has been between two frames for longest (it
 * comes again, see {@link KvClient}); else the new one waits in the kernel's queue. Strangers are logged at most once a second.
 *
 * <p>Threads: everything is done by the server's own thread, or, when it is not started, by the one that calls {@link #doWork()}.
 * {@code close} and the accessors may be called by any.
 */
public final class KvServer implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(KvServer.class);
    private static final int BACKLOG = 1024;
    private static final int ACCEPTS_PER_CYCLE = 64;
    private static final int CHECKS_PER_LIMIT = 8;
    private static final long ACCEPT_PAUSE_NS = TimeUnit.MILLISECONDS.toNanos(100);
    private static final long FULL_PAUSE_NS = TimeUnit.MILLISECONDS.toNanos(2);
    private static final long FIRST_WORD_GRACE_NS = TimeUnit.MILLISECONDS.toNanos(100);
    private static final long CLOSE_TIMEOUT_MS = 5000;

    /** Accepts a connection; a seam for tests. */
    @FunctionalInterface
    interface Acceptor {
        /** As {@link ServerSocketChannel#accept()}. */
        SocketChannel accept(ServerSocketChannel channel) throws IOException;
    }

    private final KvOptions options;
    private final NanoClock clock;
    private final Acceptor acceptor;
    private final Selector selector;
    private final ServerSocketChannel listener;
    private final SelectionKey listenerKey;
    private final InetSocketAddress address;
    private final long epoch;
    private final KvStore store;
    private final KvSeal seal;
    private final StrangerLog strangers;
    private final IdleStrategy idle = new SelectorIdle();
    private final AgentThread thread;
    private final CountDownLatch ended = new CountDownLatch(1);
    /** In order of arrival. */
    private final Set<KvConnection> connections = new LinkedHashSet<>();
    private final List<KvConnection> overdue = new ArrayList<>();
    private long nextCheckNs;
    private boolean acceptPausing;
    private long acceptResumeNs;
    /** Written by the server's thread, read by any; only a figure. */
    private volatile int connectionCount;

    /**
     * Binds and listens; {@link #start()} makes it answer.
     *
     * @param bind    address and port; port 0 is any free one. The wildcard {@code ::} takes IPv4 and IPv6, or IPv4 alone where there is
     *                no IPv6.
     * @param fixed   entries that are there before anybody is answered, and stay: key of one character a byte, and value.
     * @param options secret, clock, limits.
     * @throws NrtException FAILURE with host, port and reason if the port is not to be had.
     */
    public KvServer(final InetSocketAddress bind, final Map<String, byte[]> fixed, final KvOptions options) {
        this(bind, fixed, options, ServerSocketChannel::accept, LOG::warn);
    }

    KvServer(
        final InetSocketAddress bind, final Map<String, byte[]> fixed, final KvOptions options, final Acceptor acceptor,
        final Consumer<String> strangerSink) {
        this.options = options;
        this.acceptor = acceptor;
        clock = options.clock();
        epoch = newEpoch();
        store = new KvStore(epoch, fixed, options);
        seal = new KvSeal(options.secret());
        strangers = new StrangerLog(clock, strangerSink);
        nextCheckNs = clock.nanoTime();
        Selector openSelector = null;
        ServerSocketChannel openListener = null;
        try {
            openSelector = Selector.open();
            final boolean noIpv6 = KvAddress.isDualWildcard(bind) && !hasIpv6();
            final InetSocketAddress at = noIpv6 ? KvAddress.anyIpv4(bind.getPort()) : bind;
            openListener = ServerSocketChannel.open(KvAddress.family(at));
            openListener.setOption(StandardSocketOptions.SO_REUSEADDR, true);
            openListener.configureBlocking(false);
            openListener.bind(at, BACKLOG);
            address = (InetSocketAddress) openListener.getLocalAddress();
            listenerKey = openListener.register(openSelector, SelectionKey.OP_ACCEPT);
        } catch (final IOException | UnsupportedOperationException ex) {
            closeQuietly(openListener);
            closeQuietly(openSelector);
            throw new NrtException(NrtStatus.FAILURE, "KV server cannot listen at " + KvAddress.text(bind) + ": " + ex.getMessage()
                + (ex instanceof BindException ? " (another program, or another user's job, has the port or this host has no such address: "
                + "each user and job needs a port of its own)" : ""), ex);
        }
        selector = openSelector;
        listener = openListener;
        thread = new AgentThread(new ServerAgent(), idle,
            ex -> LOG.error("KV server at {} failed", KvAddress.text(address), ex));
    }

    /** Whether the system has sockets of that family: it may be built or started without, or the JVM told not to use them. */
    private static boolean hasIpv6() {
        try (ServerSocketChannel probe = ServerSocketChannel.open(StandardProtocolFamily.INET6)) {
            return probe.isOpen();
        } catch (final IOException | UnsupportedOperationException ex) {
            LOG.debug("no IPv6", ex);
            return false;
        }
    }

    private static long newEpoch() {
        final SecureRandom random = new SecureRandom();
        long epoch = random.nextLong();
        while (epoch == 0) {
            epoch = random.nextLong();
        }
        return epoch;
    }

    /** The duty cycle of the server's thread. */
    private final class ServerAgent implements Agent {
        @Override
        public int doWork() {
            return KvServer.this.doWork();
        }

        @Override
        public void onClose() {
            release();
        }

        @Override
        public String roleName() {
            return "nrt4j-kv-" + address.getPort();
        }
    }

    /** Waits in the selector, no longer than until something has to be looked at. */
    private final class SelectorIdle implements IdleStrategy {
        /**
         * Written by the waking thread before it wakes the selector, read and cleared by the server's. The selector alone is not
         * enough: the {@code selectNow} of a duty cycle eats its wake-up.
         */
        private volatile boolean woken;

        @Override
        public void idle(final int workCount) {
            if (woken) {
                woken = false;
            } else if (workCount == 0) {
                try {
                    selector.select(timeoutMs());
                } catch (final IOException ex) {
                    throw new UncheckedIOException(ex);
                }
            }
        }

        @Override
        public void wakeUp() {
            woken = true;
            selector.wakeup();
        }
    }

    /**
     * Starts the server's thread, a daemon.
     *
     * @return this.
     */
    public KvServer start() {
        thread.start();
        return this;
    }

    /**
     * Where it listens.
     *
     * @return with the real port.
     */
    public InetSocketAddress address() {
        return address;
    }

    /**
     * What tells this server from every other.
     *
     * @return not 0.
     */
    public long epoch() {
        return epoch;
    }

    /**
     * Connections that are open.
     *
     * @return a figure of a moment.
     */
    public int connectionCount() {
        return connectionCount;
    }

    AgentThread thread() {
        return thread;
    }

    /** Waits for the server's end, be it closed or failed; false if it goes on after the given time. */
    boolean awaitEnd(final long timeoutMs) throws InterruptedException {
        return ended.await(timeoutMs, TimeUnit.MILLISECONDS);
    }

    /** What the server's thread does between two duty cycles, for tests that play it. */
    IdleStrategy waiting() {
        return idle;
    }

    /** One duty cycle: who is ready, who is overdue. Returns how much was done. */
    int doWork() {
        try {
            selector.selectNow();
        } catch (final IOException ex) {
            throw new UncheckedIOException(ex);
        }
        final long nowNs = clock.nanoTime();
        int work = 0;
        final Set<SelectionKey> selected = selector.selectedKeys();
        if (!selected.isEmpty()) {
            for (final SelectionKey key : selected) {
                work += key == listenerKey ? accept(nowNs) : serve((KvConnection) key.attachment(), nowNs);
            }
            selected.clear();
        }
        resumeAccepting(nowNs);
        work += dropOverdue(nowNs);
        connectionCount = connections.size();
        return work;
    }

    private long timeoutMs() {
        final long nowNs = clock.nanoTime();
        long timeoutNs = connections.isEmpty() ? Long.MAX_VALUE : nextCheckNs - nowNs;
        if (acceptPausing) {
            timeoutNs = Math.min(timeoutNs, acceptResumeNs - nowNs);
        }
        return timeoutNs == Long.MAX_VALUE ? 0 : Math.max(1, TimeUnit.NANOSECONDS.toMillis(timeoutNs) + 1);
    }

    private int accept(final long nowNs) {
        int accepted = 0;
        while (accepted < ACCEPTS_PER_CYCLE) {
            final boolean full = connections.size() >= options.maxConnections();
            if (full && (accepted > 0 || !makeRoom(nowNs))) {
                // Nobody is sent away: the kernel keeps those who wait.
                pauseAccepting(nowNs, FULL_PAUSE_NS);
                return accepted;
            }
            final SocketChannel channel;
            try {
                channel = acceptor.accept(listener);
            } catch (final IOException ex) {
                // Most likely there are no file descriptors left: the listener stays ready, and asking on would only spin.
                strangers.say("KV server at " + KvAddress.text(address) + " cannot accept: " + KvAddress.reason(ex));
                pauseAccepting(nowNs, ACCEPT_PAUSE_NS);
                return accepted;
            }
            if (channel == null) {
                return accepted;
            }
            accepted++;
            admit(channel, nowNs);
        }
        return accepted;
    }

    private void pauseAccepting(final long nowNs, final long pauseNs) {
        acceptPausing = true;
        acceptResumeNs = nowNs + pauseNs;
        listenerKey.interestOps(0);
    }

    private void resumeAccepting(final long nowNs) {
        if (acceptPausing && nowNs - acceptResumeNs >= 0) {
            acceptPausing = false;
            listenerKey.interestOps(SelectionKey.OP_ACCEPT);
        }
    }

    private void admit(final SocketChannel channel, final long nowNs) {
        try {
            connections.add(new KvConnection(channel, selector, store, seal, nowNs));
        } catch (final IOException | RuntimeException ex) {
            LOG.debug("a connection was gone before it was served", ex);
            closeQuietly(channel);
        }
    }

    /** Drops the connection that is missed least. */
    private boolean makeRoom(final long nowNs) {
        KvConnection least = null;
        for (final KvConnection connection : connections) {
            final boolean mayGo = connection.isValid() ? connection.isBetweenFrames() : nowNs - connection.sinceNs() >= FIRST_WORD_GRACE_NS;
            if (mayGo && (least == null || isMissedLess(connection, least))) {
                least = connection;
            }
        }
        if (least == null) {
            return false;
        }
        drop(least, "there are " + connections.size() + " connections, and it was silent for longest");
        return true;
    }

    private static boolean isMissedLess(final KvConnection one, final KvConnection other) {
        return one.isValid() == other.isValid() ? one.sinceNs() - other.sinceNs() < 0 : !one.isValid();
    }

    private int serve(final KvConnection connection, final long nowNs) {
        // It may have been dropped since it was selected, to make room for another.
        if (!connections.contains(connection)) {
            return 0;
        }
        try {
            switch (connection.onReady(nowNs)) {
                case ENDED -> end(connection);
                case STRANGE -> drop(connection, connection.reason());
                default -> {
                }
            }
        } catch (final IOException ex) {
            if (connection.isValid() || connection.isBetweenFrames()) {
                end(connection);
            } else {
                drop(connection, KvAddress.reason(ex));
            }
        } catch (final RuntimeException ex) {
            // Whatever it is, it is this connection's.
            drop(connection, "serving it failed: " + ex);
        }
        return 1;
    }

    private int dropOverdue(final long nowNs) {
        if (nowNs - nextCheckNs < 0) {
            return 0;
        }
        nextCheckNs = nowNs + options.frameTimeLimitNs() / CHECKS_PER_LIMIT;
        for (final KvConnection connection : connections) {
            if (connection.isOverdue(nowNs, options.frameTimeLimitNs())) {
                overdue.add(connection);
            }
        }
        for (final KvConnection connection : overdue) {
            drop(connection, connection.reason());
        }
        final int dropped = overdue.size();
        overdue.clear();
        return dropped;
    }

    private void drop(final KvConnection connection, final String reason) {
        strangers.say("KV server at " + KvAddress.text(address) + " drops " + connection.remoteText() + ": " + reason);
        end(connection);
    }

    private void end(final KvConnection connection) {
        connections.remove(connection);
        try {
            connection.close();
        } catch (final IOException ex) {
            LOG.debug("closing the connection of {} failed", connection.remoteText(), ex);
        }
    }

    /** Closes everything. On the server's thread, or after it, or instead of it. */
    private synchronized void release() {
        for (final KvConnection connection : List.copyOf(connections)) {
            end(connection);
        }
        connectionCount = 0;
        closeQuietly(listener);
        closeQuietly(selector);
        ended.countDown();
    }

    private static void closeQuietly(final AutoCloseable closeable) {
        if (closeable != null) {
            try {
                closeable.close();
            } catch (final Exception ex) {
                LOG.debug("closing {} failed", closeable, ex);
            }
        }
    }

    /** Ends the server and its connections, within 5 s. Idempotent. */
    @Override
    public void close() {
        if (thread.thread().getState() == Thread.State.NEW) {
            release();
        } else {
            thread.close(CLOSE_TIMEOUT_MS, TimeUnit.MILLISECONDS);
        }
    }
}
