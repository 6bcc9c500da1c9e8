package io.nrt4j.bench;

import java.util.List;

/**
 * One thing to measure.
 *
 * @param sizeBytes of a message.
 * @param window    0 for ping-pong, else the messages in flight.
 */
record Case(int sizeBytes, int window) {
    /** The rows of the table of limits. */
    static final List<Case> ALL =
        List.of(new Case(8, 0), new Case(4096, 0), new Case(65_536, 0), new Case(1 << 20, 0), new Case(1 << 20, 16));

    /** Round trips or windows; the same as {@code nrt4j perf} takes by itself. */
    int count() {
        return window == 0 ? (int) Math.max(200, Math.min(20_000, (256L << 20) / sizeBytes))
            : (int) Math.max(20, Math.min(2_000, (2L << 30) / sizeBytes / window));
    }

    /** As many before them. */
    int warmUp() {
        return window == 0 ? count() : Math.max(1, count() / 4);
    }

    /** What the JSON lines of all yardsticks begin with. */
    String key() {
        return "\"mode\":\"" + (window == 0 ? "pingpong" : "bandwidth") + "\",\"size\":" + sizeBytes + ",";
    }

    /** What the JSON lines call the figure. */
    String figure() {
        return window == 0 ? "median_us" : "mb_per_s";
    }

    @Override
    public String toString() {
        final String size = sizeBytes >= 1 << 20 ? (sizeBytes >> 20) + " MiB" : sizeBytes >= 1024 ? (sizeBytes >> 10) + " KiB" : sizeBytes + " B";
        return window == 0 ? "half round trip " + size + ", us" : "bandwidth " + size + " x " + window + ", MB/s";
    }
}
