package io.nrt4j.tools;

import io.nrt4j.NrtConfig;
import io.nrt4j.NrtSetting;
import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.net.NetTransportProvider;
import io.nrt4j.net.NetTransports;
import io.nrt4j.proxy.SharedProxyQueues;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** {@code nrt4j collective}: a collective's network phase over a file's bytes, driven by the proxy driver alone. */
@Command(
    name = "collective",
    description = "Runs an all-gather and a ring all-reduce of a file's bytes over N ranks, driven by the proxy driver alone, checks"
        + " every byte and prints the time of an operation.",
    mixinStandardHelpOptions = true)
final class CollectiveCommand implements Callable<Integer> {
    private static final int MAX_RANKS = 64;
    private static final double NS_PER_MS = 1e6;

    @Spec
    private CommandSpec spec;

    @Parameters(paramLabel = "FILE", description = "File whose bytes are gathered and reduced; the same for every rank.")
    private Path file;

    @Option(names = {"-o", "--operation"}, paramLabel = "NAME",
        description = "all-gather, all-reduce or both; both is the default.")
    private String operation = "both";

    @Option(names = {"-n", "--ranks"}, paramLabel = "N", description = "Number of ranks, default ${DEFAULT-VALUE}.")
    private int ranks = 4;

    @Option(names = {"-i", "--iterations"}, paramLabel = "N", description = "Runs of each operation, default ${DEFAULT-VALUE}.")
    private int iterations = 10;

    @Option(names = "--slice", paramLabel = "BYTES", description = "Longest transfer, default ${DEFAULT-VALUE}.")
    private int slice = 256 * 1024;

    @Option(names = "--transport", paramLabel = "NAME", description = "Transport; default is what the configuration says.")
    private String transport;

    @Option(names = "--rank", paramLabel = "R", description = "Run this rank only; the others are processes of their own.")
    private Integer rank;

    @Option(names = "--rendezvous", paramLabel = "FOLDER",
        description = "With --rank: where the ranks leave their listen handles. New for each job, the same for all its ranks.")
    private Path rendezvous;

    @Option(names = "--ranks-per-proxy", paramLabel = "N", description = "Ranks that share one proxy worker.")
    private Integer ranksPerProxy;

    @Option(names = "--spin", description = "Let the workers spin instead of yield while they wait.")
    private boolean spin;

    @Option(names = "--timeout", paramLabel = "SECONDS", description = "Longest wait for any one thing, default ${DEFAULT-VALUE}.")
    private int timeout = 60;

    @Override
    public Integer call() throws IOException {
        check();
        final NrtConfig config = config();
        final NetTransportProvider provider = NetTransports.byName(config.transport());
        final String cause = provider.unavailabilityCause(config);
        if (cause != null) {
            throw new NrtException(NrtStatus.INVALID, "transport " + provider.name() + " is not available: " + cause);
        }
        final byte[] input = Files.readAllBytes(file);
        for (final CollectiveKind kind : kinds()) {
            final Meeting meeting = rank == null ? Meeting.inMemory() : Meeting.inFolder(rendezvous.resolve(kind.toString()));
            final CollectiveRank.Job job = new CollectiveRank.Job(kind, ranks, input, slice, config, new SharedProxyQueues(), meeting,
                Duration.ofSeconds(timeout));
            final CollectiveJob run = new CollectiveJob(job, iterations, each -> provider.create(config),
                this::onConnected);
            report(kind, input.length, provider.name(), rank == null ? run.runAll() : run.runOne(rank));
        }
        return 0;
    }

    private void onConnected(final int connected) {
        if (rank != null) {
            final PrintWriter out = spec.commandLine().getOut();
            out.println("rank " + connected + " of " + ranks + " is connected");
            out.flush();
        }
    }

    private void check() {
        reject(ranks < 2 || ranks > MAX_RANKS, "--ranks must be from 2 to " + MAX_RANKS);
        reject(iterations < 1, "--iterations must be at least 1");
        reject(slice < 1, "--slice must be at least 1");
        reject(timeout < 1, "--timeout must be at least 1");
        reject((rank == null) != (rendezvous == null), "--rank and --rendezvous belong together");
        reject(rank != null && (rank < 0 || rank >= ranks), "--rank must be from 0 to " + (ranks - 1));
        reject(!Files.isRegularFile(file), file + " is no file");
    }

    private void reject(final boolean bad, final String text) {
        if (bad) {
            throw new ParameterException(spec.commandLine(), text);
        }
    }

    private List<CollectiveKind> kinds() {
        if (operation.equals("both")) {
            return List.of(CollectiveKind.values());
        }
        for (final CollectiveKind kind : CollectiveKind.values()) {
            if (kind.toString().equals(operation)) {
                return List.of(kind);
            }
        }
        throw new ParameterException(spec.commandLine(), "--operation must be all-gather, all-reduce or both");
    }

    private NrtConfig config() {
        final NrtConfig.Builder builder = NrtConfig.builder();
        if (transport != null) {
            builder.transport(transport);
        }
        if (ranksPerProxy != null) {
            builder.set(NrtSetting.RANKS_PER_NETWORK_PROXY, ranksPerProxy.toString());
        }
        if (spin) {
            builder.set(NrtSetting.ONE_THREAD_PER_CORE, "true");
        }
        return builder.build();
    }

    private void report(final CollectiveKind kind, final int size, final String over, final long[] times) {
        final long[] sorted = times.clone();
        Arrays.sort(sorted);
        final long median = sorted[sorted.length / 2];
        // What crosses each link, over the time: comparable between operations and numbers of ranks.
        final double busBytes = (double) size * kind.steps(ranks) / ranks;
        final String where = rank == null ? "in one process" : "in as many processes (this is rank " + rank + ")";
        final PrintWriter out = spec.commandLine().getOut();
        out.printf(Locale.ROOT, "%s: %d ranks %s over %s, %d bytes, %d times: median %.3f ms, best %.3f ms, worst %.3f ms;"
                + " %.1f MB/s a link; every byte right%n",
            kind, ranks, where, over, size, times.length, median / NS_PER_MS, sorted[0] / NS_PER_MS,
            sorted[sorted.length - 1] / NS_PER_MS, busBytes * 1000 / median);
        out.flush();
    }
}
