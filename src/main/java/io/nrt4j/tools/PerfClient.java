package io.nrt4j.tools;

import io.nrt4j.NrtTensor;
import io.nrt4j.sendrecv.SendRecvRequest;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.List;
import java.util.function.Consumer;
import org.HdrHistogram.Histogram;

/**
 * The measuring end: tells the listening end each measurement, makes it, and hands the figures on.
 *
 * <p>Threads: {@link #run()} by one thread, once.
 */
final class PerfClient extends PerfEnd {
    private static final long MAX_NS = 3_600_000_000_000L;
    private static final int DIGITS = 3;
    private static final int TOKEN_BYTES = 8;

    private final List<PerfPlan> plans;
    private final long warmUpNs;
    private final Consumer<PerfResult> results;

    PerfClient(final PeerLink link, final List<PerfPlan> plans, final long warmUpNs, final Consumer<PerfResult> results) {
        super(link);
        this.plans = plans;
        this.warmUpNs = warmUpNs;
        this.results = results;
    }

    /** Connects, measures, and answers the number of measurements. */
    int run() {
        try (link) {
            link.connect();
            for (final PerfPlan plan : plans) {
                final long startNs = System.nanoTime();
                while (System.nanoTime() - startNs < warmUpNs) {
                    measure(plan.sample());
                }
                results.accept(measure(plan));
            }
            tell(PerfPlan.end().encode());
            awaitReady();
            link.closeInOrder();
            return plans.size();
        }
    }

    private PerfResult measure(final PerfPlan plan) {
        tell(plan.encode());
        return switch (plan.mode()) {
            case PING_PONG -> pingPong(plan);
            case BANDWIDTH -> bandwidth(plan);
            case KV -> kv(plan);
            default -> throw new IllegalStateException(plan.toString());
        };
    }

    private void awaitReady() {
        hear(1, "the peer to be ready");
    }

    private PerfResult pingPong(final PerfPlan plan) {
        final long size = plan.sizeBytes();
        final Histogram trips = new Histogram(MAX_NS, DIGITS);
        try (NrtTensor out = NrtTensor.allocate(size); NrtTensor in = NrtTensor.allocate(size)) {
            awaitReady();
            link.receive(in, 0, size, receiving);
            roundTrips(plan.warmUp(), false, size, out, in, trips);
            trips.reset();
            final long allocatedBefore = Allocation.ofThisThread();
            roundTrips(plan.count(), true, size, out, in, trips);
            final long allocated = Allocation.ofThisThread() - allocatedBefore;
            return new PerfResult.Latency(size, plan.count(), trips, (double) allocated / plan.count());
        }
    }

    /** Half round trips are round trips here; the last of all posts no receive behind it. */
    private void roundTrips(
        final long count, final boolean last, final long size, final NrtTensor out, final NrtTensor in, final Histogram trips) {
        for (long i = 1; i <= count; i++) {
            final long startNs = System.nanoTime();
            link.send(out, 0, size, sending);
            finish(receiving, size);
            if (i < count || !last) {
                link.receive(in, 0, size, receiving);
            }
            finish(sending, size);
            trips.recordValue(Math.min(MAX_NS, System.nanoTime() - startNs));
        }
    }

    private PerfResult bandwidth(final PerfPlan plan) {
        final long size = plan.sizeBytes();
        final int window = plan.window();
        final long total = (plan.warmUp() + plan.count()) * window;
        final SendRecvRequest[] requests = requests(window);
        try (NrtTensor out = NrtTensor.allocate(size * window); NrtTensor token = NrtTensor.allocate(TOKEN_BYTES)) {
            awaitReady();
            link.receive(token, 0, TOKEN_BYTES, receiving);
            long startNs = 0;
            long allocatedBefore = 0;
            for (long i = 0; i < total; i++) {
                final int slot = (int) (i % window);
                if (i >= window) {
                    finish(requests[slot], size);
                }
                if (i == plan.warmUp() * window) {
                    allocatedBefore = Allocation.ofThisThread();
                    startNs = System.nanoTime();
                }
                link.send(out, slot * size, size, requests[slot]);
            }
            for (long i = total; i < total + window; i++) {
                finish(requests[(int) (i % window)], size);
            }
            finish(receiving, TOKEN_BYTES);
            final long elapsedNs = System.nanoTime() - startNs;
            // Before the result, whose class is loaded when it is made for the first time.
            final long allocated = Allocation.ofThisThread() - allocatedBefore;
            final long messages = plan.count() * window;
            return new PerfResult.Bandwidth(size, window, messages, elapsedNs, (double) allocated / messages);
        }
    }

    private PerfResult kv(final PerfPlan plan) {
        final SendRecvRequest[] requests = requests(plan.window());
        final long[] elapsedNs = new long[(int) plan.count()];
        final NrtTensor[] layers = layers(plan);
        try (NrtTensor token = NrtTensor.allocate(TOKEN_BYTES)) {
            for (long round = 0; round < plan.warmUp() + plan.count(); round++) {
                stamp(plan, layers, round);
                awaitReady();
                link.receive(token, 0, TOKEN_BYTES, receiving);
                final long startNs = System.nanoTime();
                handOver(plan, layers, requests);
                finish(receiving, TOKEN_BYTES);
                if (round >= plan.warmUp()) {
                    elapsedNs[(int) (round - plan.warmUp())] = System.nanoTime() - startNs;
                }
            }
            Arrays.sort(elapsedNs);
            return new PerfResult.Kv(plan, elapsedNs[elapsedNs.length / 2], elapsedNs[0], elapsedNs[elapsedNs.length - 1]);
        } finally {
            close(layers);
        }
    }

    /** Layer after layer, block after block, so many in flight. */
    private void handOver(final PerfPlan plan, final NrtTensor[] layers, final SendRecvRequest[] requests) {
        final int total = plan.layers() * plan.blocks();
        final int window = plan.window();
        for (int i = 0; i < total; i++) {
            if (i >= window) {
                finish(requests[i % window], plan.sizeBytes());
            }
            link.send(layers[i / plan.blocks()], place(plan, i % plan.blocks(), false), plan.sizeBytes(), requests[i % window]);
        }
        for (int i = Math.max(0, total - window); i < total; i++) {
            finish(requests[i % window], plan.sizeBytes());
        }
    }

    private static void stamp(final PerfPlan plan, final NrtTensor[] layers, final long round) {
        for (int layer = 0; layer < plan.layers(); layer++) {
            for (int block = 0; block < plan.blocks(); block++) {
                final byte[] word = ByteBuffer.allocate(Long.BYTES).order(ByteOrder.LITTLE_ENDIAN)
                    .putLong(stamp(layer, block, round)).array();
                final long at = place(plan, block, false);
                layers[layer].write(at, word);
                layers[layer].write(at + plan.sizeBytes() - Long.BYTES, word);
            }
        }
    }
}
