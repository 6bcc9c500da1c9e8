package io.nrt4j.sendrecv;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Locale;
import org.openjdk.jmh.profile.GCProfiler;
import org.openjdk.jmh.results.Result;
import org.openjdk.jmh.results.RunResult;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.RunnerException;
import org.openjdk.jmh.runner.options.CommandLineOptionException;
import org.openjdk.jmh.runner.options.CommandLineOptions;
import org.openjdk.jmh.runner.options.Options;
import org.openjdk.jmh.runner.options.OptionsBuilder;

/**
 * Runs benchmarks and prints each beside its control: the method {@code control} of its class, or its own first parameter.
 * The spread of a ratio is the sum of the relative 99.9 % errors of both. Beside it stands the ratio of the best iterations,
 * which says more on a machine that has other things to do.
 */
public final class BenchmarkRunner {
    private BenchmarkRunner() {
    }

    /**
     * Runs what matches.
     *
     * @param args regular expression of the benchmarks, number of forks, and options of JMH; before them {@code --check} to end with
     *             exit code 1 when a limit is exceeded.
     * @throws CommandLineOptionException when an option of JMH is wrong.
     * @throws RunnerException            when a benchmark fails.
     */
    public static void main(final String[] args) throws CommandLineOptionException, RunnerException {
        final boolean check = args[0].equals("--check");
        final int first = check ? 1 : 0;
        final List<String> jmh = new ArrayList<>(List.of(args).subList(first + 2, args.length));
        final Options options = new OptionsBuilder()
            .parent(new CommandLineOptions(jmh.toArray(String[]::new)))
            .include(args[first])
            .forks(Integer.parseInt(args[first + 1]))
            .addProfiler(GCProfiler.class)
            .shouldFailOnError(true)
            .build();
        final Collection<RunResult> results = new Runner(options).run();
        print(results);
        if (check && !new BenchmarkLimits().hold(results)) {
            System.exit(1);
        }
    }

    private static void print(final Collection<RunResult> results) {
        System.out.println();
        System.out.printf("%-64s %12s %10s %12s %8s   %s%n",
            "benchmark", "ns/op", "+-", "best", "B/op", "ratio to its control");
        for (final RunResult result : results) {
            final RunResult control = controlOf(result, results);
            final Result<?> score = result.getPrimaryResult();
            final Result<?> allocated = result.getSecondaryResults().get("gc.alloc.rate.norm");
            System.out.printf(Locale.ROOT, "%-64s %12.1f %10.1f %12.1f %8.3f   %s%n",
                name(result), score.getScore(), score.getScoreError(), score.getStatistics().getMin(),
                allocated == null ? Double.NaN : allocated.getScore(), control == null ? "" : ratio(result, control));
        }
    }

    static String name(final RunResult result) {
        final String full = result.getParams().getBenchmark();
        final StringBuilder name = new StringBuilder(full.substring(full.lastIndexOf('.', full.lastIndexOf('.') - 1) + 1));
        for (final String key : result.getParams().getParamsKeys()) {
            name.append(' ').append(key).append('=').append(result.getParams().getParam(key));
        }
        return name.toString();
    }

    static RunResult controlOf(final RunResult result, final Collection<RunResult> results) {
        final String full = result.getParams().getBenchmark();
        final String control = full.substring(0, full.lastIndexOf('.')) + ".control";
        for (final RunResult other : results) {
            final String name = other.getParams().getBenchmark();
            if (other != result && (name.equals(control) || name.equals(full))) {
                // Results are in the order of their parameters: the first of the same name is the one to compare with.
                return full.equals(control) || isBefore(result, other, results) ? null : other;
            }
        }
        return null;
    }

    private static boolean isBefore(final RunResult result, final RunResult other, final Collection<RunResult> results) {
        if (!result.getParams().getBenchmark().equals(other.getParams().getBenchmark())) {
            return false;
        }
        for (final RunResult each : results) {
            if (each == result) {
                return true;
            }
            if (each == other) {
                return false;
            }
        }
        return false;
    }

    /** Ratio of the best iterations: what else the machine has to do only ever adds time. */
    static double bestRatio(final RunResult result, final RunResult control) {
        return result.getPrimaryResult().getStatistics().getMin() / control.getPrimaryResult().getStatistics().getMin();
    }

    private static String ratio(final RunResult result, final RunResult control) {
        final Result<?> mine = result.getPrimaryResult();
        final Result<?> other = control.getPrimaryResult();
        final double ratio = mine.getScore() / other.getScore();
        final double spread = ratio * (mine.getScoreError() / mine.getScore() + other.getScoreError() / other.getScore());
        final double best = bestRatio(result, control);
        return String.format(Locale.ROOT, "%.3f +- %.3f, best %.3f, of %s", ratio, spread, best, name(control));
    }
}
