package io.nrt4j.tools;

import io.nrt4j.NrtConfig;
import io.nrt4j.NrtSetting;
import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.net.NetTransportProvider;
import io.nrt4j.net.NetTransports;
import io.nrt4j.sendrecv.NrtAsyncSendRecv;
import java.time.Duration;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;

/** The options of a command that has two ends: both in this process, or one of them here and the other elsewhere. */
final class PeerOptions {
    /** The one transport that does not leave its JVM. */
    static final String ONE_JVM_TRANSPORT = "loopback";

    @Option(names = "--transport", paramLabel = "NAME",
        description = "Transport, see 'nrt4j info'. Default: the configured one, else loopback.")
    private String transport;

    @Option(names = "--timeout", paramLabel = "SECONDS", defaultValue = "120",
        description = "Longest time to connect, and without any progress. Default: ${DEFAULT-VALUE}.")
    private int timeoutSeconds;

    @Option(names = "--listen", description = "Be the receiving end, in a process of its own.")
    private boolean listen;

    @Option(names = "--peer", paramLabel = "IP", description = "Address of the other end's host.")
    private String peer;

    @Option(names = "--peer-lnc", paramLabel = "N", description = "LNC of the other end.")
    private Integer peerLnc;

    @Option(names = "--lnc", paramLabel = "N", description = "Own LNC. Default: 0, with --listen 1.")
    private Integer lnc;

    @Option(names = "--port", paramLabel = "PORT",
        description = "Port of the key-value store, the same at both ends. Default: the configured one; without --peer any free one.")
    private Integer port;

    /** Whether both ends are in this process. */
    boolean embedded() {
        return peer == null && !listen;
    }

    boolean listen() {
        return listen;
    }

    int lnc() {
        return lnc != null ? lnc : listen ? 1 : 0;
    }

    int peerLnc() {
        return peerLnc != null ? peerLnc : embedded() ? 1 : 0;
    }

    /** Port of the key-value store; 0 when it was not given. */
    int port() {
        return port == null ? 0 : port;
    }

    Duration timeout() {
        return Duration.ofSeconds(timeoutSeconds);
    }

    /** Refuses what cannot be. */
    void check(final CommandSpec spec) {
        require(spec, timeoutSeconds >= 1, "--timeout must be at least 1 second, not " + timeoutSeconds);
        require(spec, lnc == null || isLnc(lnc), "--lnc must be 0 to " + (NrtConfig.MAX_LNCS - 1) + ", not " + lnc);
        require(spec, peerLnc == null || isLnc(peerLnc), "--peer-lnc must be 0 to " + (NrtConfig.MAX_LNCS - 1) + ", not " + peerLnc);
        require(spec, port == null || port >= 1 && port <= 65535, "--port must be 1 to 65535, not " + port);
        require(spec, !listen || peer != null, "--listen needs --peer, the address of the other host");
        require(spec, embedded() || peerLnc != null, "--peer needs --peer-lnc");
    }

    private static boolean isLnc(final int number) {
        return number >= 0 && number < NrtConfig.MAX_LNCS;
    }

    static void require(final CommandSpec spec, final boolean condition, final String otherwise) {
        if (!condition) {
            throw new ParameterException(spec.commandLine(), otherwise);
        }
    }

    /** A configuration over the environment's. */
    NrtConfig.Builder config(final int portOrZero) {
        final NrtConfig.Builder builder = NrtConfig.builder().asyncSendRecvEnabled(true).connectTimeout(timeout());
        if (transport != null) {
            builder.transport(transport);
        }
        if (portOrZero != 0) {
            builder.bootstrapPort(portOrZero);
        }
        return builder;
    }

    /**
     * The configuration of an end in a process of its own, checked; of an embedded one as far as it is known.
     *
     * @throws ParameterException when a value or a combination cannot be.
     * @throws NrtException       when the transport is not available here.
     */
    NrtConfig checkedConfig(final CommandSpec spec) {
        final NrtConfig config;
        final NetTransportProvider provider;
        try {
            config = config(port()).build();
            require(spec, embedded() || config.bootstrapPort() != 0, "two processes need a port: give --port, or set "
                + NrtSetting.BOOTSTRAP_PORT.variable());
            require(spec, embedded() || !config.transport().equals(ONE_JVM_TRANSPORT), "the transport " + ONE_JVM_TRANSPORT
                + " joins engines of one process only; with --peer or --listen take another one (--transport), see 'nrt4j info'");
            provider = NetTransports.byName(config.transport());
        } catch (final NrtException ex) {
            throw new ParameterException(spec.commandLine(), ex.getMessage(), ex);
        }
        final String cause = provider.unavailabilityCause(config);
        if (cause != null) {
            throw new NrtException(NrtStatus.FAILURE, "the transport " + provider.name() + " is not available: " + cause);
        }
        return config;
    }

    /** This end of a pair of processes, not connected yet. */
    PeerLink link(final NrtAsyncSendRecv engine) {
        return new PeerLink(engine, lnc(), peer, peerLnc(), new Patience(timeout(), () -> false));
    }

    /** Where the two ends are, for people. */
    String between() {
        return embedded() ? "from host A, lnc " + lnc() + ", to host B, lnc " + peerLnc()
            : (listen ? "from " : "to ") + peer + ", lnc " + peerLnc();
    }
}
