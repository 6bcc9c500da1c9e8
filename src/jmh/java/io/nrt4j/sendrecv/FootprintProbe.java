package io.nrt4j.sendrecv;

import com.sun.management.OperatingSystemMXBean;
import io.nrt4j.NrtStatus;
import io.nrt4j.NrtTensor;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadInfo;
import java.lang.management.ThreadMXBean;
import java.util.Locale;
import java.util.concurrent.TimeUnit;

/**
 * What many idle pairs cost, and what waiting for an absent peer costs. Not a JMH benchmark: it prints figures.
 *
 * <p>Run with {@code -Xmx512m}, see {@code scripts/bench.sh --footprint}.
 */
public final class FootprintProbe {
    private static final int LNCS = 16;
    private static final int PAIRS_PER_LNC = 128;
    private static final int SECONDS = 30;
    /** Per cent of a core that the engines' threads may use: "none that can be measured" with room for noise, and the limit of waiting. */
    private static final double MAX_IDLE_PERCENT = 0.5;
    private static final double MAX_WAITING_PERCENT = 2.0;

    private int exceeded;

    private FootprintProbe() {
    }

    /**
     * Measures.
     *
     * @param args seconds to watch, 30 by default; before them {@code --check} to end with exit code 1 when a limit is exceeded.
     * @throws InterruptedException when it is stopped.
     */
    public static void main(final String[] args) throws InterruptedException {
        final boolean check = args.length > 0 && args[0].equals("--check");
        final int first = check ? 1 : 0;
        final int seconds = args.length > first ? Integer.parseInt(args[first]) : SECONDS;
        System.out.printf("heap limit %d MB, %d processors%n", Runtime.getRuntime().maxMemory() >> 20,
            Runtime.getRuntime().availableProcessors());
        final FootprintProbe probe = new FootprintProbe();
        probe.idlePairs(seconds);
        probe.waiting(seconds);
        if (check && probe.exceeded > 0) {
            System.out.printf("EXCEEDED: %d of the limits%n", probe.exceeded);
            System.exit(1);
        }
    }

    private void idlePairs(final int seconds) throws InterruptedException {
        final long startNs = System.nanoTime();
        try (LoopbackPairs pairs = LoopbackPairs.open(LNCS, PAIRS_PER_LNC);
            NrtTensor from = NrtTensor.allocate(8);
            NrtTensor to = NrtTensor.allocate(8)) {
            System.out.printf(Locale.ROOT, "%d pairs on %d LNCs at each end connected in %.2f s%n", pairs.count(), LNCS,
                (System.nanoTime() - startNs) / 1e9);
            pairs.warm(from, to, 8);
            System.out.printf("heap in use after a collection: %d MB%n", heapMegabytes());
            TimeUnit.SECONDS.sleep(2); // lets the compiler and the collector finish what the start left them
            report("idle, " + pairs.count() + " pairs", seconds, MAX_IDLE_PERCENT);
        }
    }

    private void waiting(final int seconds) throws InterruptedException {
        try (LoopbackPairs one = LoopbackPairs.open(1, 1)) {
            final NrtAsyncSendRecv engine = one.sender();
            final SendRecvComm absent = new SendRecvComm();
            // Nobody listens at this address of the loopback network: refused, again and again.
            check(engine.connect("127.0.0.3", 5, 0, absent), engine);
            TimeUnit.SECONDS.sleep(2);
            report("one communicator waits for a host that is not there", seconds, MAX_WAITING_PERCENT);
            check(engine.testComm(absent), engine);
            final SendRecvComm silent = new SendRecvComm();
            check(engine.connect("127.0.0.1", 99, 0, silent), engine);
            TimeUnit.SECONDS.sleep(2);
            report("and one for an LNC that does not accept", seconds, MAX_WAITING_PERCENT);
        }
    }

    private static void check(final NrtStatus status, final NrtAsyncSendRecv engine) {
        if (status != NrtStatus.SUCCESS) {
            throw new IllegalStateException(status + ": " + engine.lastError());
        }
    }

    private void report(final String what, final int seconds, final double maxPercent) throws InterruptedException {
        final OperatingSystemMXBean system = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        final long enginesNs = engineThreadsNs();
        final long cpuNs = system.getProcessCpuTime();
        final long startNs = System.nanoTime();
        TimeUnit.SECONDS.sleep(seconds);
        final long usedNs = system.getProcessCpuTime() - cpuNs;
        final long passedNs = System.nanoTime() - startNs;
        final long byEnginesNs = engineThreadsNs() - enginesNs;
        final double percent = 100.0 * byEnginesNs / passedNs;
        System.out.printf(Locale.ROOT, "%-53s %8.1f ms of processor time in %d s, %.3f %% of a core; engines' threads %.1f ms, %.3f %%",
            what, usedNs / 1e6, seconds, 100.0 * usedNs / passedNs, byEnginesNs / 1e6, percent);
        System.out.printf(Locale.ROOT, " (%s than %.1f %%)%n", percent < maxPercent ? "OK: less" : "EXCEEDED: not less", maxPercent);
        exceeded += percent < maxPercent ? 0 : 1;
    }

    /** Processor time of the engines' own threads, without the compiler's and the collector's. */
    private static long engineThreadsNs() {
        final ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        long sumNs = 0;
        for (final long id : threads.getAllThreadIds()) {
            final ThreadInfo info = threads.getThreadInfo(id);
            if (info != null && info.getThreadName().startsWith("nrt4j-")) {
                sumNs += Math.max(0, threads.getThreadCpuTime(id));
            }
        }
        return sumNs;
    }

    private static long heapMegabytes() throws InterruptedException {
        System.gc();
        TimeUnit.MILLISECONDS.sleep(200);
        System.gc();
        return Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory() >> 20;
    }
}
