package io.nrt4j.tools;

import java.util.Locale;
import org.HdrHistogram.Histogram;

/** Figures of one measurement, for people and for machines. */
interface PerfResult {
    /** What stands above the rows of this kind. */
    String head();

    /** One row of the table. */
    String row();

    /** One line of JSON, without the braces. */
    String json();

    /** Numbers with a point, whatever the locale. */
    static String format(final String format, final Object... values) {
        return String.format(Locale.ROOT, format, values);
    }

    /**
     * Half round trips.
     *
     * @param sizeBytes of a message.
     * @param count     round trips.
     * @param trips     whole round trips in nanoseconds.
     * @param allocated bytes of heap for each round trip, by the measuring thread.
     */
    record Latency(long sizeBytes, long count, Histogram trips, double allocated) implements PerfResult {
        private double halfUs(final double percentile) {
            return trips.getValueAtPercentile(percentile) / 2e3;
        }

        @Override
        public String head() {
            return format("%10s %12s %12s %12s %12s %10s", "ping-pong", "median us", "p99 us", "least us", "round trips", "heap B/op");
        }

        @Override
        public String row() {
            return format("%10s %12.2f %12.2f %12.2f %12d %10.2f",
                Sizes.text(sizeBytes), halfUs(50), halfUs(99), trips.getMinValue() / 2e3, count, allocated);
        }

        @Override
        public String json() {
            return format("\"mode\":\"pingpong\",\"size\":%d,\"median_us\":%.3f,\"p99_us\":%.3f,\"min_us\":%.3f,\"round_trips\":%d,"
                + "\"allocated\":%.3f", sizeBytes, halfUs(50), halfUs(99), trips.getMinValue() / 2e3, count, allocated);
        }
    }

    /**
     * Messages that follow one another.
     *
     * @param sizeBytes of a message.
     * @param window    in flight.
     * @param messages  measured.
     * @param elapsedNs from the first post to the peer's word that all have arrived.
     * @param allocated bytes of heap for each message, by the measuring thread.
     */
    record Bandwidth(long sizeBytes, int window, long messages, long elapsedNs, double allocated) implements PerfResult {
        private double megabytesPerSecond() {
            return sizeBytes * messages / (elapsedNs / 1e3);
        }

        @Override
        public String head() {
            return format("%10s %12s %12s %12s %12s %10s", "bandwidth", "MB/s", "window", "messages", "seconds", "heap B/op");
        }

        @Override
        public String row() {
            return format("%10s %12.1f %12d %12d %12.3f %10.2f",
                Sizes.text(sizeBytes), megabytesPerSecond(), window, messages, elapsedNs / 1e9, allocated);
        }

        @Override
        public String json() {
            return format("\"mode\":\"bandwidth\",\"size\":%d,\"window\":%d,\"mb_per_s\":%.1f,\"messages\":%d,\"allocated\":%.3f",
                sizeBytes, window, megabytesPerSecond(), messages, allocated);
        }
    }

    /**
     * A KV cache that was handed over, some times.
     *
     * @param plan     how.
     * @param medianNs of the rounds: from the first post to the peer's word that its flush has returned.
     * @param leastNs  the same of the fastest round.
     * @param mostNs   the same of the slowest round.
     */
    record Kv(PerfPlan plan, long medianNs, long leastNs, long mostNs) implements PerfResult {
        private double gigabytesPerSecond() {
            return (double) plan.memoryBytes() / medianNs;
        }

        private double blocksPerSecond() {
            return (double) plan.layers() * plan.blocks() / (medianNs / 1e9);
        }

        @Override
        public String head() {
            return format("%10s %12s %12s %12s %12s %10s   %s",
                "KV block", "GB/s", "blocks/s", "last block", "least..most", "in flight", "(median of the rounds; ms to the last block)");
        }

        @Override
        public String row() {
            return format("%10s %12.3f %12.0f %12.2f %12s %10d   %d layers x %d blocks, %s, %d rounds", Sizes.text(plan.sizeBytes()),
                gigabytesPerSecond(), blocksPerSecond(), medianNs / 1e6, format("%.1f..%.1f", leastNs / 1e6, mostNs / 1e6),
                plan.window(), plan.layers(), plan.blocks(), Sizes.text(plan.memoryBytes()), plan.count());
        }

        @Override
        public String json() {
            return format("\"mode\":\"kv\",\"size\":%d,\"layers\":%d,\"blocks\":%d,\"window\":%d,\"rounds\":%d,\"gb_per_s\":%.4f,"
                + "\"blocks_per_s\":%.1f,\"last_block_ms\":%.3f,\"last_block_min_ms\":%.3f,\"last_block_max_ms\":%.3f",
                plan.sizeBytes(), plan.layers(), plan.blocks(), plan.window(), plan.count(), gigabytesPerSecond(), blocksPerSecond(),
                medianNs / 1e6, leastNs / 1e6, mostNs / 1e6);
        }
    }
}
