package io.nrt4j.bench;

import java.io.IOException;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Stream;

/**
 * Alternating rounds: in each, every contender measures every case once, in the other order in every second round. Prints, for
 * each case and contender, the medians and the median of the paired ratios (nrt4j to the other in the same round) with their
 * range, and the limit that the ratio should keep.
 */
public final class FabricRounds {
    /**
     * A limit for a ratio.
     *
     * @param atMost whether the ratio must not exceed it; else it must reach it.
     * @param value  of the limit.
     */
    private record Limit(boolean atMost, double value) {
        String text() {
            return String.format(Locale.ROOT, "%s %.2f", atMost ? "<=" : ">=", value);
        }

        boolean isKept(final double ratio) {
            return atMost ? ratio <= value : ratio >= value;
        }
    }

    private static final double[] TCP_LIMITS = {1.25, 1.25, 1.10, 1.10, 0.97};
    private static final double[] SHM_LIMITS = {1.90, 1.50, 1.15, 1.15, 0.92};

    private int port = 20_000 + (int) (ProcessHandle.current().pid() % 5000);

    private FabricRounds() {
    }

    /**
     * Measures.
     *
     * @param args number of rounds, the C yardstick's binary, whether UCX is here, whether a missed limit is an error (exit code 1),
     *             and the providers.
     * @throws IOException          when a contender cannot be started.
     * @throws InterruptedException when it is interrupted.
     */
    public static void main(final String[] args) throws IOException, InterruptedException {
        final int rounds = Integer.parseInt(args[0]);
        int missed = 0;
        for (int i = 4; i < args.length; i++) {
            missed += new FabricRounds().run(args[i], rounds, Path.of(args[1]), Boolean.parseBoolean(args[2]));
        }
        if (missed > 0 && Boolean.parseBoolean(args[3])) {
            System.out.printf("%nlimits missed: %d%n", missed);
            System.exit(1);
        }
    }

    private int nextPort() {
        while (true) {
            port = port >= 30_000 ? 20_000 : port + 1;
            try (ServerSocket free = new ServerSocket(port)) {
                return free.getLocalPort();
            } catch (final IOException ex) {
                continue;
            }
        }
    }

    /** Measures and prints; answers how many limits were missed. */
    private int run(final String provider, final int rounds, final Path binary, final boolean ucx)
        throws IOException, InterruptedException {
        final boolean shm = provider.equals("shm");
        final String address = shm ? "" : "127.0.0.1";
        final Path locks = Files.createTempDirectory("nrt4j-bench");
        final List<Contender> contenders = new ArrayList<>();
        contenders.add(Contender.c(binary, provider, address, false));
        contenders.add(Contender.nrt4j(provider, address, locks));
        if (!shm) {
            contenders.add(Contender.c(binary, provider, address, true));
            if (ucx) {
                contenders.add(Contender.ucx());
            }
            contenders.add(Contender.nio());
        }
        final Map<Contender, List<Map<Case, Double>>> figures = new LinkedHashMap<>();
        contenders.forEach(contender -> figures.put(contender, new ArrayList<>()));
        try {
            for (int round = 0; round < rounds; round++) {
                final List<Contender> order = new ArrayList<>(contenders);
                if (round % 2 == 1) {
                    Collections.reverse(order);
                }
                for (final Contender contender : order) {
                    figures.get(contender).add(contender.measure(this::nextPort));
                }
                System.err.printf("%s: round %d of %d%n", provider, round + 1, rounds);
            }
        } finally {
            try (Stream<Path> files = Files.walk(locks)) {
                files.sorted(Comparator.reverseOrder()).forEach(path -> path.toFile().delete());
            }
        }
        return print(provider, rounds, figures);
    }

    private static int print(final String provider, final int rounds, final Map<Contender, List<Map<Case, Double>>> figures) {
        final Contender ours = figures.keySet().stream().filter(contender -> contender.name().equals("nrt4j")).findFirst().orElseThrow();
        System.out.printf("%n%s: medians of %d alternating rounds, and of the paired ratios nrt4j : other with their range; "
            + "'best' is the ratio of the best rounds of each%n%n", provider, rounds);
        System.out.printf("%-28s %10s   %-22s %10s   %-24s %-7s %s%n", "", "nrt4j", "other", "", "ratio", "best", "limit");
        int missed = 0;
        for (final Case one : Case.ALL) {
            final double[] mine = of(figures.get(ours), one);
            for (final Contender other : figures.keySet()) {
                if (other != ours) {
                    final double[] theirs = of(figures.get(other), one);
                    final double[] ratios = new double[rounds];
                    Arrays.setAll(ratios, i -> mine[i] / theirs[i]);
                    final Limit limit = limit(provider, other.name(), one);
                    final double ratio = median(ratios);
                    System.out.printf(Locale.ROOT, "%-28s %10.2f   %-22s %10.2f   %6.3f %-17s %-7.3f %s%n", one, median(mine),
                        other.name(), median(theirs), ratio, String.format(Locale.ROOT, "(%.3f-%.3f)", min(ratios), max(ratios)),
                        best(one, mine) / best(one, theirs),
                        limit == null ? "" : limit.text() + (limit.isKept(ratio) ? "  kept" : "  MISSED"));
                    missed += limit == null || limit.isKept(ratio) ? 0 : 1;
                }
            }
        }
        return missed;
    }

    /** What the ratio of nrt4j to another is measured by; null for nothing. */
    private static Limit limit(final String provider, final String other, final Case one) {
        final boolean latency = one.window() == 0;
        return switch (other) {
            case "C" -> new Limit(latency, (provider.equals("shm") ? SHM_LIMITS : TCP_LIMITS)[Case.ALL.indexOf(one)]);
            case "jucx over tcp" -> one.sizeBytes() >= 4096 ? new Limit(latency, 1) : null;
            case "NIO, blocking" -> one.sizeBytes() <= 4096 ? new Limit(latency, 1) : null;
            default -> null;
        };
    }

    private static double[] of(final List<Map<Case, Double>> rounds, final Case one) {
        return rounds.stream().mapToDouble(round -> round.get(one)).toArray();
    }

    private static double median(final double[] values) {
        final double[] sorted = values.clone();
        Arrays.sort(sorted);
        final int middle = sorted.length / 2;
        return sorted.length % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
    }

    /** What a machine that moves the two processes about is least able to spoil. */
    private static double best(final Case one, final double[] values) {
        return one.window() == 0 ? min(values) : max(values);
    }

    private static double min(final double[] values) {
        return Arrays.stream(values).min().orElseThrow();
    }

    private static double max(final double[] values) {
        return Arrays.stream(values).max().orElseThrow();
    }
}
