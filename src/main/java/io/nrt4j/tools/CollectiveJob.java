package io.nrt4j.tools;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.net.NetTransport;
import io.nrt4j.proxy.HostBarrier;
import io.nrt4j.proxy.ProcessBarrier;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.IntConsumer;
import java.util.function.IntFunction;

/** Runs a collective a number of times and measures it: all ranks in this process, or one of them. */
final class CollectiveJob {
    private final CollectiveRank.Job job;
    private final int iterations;
    private final IntFunction<NetTransport> transports;
    private final IntConsumer onConnected;

    /**
     * Makes a job.
     *
     * @param job         what is run.
     * @param iterations  how often, at least 1.
     * @param transports  makes each rank's transport, which the job closes.
     * @param onConnected told of each rank that is connected, on a thread of its own.
     */
    CollectiveJob(
        final CollectiveRank.Job job, final int iterations, final IntFunction<NetTransport> transports, final IntConsumer onConnected) {
        this.job = job;
        this.iterations = iterations;
        this.transports = transports;
        this.onConnected = onConnected;
    }

    /**
     * Runs one rank, the others being other processes.
     *
     * @return nanoseconds of each iteration.
     */
    long[] runOne(final int rank) {
        return runRank(rank, null, new RankGate(1, job.limit()));
    }

    /**
     * Runs every rank in this process.
     *
     * @return nanoseconds of each iteration, of the rank that took longest.
     * @throws NrtException of the first rank that failed; what the others ended with is suppressed in it.
     */
    long[] runAll() {
        final ProcessBarrier barrier = new ProcessBarrier(job.ranks());
        final RankGate gate = new RankGate(job.ranks(), job.limit());
        final ExecutorService runtimes = Executors.newFixedThreadPool(job.ranks(), work -> {
            final Thread thread = new Thread(work, "collective-runtime");
            thread.setDaemon(true);
            return thread;
        });
        try {
            final List<Future<long[]>> results = new ArrayList<>();
            for (int rank = 0; rank < job.ranks(); rank++) {
                final int mine = rank;
                results.add(runtimes.submit(() -> runRank(mine, barrier.of(mine), gate)));
            }
            return collect(results);
        } finally {
            runtimes.shutdownNow();
        }
    }

    private long[] collect(final List<Future<long[]>> results) {
        final long[] slowest = new long[iterations];
        NrtException failure = null;
        for (final Future<long[]> result : results) {
            try {
                final long[] times = result.get(3 * job.limit().toMillis() + 10_000, TimeUnit.MILLISECONDS);
                Arrays.setAll(slowest, i -> Math.max(slowest[i], times[i]));
            } catch (final ExecutionException ex) {
                failure = merge(failure, ex.getCause());
            } catch (final TimeoutException | InterruptedException ex) {
                failure = merge(failure, new NrtException(NrtStatus.TIMEOUT, "a rank did not end", ex));
            }
        }
        if (failure != null) {
            throw failure;
        }
        return slowest;
    }

    private static NrtException merge(final NrtException first, final Throwable next) {
        final NrtException failure = next instanceof NrtException known ? known
            : new NrtException(NrtStatus.FAILURE, "a rank failed: " + next, next);
        if (first == null) {
            return failure;
        }
        first.addSuppressed(failure);
        return first;
    }

    private long[] runRank(final int rank, final HostBarrier barrier, final RankGate gate) {
        boolean done = false;
        try {
            final long[] times = runIterations(rank, barrier, gate);
            done = true;
            return times;
        } finally {
            if (!done) {
                gate.fail();
            }
        }
    }

    private long[] runIterations(final int rank, final HostBarrier barrier, final RankGate gate) {
        final long[] times = new long[iterations];
        try (NetTransport transport = transports.apply(rank);
            CollectiveRank member = new CollectiveRank(job, rank, transport, barrier, gate)) {
            onConnected.accept(rank);
            for (int i = 0; i < iterations; i++) {
                member.prepare();
                gate.await();
                final long startNs = System.nanoTime();
                member.run();
                times[i] = System.nanoTime() - startNs;
                member.check();
            }
            gate.await();
        } catch (final NrtException ex) {
            final String who = "rank " + rank;
            throw ex.getMessage().startsWith(who) ? ex : new NrtException(ex.status(), who + ": " + ex.getMessage(), ex);
        }
        return times;
    }
}
