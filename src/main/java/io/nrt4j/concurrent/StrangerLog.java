package io.nrt4j.concurrent;

import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;

/**
 * Says at most once a second that something is not as it should be, and how often it was not said.
 *
 * <p>Threads: one at a time.
 */
public final class StrangerLog {
    private static final long INTERVAL_NS = TimeUnit.SECONDS.toNanos(1);

    private final NanoClock clock;
    private final Consumer<String> sink;
    private boolean said;
    private long saidNs;
    private long suppressed;

    /**
     * A log that has said nothing yet.
     *
     * @param clock measures the second.
     * @param sink  takes what is said.
     */
    public StrangerLog(final NanoClock clock, final Consumer<String> sink) {
        this.clock = clock;
        this.sink = sink;
    }

    /**
     * Says it, or counts it.
     *
     * @param text one line.
     */
    public void say(final String text) {
        final long nowNs = clock.nanoTime();
        if (said && nowNs - saidNs < INTERVAL_NS) {
            suppressed++;
            return;
        }
        sink.accept(suppressed == 0 ? text : text + " (and " + suppressed + " like it before)");
        said = true;
        saidNs = nowNs;
        suppressed = 0;
    }
}
