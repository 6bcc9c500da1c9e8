package io.nrt4j.sendrecv;

import io.nrt4j.NrtConfig;
import io.nrt4j.concurrent.NanoClock;
import io.nrt4j.kv.KvLeader;
import io.nrt4j.kv.KvOptions;
import io.nrt4j.net.NetTransport;
import io.nrt4j.net.NetTransportProvider;
import java.util.Objects;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What the LNCs of an instance share: the transport and this host's key-value server (or its place in the queue for it).
 * Made for the first LNC that is initialised, closed with the last.
 *
 * <p>Threads: any; all fields are read and written under the monitor.
 */
final class EngineServices {
    private static final Logger LOG = LoggerFactory.getLogger(EngineServices.class);

    private final NrtConfig config;
    private final NetTransportProvider provider;
    private final NanoClock clock;
    private int users;
    private NetTransport transport;
    private KvLeader leader;

    EngineServices(final NrtConfig config, final NetTransportProvider provider, final NanoClock clock) {
        this.config = config;
        this.provider = provider;
        this.clock = clock;
    }

    /** One more LNC uses them. */
    synchronized void acquire() {
        if (users == 0) {
            if (LOG.isInfoEnabled()) {
                LOG.info("Starting with {}", config);
            }
            final KvLeader started = KvLeader.start(config);
            NetTransport made = null;
            try {
                made = Objects.requireNonNull(provider.create(config), provider.name() + " made no transport");
            } finally {
                if (made == null) {
                    started.close(); // whatever it was: an exception, or an error of a native library
                }
            }
            transport = made;
            leader = started;
        }
        users++;
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

    /** One LNC less; the last one closes them. Throws nothing: who releases is past the point where it could fail. */
    synchronized void release() {
        if (--users > 0) {
            return;
        }
        final NetTransport closedTransport = transport;
        final KvLeader closedLeader = leader;
        transport = null;
        leader = null;
        try {
            closedTransport.close();
        } catch (final RuntimeException ex) {
            LOG.error("Closing the transport {} failed", provider.name(), ex);
        } finally {
            closedLeader.close();
        }
    }
}
