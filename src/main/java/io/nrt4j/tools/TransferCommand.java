package io.nrt4j.tools;

import io.nrt4j.NrtConfig;
import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.net.NetTransportProvider;
import io.nrt4j.net.NetTransports;
import io.nrt4j.sendrecv.NrtAsyncSendRecv;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;
import picocli.CommandLine.TypeConversionException;

/** {@code nrt4j transfer}: moves files as tensors, and proves that they arrived as they were sent. */
@Command(
    name = "transfer",
    description = {
        "Sends files as tensors from one LNC to another and compares the SHA-256 of both ends.",
        "",
        "Without --peer, both ends are in this process: two engines, as two hosts. With --peer, this is one end: the sending"
            + " one, or with --listen the receiving one.",
        ""},
    mixinStandardHelpOptions = true,
    versionProvider = Main.Version.class,
    sortOptions = false)
final class TransferCommand implements Callable<Integer> {
    private static final int MAX_IN_FLIGHT = 128;
    private static final long MAX_CHUNK_BYTES = 1L << 30;
    private static final String ONE_JVM_TRANSPORT = "loopback";

    @Spec
    private CommandSpec spec;

    @Parameters(arity = "0..*", paramLabel = "FILE_OR_FOLDER", description = "What to send; folders with all that is in them.")
    private List<Path> sources = new ArrayList<>();

    @Option(names = "--transport", paramLabel = "NAME",
        description = "Transport, see 'nrt4j info'. Default: the configured one, else loopback.")
    private String transport;

    @Option(names = "--in-flight", paramLabel = "N", defaultValue = "8",
        description = "Chunks in flight, 1 to 128. Default: ${DEFAULT-VALUE}.")
    private int inFlight;

    @Option(names = "--chunk", paramLabel = "SIZE", defaultValue = "16M", converter = SizeConverter.class,
        description = "Longest message, up to 1G; K, M and G are powers of 1024. Default: ${DEFAULT-VALUE}.")
    private long chunkBytes;

    @Option(names = "--out", paramLabel = "FOLDER",
        description = "Keep what arrives here. Default: it is digested only.")
    private Path out;

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

    private final EngineFactory engines;

    TransferCommand(final EngineFactory engines) {
        this.engines = engines;
    }

    /** Sizes such as {@code 4096}, {@code 64K}, {@code 16M}, {@code 1G}. */
    static final class SizeConverter implements picocli.CommandLine.ITypeConverter<Long> {
        @Override
        public Long convert(final String text) {
            if (!text.matches("[1-9][0-9]{0,9}[KMG]?")) {
                throw new TypeConversionException("'" + text + "' is no size such as 4096, 64K, 16M or 1G");
            }
            final char unit = text.charAt(text.length() - 1);
            final int shift = switch (unit) {
                case 'K' -> 10;
                case 'M' -> 20;
                case 'G' -> 30;
                default -> 0;
            };
            return Long.parseLong(shift == 0 ? text : text.substring(0, text.length() - 1)) << shift;
        }
    }

    @Override
    public Integer call() {
        final boolean embedded = peer == null && !listen;
        checkUsage(embedded);
        final TransferOptions options = new TransferOptions(transport, orElse(lnc, listen ? 1 : 0),
            orElse(peerLnc, embedded ? 1 : 0), inFlight, chunkBytes, Duration.ofSeconds(timeoutSeconds), orElse(port, 0));
        final NrtConfig config = checkConfig(options, embedded);
        checkTransport(config);
        final PrintWriter writer = spec.commandLine().getOut();
        final ProgressMeter progress = new ProgressMeter(writer, ProgressMeter.isTerminal());
        final List<TransferFile> files = listen ? List.of() : FileCatalog.of(sources);
        final TransferReport report;
        try {
            report = embedded ? new EmbeddedTransfer(options, engines).run(files, out, progress)
                : oneEnd(options, config, files, progress);
        } finally {
            progress.end();
        }
        final String between = embedded ? "from host A, lnc " + options.lnc() + ", to host B, lnc " + options.peerLnc()
            : (listen ? "from " : "to ") + peer + ", lnc " + options.peerLnc();
        report.print(writer, between + ", over " + config.transport());
        return report.mismatches() == 0 ? Main.OK : Main.FAILED;
    }

    private TransferReport oneEnd(
        final TransferOptions options, final NrtConfig config, final List<TransferFile> files, final ProgressMeter progress) {
        try (NrtAsyncSendRecv engine = engines.create(config)) {
            final TransferLink link = new TransferLink(engine, options.lnc(), peer, options.peerLnc(),
                new Patience(options.timeout(), () -> false));
            return listen ? new TransferReceiver(link, out, inFlight, progress).run()
                : new TransferSender(link, files, chunkBytes, inFlight, progress).run();
        }
    }

    private void checkUsage(final boolean embedded) {
        require(inFlight >= 1 && inFlight <= MAX_IN_FLIGHT, "--in-flight must be 1 to " + MAX_IN_FLIGHT + ", not " + inFlight);
        require(chunkBytes <= MAX_CHUNK_BYTES, "--chunk must be at most 1G");
        require(timeoutSeconds >= 1, "--timeout must be at least 1 second, not " + timeoutSeconds);
        require(lnc == null || isLnc(lnc), "--lnc must be 0 to " + (NrtConfig.MAX_LNCS - 1) + ", not " + lnc);
        require(peerLnc == null || isLnc(peerLnc), "--peer-lnc must be 0 to " + (NrtConfig.MAX_LNCS - 1) + ", not " + peerLnc);
        require(port == null || port >= 1 && port <= 65535, "--port must be 1 to 65535, not " + port);
        if (listen) {
            require(sources.isEmpty(), "--listen receives; it takes no FILE_OR_FOLDER");
            require(peer != null, "--listen needs --peer, the address of the sending host");
        } else {
            require(!sources.isEmpty(), "there is no FILE_OR_FOLDER to send");
            require(embedded || out == null, "--out belongs to the receiving end");
        }
        require(embedded || peerLnc != null, "--peer needs --peer-lnc");
    }

    private static boolean isLnc(final int number) {
        return number >= 0 && number < NrtConfig.MAX_LNCS;
    }

    private NrtConfig checkConfig(final TransferOptions options, final boolean embedded) {
        try {
            final NrtConfig config = options.config(options.port()).build();
            require(embedded || config.bootstrapPort() != 0, "two processes need a port: give --port, or set "
                + NrtConfig.Setting.BOOTSTRAP_PORT.variable());
            require(embedded || !config.transport().equals(ONE_JVM_TRANSPORT), "the transport " + ONE_JVM_TRANSPORT
                + " joins engines of one process only; with --peer or --listen take another one (--transport), see 'nrt4j info'");
            return config;
        } catch (final NrtException ex) {
            throw new ParameterException(spec.commandLine(), ex.getMessage(), ex);
        }
    }

    private void checkTransport(final NrtConfig config) {
        final NetTransportProvider provider;
        try {
            provider = NetTransports.byName(config.transport());
        } catch (final NrtException ex) {
            throw new ParameterException(spec.commandLine(), ex.getMessage(), ex);
        }
        final String cause = provider.unavailabilityCause(config);
        if (cause != null) {
            throw new NrtException(NrtStatus.FAILURE, "the transport " + provider.name() + " is not available: " + cause);
        }
    }

    private void require(final boolean condition, final String otherwise) {
        if (!condition) {
            throw new ParameterException(spec.commandLine(), otherwise);
        }
    }

    private static int orElse(final Integer value, final int otherwise) {
        return value == null ? otherwise : value;
    }
}
