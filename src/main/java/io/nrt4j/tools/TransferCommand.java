package io.nrt4j.tools;

import io.nrt4j.NrtConfig;
import io.nrt4j.sendrecv.NrtAsyncSendRecv;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

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

    @Spec
    private CommandSpec spec;

    @Parameters(arity = "0..*", paramLabel = "FILE_OR_FOLDER", description = "What to send; folders with all that is in them.")
    private List<Path> sources = new ArrayList<>();

    @Option(names = "--in-flight", paramLabel = "N", defaultValue = "8",
        description = "Chunks in flight, 1 to 128. Default: ${DEFAULT-VALUE}.")
    private int inFlight;

    @Option(names = "--chunk", paramLabel = "SIZE", defaultValue = "16M", converter = Sizes.Converter.class,
        description = "Longest message, up to 1G; K, M and G are powers of 1024. Default: ${DEFAULT-VALUE}.")
    private long chunkBytes;

    @Option(names = "--out", paramLabel = "FOLDER",
        description = "Keep what arrives here. Default: it is digested only.")
    private Path out;

    @Mixin
    private PeerOptions ends;

    private final EngineFactory engines;

    TransferCommand(final EngineFactory engines) {
        this.engines = engines;
    }

    @Override
    public Integer call() {
        checkUsage();
        final NrtConfig config = ends.checkedConfig(spec);
        final PrintWriter writer = spec.commandLine().getOut();
        final ProgressMeter progress = new ProgressMeter(writer, ProgressMeter.isTerminal());
        final List<TransferFile> files = ends.listen() ? List.of() : FileCatalog.of(sources);
        final TransferReport report;
        try {
            report = ends.embedded() ? bothEnds(files, progress) : oneEnd(config, files, progress);
        } finally {
            progress.end();
        }
        report.print(writer, ends.between() + ", over " + config.transport());
        return report.mismatches() == 0 ? Main.OK : Main.FAILED;
    }

    private TransferReport bothEnds(final List<TransferFile> files, final ProgressMeter progress) {
        return new EmbeddedPair<TransferReport>(ends, engines).run(
            link -> new TransferSender(link, files, chunkBytes, inFlight, null).run(),
            link -> new TransferReceiver(link, out, inFlight, progress).run());
    }

    private TransferReport oneEnd(final NrtConfig config, final List<TransferFile> files, final ProgressMeter progress) {
        try (NrtAsyncSendRecv engine = engines.create(config)) {
            final PeerLink link = ends.link(engine);
            return ends.listen() ? new TransferReceiver(link, out, inFlight, progress).run()
                : new TransferSender(link, files, chunkBytes, inFlight, progress).run();
        }
    }

    private void checkUsage() {
        require(inFlight >= 1 && inFlight <= MAX_IN_FLIGHT, "--in-flight must be 1 to " + MAX_IN_FLIGHT + ", not " + inFlight);
        require(chunkBytes <= MAX_CHUNK_BYTES, "--chunk must be at most 1G");
        ends.check(spec);
        if (ends.listen()) {
            require(sources.isEmpty(), "--listen receives; it takes no FILE_OR_FOLDER");
        } else {
            require(!sources.isEmpty(), "there is no FILE_OR_FOLDER to send");
            require(ends.embedded() || out == null, "--out belongs to the receiving end");
        }
    }

    private void require(final boolean condition, final String otherwise) {
        PeerOptions.require(spec, condition, otherwise);
    }
}
