package io.nrt4j.sendrecv;

import io.nrt4j.NrtConfig;
import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.concurrent.NanoClock;
import io.nrt4j.concurrent.Uninterrupted;
import io.nrt4j.kv.KvLeader;
import io.nrt4j.kv.KvOptions;
import io.nrt4j.net.NetTransport;
import io.nrt4j.net.NetTransportProvider;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What the LNCs of an instance share: the transport and this host's key-value server (or its place in the queue for it).
 * Made for the first LNC that is initialised, closed with the last.
 *
 * <p>Threads: any; all fields are read and written under the monitor, which is not held while they are made or closed: {@code changing}
 * keeps others from doing so meanwhile, and whoever waits for it has a deadline.
 */
final class EngineServices {
    private static final Logger LOG = LoggerFactory.getLogger(EngineServices.class);

    private final NrtConfig config;
    private final NetTransportProvider provider;
    private final NanoClock clock;
    private int users;
    private NetTransport transport;
    private KvLeader leader;
    /** What is being done to them now, by one thread; null while they are as they are. */
    private String changing;
    /** Closes what the last user left, or has done so; null before. */
    private Thread closer;

    EngineServices(final NrtConfig config, final NetTransportProvider provider, final NanoClock clock) {
        this.config = config;
        this.provider = provider;
        this.clock = clock;
    }

    /**
     * One more LNC uses them.
     *
     * @param deadlineNs until when to wait for whoever makes or closes them, by {@link System#nanoTime()}. The provider's own time
     *     is not bounded, since nobody can call a native library off: what it makes too late is closed again.
     * @throws NrtException TIMEOUT at the deadline; else what kept them from being made.
     */
    void acquire(final long deadlineNs) {
        synchronized (this) {
            awaitUnchanging(deadlineNs);
            if (users > 0) {
                users++;
                return;
            }
            changing = "opened";
        }
        NetTransport made = null;
        KvLeader started = null;
        boolean inTime = false;
        try {
            if (LOG.isInfoEnabled()) {
                LOG.info("Starting with {}", config);
            }
            started = KvLeader.start(config);
            made = Objects.requireNonNull(provider.create(config), provider.name() + " made no transport");
            if (System.nanoTime() - deadlineNs > 0) {
                throw new NrtException(NrtStatus.TIMEOUT, "the transport " + provider.name() + " was opened too late");
            }
            inTime = true;
        } finally { // whatever it was: an exception, or an error of a native library
            try {
                if (!inTime) {
                    close(made, started);
                }
            } finally {
                changed(inTime ? made : null, inTime ? started : null);
            }
        }
    }

    private void awaitUnchanging(final long deadlineNs) {
        final boolean unchanging = Uninterrupted.await(deadlineNs - System.nanoTime(), leftNs -> {
            if (changing != null) {
                TimeUnit.NANOSECONDS.timedWait(this, leftNs);
            }
            return changing == null;
        });
        if (!unchanging) {
            throw new NrtException(NrtStatus.TIMEOUT, "the transport " + provider.name() + " is still being " + changing);
        }
    }

    private synchronized void changed(final NetTransport made, final KvLeader started) {
        transport = made;
        leader = started;
        users = made == null ? 0 : 1;
        changing = null;
        notifyAll();
    }

    synchronized NetTransport transport() {
        return transport;
    }

    /** Waits, until the deadline, for this host's server to answer. */
    Rendezvous rendezvous(final long deadlineNs) {
        final KvLeader present;
        synchronized (this) {
            present = leader;
        }
        return new Rendezvous(
            present.hostIdentity(deadlineNs), present.ownServer(), config.bootstrapPort(), KvOptions.of(config).withClock(clock));
    }

    /**
     * One LNC less; the last one has them closed by a thread of its own, and does not wait for it. Throws nothing: who releases is
     * past the point where it could fail.
     */
    void release() {
        final Thread thread;
        synchronized (this) {
            if (--users > 0) {
                return;
            }
            final NetTransport closedTransport = transport;
            final KvLeader closedLeader = leader;
            transport = null;
            leader = null;
            changing = "closed";
            thread = new Thread(() -> {
                try {
                    close(closedTransport, closedLeader);
                } finally {
                    changed(null, null);
                }
            }, "nrt4j-close");
            thread.setDaemon(true);
            closer = thread;
        }
        try {
            thread.start();
        } catch (final OutOfMemoryError ex) { // no thread is left
            LOG.debug("the transport is closed by whoever used it last", ex);
            thread.run();
        }
    }

    /** Waits, until a deadline, for what the last user left to be closed; whether nothing of it is left. */
    boolean awaitClosed(final long deadlineNs) {
        final Thread present;
        synchronized (this) {
            present = closer;
        }
        return present == null || Uninterrupted.join(present, deadlineNs - System.nanoTime());
    }

    /** Either may be null. */
    private void close(final NetTransport closedTransport, final KvLeader closedLeader) {
        try {
            if (closedTransport != null) {
                closedTransport.close();
            }
        } catch (final RuntimeException | LinkageError ex) {
            LOG.error("Closing the transport {} failed", provider.name(), ex);
        } finally {
            if (closedLeader != null) {
                closedLeader.close();
            }
        }
    }
}
