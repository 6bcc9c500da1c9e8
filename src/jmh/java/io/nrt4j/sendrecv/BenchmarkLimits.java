package io.nrt4j.sendrecv;

import java.util.Collection;
import java.util.List;
import java.util.Locale;
import org.openjdk.jmh.results.Result;
import org.openjdk.jmh.results.RunResult;

/** What the hot path may cost: time by the ratio of its best iteration to its control's best, memory in bytes per operation. */
final class BenchmarkLimits {
    private static final double MAX_BYTES_PER_OPERATION = 1.0; // less than one is the profiler's noise

    private static final List<Limit> LIMITS = List.of(
        new Limit(SmallMessageBenchmark.class.getSimpleName() + ".exchange", 3.0),
        new Limit(LargeMessageBenchmark.class.getSimpleName() + ".exchange", 1.05));

    /** Of one benchmark. */
    private record Limit(String benchmark, double maxRatio) {
    }

    /**
     * Looks at results and prints a line for each limit.
     *
     * @return false if a limit is exceeded, or if none was measured.
     */
    boolean hold(final Collection<RunResult> results) {
        System.out.println();
        boolean hold = true;
        int measured = 0;
        for (final Limit limit : LIMITS) {
            final RunResult result = find(limit, results);
            final RunResult control = result == null ? null : BenchmarkRunner.controlOf(result, results);
            if (control == null) {
                System.out.printf("NOT MEASURED: %s%n", limit.benchmark());
            } else {
                measured++;
                hold &= holds(limit, result, control);
            }
        }
        return hold && measured > 0;
    }

    private static RunResult find(final Limit limit, final Collection<RunResult> results) {
        for (final RunResult result : results) {
            if (BenchmarkRunner.name(result).equals(limit.benchmark())) {
                return result;
            }
        }
        return null;
    }

    private static boolean holds(final Limit limit, final RunResult result, final RunResult control) {
        final double ratio = BenchmarkRunner.bestRatio(result, control);
        final Result<?> allocated = result.getSecondaryResults().get("gc.alloc.rate.norm");
        final double bytes = allocated == null ? Double.NaN : allocated.getScore();
        final boolean holds = ratio <= limit.maxRatio() && bytes < MAX_BYTES_PER_OPERATION; // not a number does not
        System.out.printf(Locale.ROOT, "%s: %s: %.3f times its control (at most %.2f), %.3f B/op (less than %.0f)%n",
            holds ? "OK" : "EXCEEDED", limit.benchmark(), ratio, limit.maxRatio(), bytes, MAX_BYTES_PER_OPERATION);
        return holds;
    }
}
