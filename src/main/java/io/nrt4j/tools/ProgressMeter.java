package io.nrt4j.tools;

import java.io.PrintWriter;
import java.lang.reflect.Method;
import java.util.Locale;
import java.util.concurrent.TimeUnit;

/**
 * Shows how far a transfer is: a bar on a terminal, elsewhere a plain line at most once a second.
 *
 * <p>Threads: one.
 */
final class ProgressMeter {
    private static final int BAR_WIDTH = 40;
    private static final long BAR_INTERVAL_NS = TimeUnit.MILLISECONDS.toNanos(100);
    private static final long LINE_INTERVAL_NS = TimeUnit.SECONDS.toNanos(1);

    private final PrintWriter out;
    private final boolean terminal;
    private final long intervalNs;
    private long totalBytes;
    private long movedBytes;
    private long startNs;
    private long lastShownNs;
    private boolean shown;

    ProgressMeter(final PrintWriter out, final boolean terminal) {
        this.out = out;
        this.terminal = terminal;
        intervalNs = terminal ? BAR_INTERVAL_NS : LINE_INTERVAL_NS;
    }

    /** Whether a person watches. */
    static boolean isTerminal() {
        final java.io.Console console = System.console();
        if (console == null || "dumb".equals(System.getenv("TERM"))) {
            return false;
        }
        try {
            // Since Java 22 there is a console even where there is no terminal, and a method that tells.
            final Method tells = java.io.Console.class.getMethod("isTerminal");
            return (boolean) tells.invoke(console);
        } catch (final NoSuchMethodException ex) {
            return true;
        } catch (final ReflectiveOperationException ex) {
            return false;
        }
    }

    void start(final long bytes) {
        totalBytes = bytes;
        startNs = System.nanoTime();
        lastShownNs = startNs;
    }

    void moved(final long bytes) {
        movedBytes += bytes;
        final long nowNs = System.nanoTime();
        if (nowNs - lastShownNs >= intervalNs) {
            lastShownNs = nowNs;
            show(nowNs);
        }
    }

    /** Removes the bar. */
    void end() {
        if (terminal && shown) {
            out.print("\r" + " ".repeat(BAR_WIDTH + 50) + "\r");
            out.flush();
        }
    }

    private void show(final long nowNs) {
        shown = true;
        final double part = totalBytes == 0 ? 1 : (double) movedBytes / totalBytes;
        final double gigabytesPerSecond = movedBytes / (double) Math.max(1, nowNs - startNs);
        final String figures = String.format(Locale.ROOT, "%3.0f %%  %,d of %,d MB  %.2f GB/s",
            100 * part, movedBytes / 1_000_000, totalBytes / 1_000_000, gigabytesPerSecond);
        if (terminal) {
            final int filled = (int) (part * BAR_WIDTH);
            out.print("\r[" + "#".repeat(filled) + ".".repeat(BAR_WIDTH - filled) + "] " + figures + "  ");
        } else {
            out.println(figures);
        }
        out.flush();
    }
}
