package io.nrt4j.proxy;

import io.nrt4j.NrtConfig;
import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.NrtTensor;
import io.nrt4j.net.NativeWord;
import io.nrt4j.net.NetAddrMark;
import io.nrt4j.net.NetDestAddr;
import io.nrt4j.net.NetOpsInfo;
import io.nrt4j.net.NetSrcAddr;
import io.nrt4j.net.libnccom.LibnccomNetworkProxy;
import java.time.Duration;
import java.util.Random;

/** A rank of a ring all-gather whose network phase the driver runs over libnccom: one block for each step, slices in each. */
final class NccomRank implements AutoCloseable {
    static final int SLICE = 1000;
    static final int SLICES = 150;
    static final int CHUNK = SLICE * SLICES;
    private static final Duration LIMIT = Duration.ofSeconds(90);

    private final int rank;
    private final int ranks;
    private final LibnccomNetworkProxy proxy;
    private final long networkComm;
    private final GlobalComm comm;
    private final NrtTensor data;
    private final NrtTensor words = NrtTensor.allocate(64);
    private final EncContext context;

    NccomRank(
        final NrtConfig config, final SharedProxyQueues registry, final int rank, final int ranks, final String rootId,
        final HostBarrier barrier) {
        this.rank = rank;
        this.ranks = ranks;
        proxy = new LibnccomNetworkProxy(config);
        networkComm = proxy.openComm(rank, ranks, rootId, 0);
        data = NrtTensor.allocate((long) ranks * CHUNK);
        data.write((long) rank * CHUNK, chunk(rank));
        final long registration = proxy.regMr(networkComm, data.address(), data.sizeBytes());
        comm = GlobalComm.setup(registry, config, rank, rank, proxy, networkComm, barrier);
        trigger().store(DeviceTrigger.BLOCKED);
        final EncContext.Builder builder = EncContext.builder(comm).trigger(new long[] {words.address()}, 1);
        for (int step = 0; step < ranks - 1; step++) {
            builder.block(0, step, step(step, registration));
        }
        context = builder.build();
    }

    private FifoSet step(final int step, final long registration) {
        final int sent = Math.floorMod(rank - step, ranks);
        final int received = Math.floorMod(rank - step - 1, ranks);
        final FifoSet.Builder builder = FifoSet.builder().operation(NetOpsInfo.builder().entries(SLICES, SLICES)
            .completeSemaphores(words.address() + 4, words.address() + 8).initialSendCredits(16).build());
        for (int i = 0; i < SLICES; i++) {
            final NetAddrMark mark = i == SLICES - 1 ? NetAddrMark.NET_OP_COMPLETE : NetAddrMark.NET_TRANSFER;
            builder.send(NetSrcAddr.send(0, data.address() + (long) sent * CHUNK + (long) i * SLICE, registration, SLICE, mark,
                (rank + 1) % ranks));
            builder.receive(NetDestAddr.receive(0, data.address() + (long) received * CHUNK + (long) i * SLICE, registration, SLICE,
                mark, Math.floorMod(rank - 1, ranks)));
        }
        return builder.build();
    }

    private static byte[] chunk(final int of) {
        final byte[] bytes = new byte[CHUNK];
        new Random(of).nextBytes(bytes);
        return bytes;
    }

    private NativeWord trigger() {
        return NativeWord.at(words.address());
    }

    /** Hands the execution to the driver, which waits for the device. */
    void enqueue(final long execId) {
        trigger().store(DeviceTrigger.BLOCKED);
        ProxyTasks.enqueueProxyTasks(context, execId);
    }

    /** Plays the device. */
    void release() {
        trigger().store(1);
    }

    NrtStatus consumeNetwork(final TaskStatus status) {
        return ProxyTasks.consumeTaskStatus(context, TaskType.NETWORK, status, LIMIT, LIMIT);
    }

    NrtStatus pollNetwork(final TaskStatus status) {
        return ProxyTasks.checkNetworkTaskStatus(context, status);
    }

    NrtStatus consumeBarrier(final TaskStatus status) {
        return ProxyTasks.consumeTaskStatus(context, TaskType.BARRIER, status, LIMIT, LIMIT);
    }

    /** Checks every byte and the semaphores. */
    void check() {
        for (int of = 0; of < ranks; of++) {
            if (!java.util.Arrays.equals(chunk(of), data.read((long) of * CHUNK, CHUNK))) {
                throw new NrtException(NrtStatus.FAILURE, "rank " + rank + " has not the chunk of rank " + of);
            }
        }
        for (int i = 1; i <= 2; i++) {
            final int word = NativeWord.at(words.address() + 4L * i).load();
            if (word != 1) {
                throw new NrtException(NrtStatus.FAILURE, "rank " + rank + ": semaphore " + i + " is " + word);
            }
        }
    }

    @Override
    public void close() {
        comm.close();
        proxy.close();
        data.close();
        words.close();
    }
}
