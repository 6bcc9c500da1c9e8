package io.nrt4j.tools;

import io.nrt4j.NrtConfig;
import io.nrt4j.NrtException;
import io.nrt4j.sendrecv.NrtAsyncSendRecv;
import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** {@code nrt4j perf}: measures latency, bandwidth and the hand-over of a KV cache, through the whole public API. */
@Command(
    name = "perf",
    description = {
        "Measures through the whole public API: ping-pong latency, windowed bandwidth, or with --kv the hand-over of a KV cache.",
        "",
        "Without --peer, both ends are in this process: two engines, as two hosts. With --peer, this is one end: the measuring"
            + " one, or with --listen the other one, which does what the measuring end plans and ends with it. Both poll without"
            + " giving their processor away.",
        ""},
    mixinStandardHelpOptions = true,
    versionProvider = Main.Version.class,
    sortOptions = false)
final class PerfCommand implements Callable<Integer> {
    private static final long PING_PONG_BYTES = 256L << 20;
    private static final long MIN_ROUND_TRIPS = 200;
    private static final long MAX_ROUND_TRIPS = 20_000;
    private static final long BANDWIDTH_BYTES = 2L << 30;
    private static final long MIN_WINDOWS = 20;
    private static final long MAX_WINDOWS = 2_000;
    private static final long MAX_BYTES = 1L << 30;
    private static final int MAX_IN_FLIGHT = 128;
    private static final long DEFAULT_WARM_UP_NS = 2_000_000_000L;
    private static final int MAX_WARM_UP_S = 600;
    private static final int KV_MIN_BYTES = Long.BYTES;

    @Spec
    private CommandSpec spec;

    @Option(names = "--self", description = "Both ends in this process; so it is without --peer anyhow.")
    private boolean self;

    @Option(names = "--latency", paramLabel = "SIZE", split = ",", converter = Sizes.Converter.class,
        description = "Sizes of the ping-pong. Default: 8 to 4M; with --bandwidth alone, none.")
    private List<Long> latencySizes;

    @Option(names = "--bandwidth", paramLabel = "SIZE", split = ",", converter = Sizes.Converter.class,
        description = "Sizes of the windowed bandwidth. Default: 64K, 1M and 4M; with --latency alone, none.")
    private List<Long> bandwidthSizes;

    @Option(names = "--window", paramLabel = "N",
        description = "Messages in flight, 1 to 128. Default: 16, with --kv 128.")
    private Integer window;

    @Option(names = "--iterations", paramLabel = "N",
        description = "Round trips, windows or rounds of each measurement. Default: by size; with --kv 5.")
    private Long iterations;

    @Option(names = "--warm-up", paramLabel = "N",
        description = "As many before them that are not measured. Default: as many round trips, a quarter of the windows.")
    private Long warmUp;

    @Option(names = "--warm-up-time", paramLabel = "S",
        description = "Seconds for which each measurement runs before that, so that what it runs is compiled. "
            + "Default: 2; with --iterations or --warm-up, 0.")
    private Double warmUpSeconds;

    @Option(names = "--kv", description = "Hand a KV cache over: layers x blocks, a flush at the end; every block is checked.")
    private boolean kv;

    @Option(names = "--layers", paramLabel = "N", defaultValue = "32", description = "Layers of the KV cache. Default: ${DEFAULT-VALUE}.")
    private int layers;

    @Option(names = "--blocks", paramLabel = "N", defaultValue = "16",
        description = "Blocks of each layer. Default: ${DEFAULT-VALUE}.")
    private int blocks;

    @Option(names = "--block-size", paramLabel = "SIZE", split = ",", defaultValue = "16K,64K,256K,1M",
        converter = Sizes.Converter.class, description = "Sizes of a block. Default: ${DEFAULT-VALUE}.")
    private List<Long> blockSizes;

    @Option(names = "--json", description = "One line of JSON for each measurement, and nothing else on standard output.")
    private boolean json;

    @Mixin
    private PeerOptions ends;

    private final EngineFactory engines;
    private String lastHead = "";

    PerfCommand(final EngineFactory engines) {
        this.engines = engines;
    }

    @Override
    public Integer call() {
        ends.check(spec);
        checkUsage();
        final List<PerfPlan> plans = plans();
        final NrtConfig config = ends.checkedConfig(spec);
        final PrintWriter out = spec.commandLine().getOut();
        if (ends.embedded()) {
            title(out, config);
            new EmbeddedPair<Integer>(ends, engines).run(
                link -> new PerfClient(link, plans, warmUpNs(), result -> print(out, config, result)).run(),
                link -> new PerfServer(link).run());
            return Main.OK;
        }
        try (NrtAsyncSendRecv engine = engines.create(config)) {
            final PeerLink link = ends.link(engine);
            if (ends.listen()) {
                new PerfServer(link).run();
            } else {
                title(out, config);
                new PerfClient(link, plans, warmUpNs(), result -> print(out, config, result)).run();
            }
        }
        return Main.OK;
    }

    private long warmUpNs() {
        return warmUpSeconds != null ? (long) (warmUpSeconds * 1e9) : iterations != null || warmUp != null ? 0 : DEFAULT_WARM_UP_NS;
    }

    private void title(final PrintWriter out, final NrtConfig config) {
        if (!json) {
            out.println(ends.between() + ", over " + config.transport());
            out.flush();
        }
    }

    private void print(final PrintWriter out, final NrtConfig config, final PerfResult result) {
        if (json) {
            out.println("{\"transport\":\"" + config.transport() + "\"," + result.json() + "}");
        } else {
            if (!lastHead.equals(result.head())) {
                lastHead = result.head();
                out.println();
                out.println(lastHead);
            }
            out.println(result.row());
        }
        out.flush();
    }

    private List<PerfPlan> plans() {
        final List<PerfPlan> plans = new ArrayList<>();
        if (ends.listen()) {
            return plans;
        }
        if (kv) {
            blockSizes.forEach(size -> plans.add(
                PerfPlan.kv(size, orElse(window, MAX_IN_FLIGHT), layers, blocks, orElse(iterations, 5))));
        } else {
            final boolean both = latencySizes == null && bandwidthSizes == null;
            final List<Long> trips = both ? List.of(8L, 64L, 512L, 4096L, 16384L, 65536L, 262144L, 1L << 20, 4L << 20) : latencySizes;
            final List<Long> flows = both ? List.of(65536L, 1L << 20, 4L << 20) : bandwidthSizes;
            for (final long size : trips == null ? List.<Long>of() : trips) {
                final long count = orElse(iterations, clamp(PING_PONG_BYTES / size, MIN_ROUND_TRIPS, MAX_ROUND_TRIPS));
                plans.add(PerfPlan.pingPong(size, count, orElse(warmUp, count)));
            }
            final int inFlight = orElse(window, 16);
            for (final long size : flows == null ? List.<Long>of() : flows) {
                final long count = orElse(iterations, clamp(BANDWIDTH_BYTES / size / inFlight, MIN_WINDOWS, MAX_WINDOWS));
                plans.add(PerfPlan.bandwidth(size, inFlight, count, orElse(warmUp, Math.max(1, count / 4))));
            }
        }
        try {
            plans.forEach(PerfPlan::checked);
        } catch (final NrtException ex) {
            throw new ParameterException(spec.commandLine(), ex.getMessage(), ex);
        }
        return plans;
    }

    private void checkUsage() {
        final boolean planned = latencySizes != null || bandwidthSizes != null || window != null || iterations != null
            || warmUp != null || warmUpSeconds != null || kv || json;
        require(!self || ends.embedded(), "--self has both ends here; it takes neither --peer nor --listen");
        require(!ends.listen() || !planned, "--listen does what the measuring end plans: give the options of the measurement there");
        require(window == null || window >= 1 && window <= MAX_IN_FLIGHT, "--window must be 1 to " + MAX_IN_FLIGHT + ", not " + window);
        require(iterations == null || iterations >= 1, "--iterations must be at least 1, not " + iterations);
        require(warmUp == null || warmUp >= 0, "--warm-up must be at least 0, not " + warmUp);
        require(warmUpSeconds == null || warmUpSeconds >= 0 && warmUpSeconds <= MAX_WARM_UP_S,
            "--warm-up-time must be 0 to " + MAX_WARM_UP_S + " seconds, not " + warmUpSeconds);
        require(layers >= 1 && blocks >= 1, "--layers and --blocks must be at least 1");
        require(!kv || latencySizes == null && bandwidthSizes == null, "--kv measures neither --latency nor --bandwidth");
        require(!kv || warmUp == null, "--kv has one round of warm-up");
        for (final long size : blockSizes) {
            require(size >= KV_MIN_BYTES && size <= MAX_BYTES, "--block-size must be " + KV_MIN_BYTES + " to 1G");
        }
        for (final List<Long> sizes : List.of(latencySizes == null ? List.<Long>of() : latencySizes,
            bandwidthSizes == null ? List.<Long>of() : bandwidthSizes)) {
            require(sizes.stream().allMatch(size -> size <= MAX_BYTES), "a size must be at most 1G");
        }
    }

    private void require(final boolean condition, final String otherwise) {
        PeerOptions.require(spec, condition, otherwise);
    }

    private static long clamp(final long value, final long least, final long most) {
        return Math.max(least, Math.min(most, value));
    }

    private static int orElse(final Integer value, final int otherwise) {
        return value == null ? otherwise : value;
    }

    private static long orElse(final Long value, final long otherwise) {
        return value == null ? otherwise : value;
    }
}
