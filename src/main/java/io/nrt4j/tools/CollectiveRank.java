package io.nrt4j.tools;

import io.nrt4j.NrtConfig;
import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.NrtTensor;
import io.nrt4j.net.NetAddrMark;
import io.nrt4j.net.NetDestAddr;
import io.nrt4j.net.NetOpsInfo;
import io.nrt4j.net.NetSrcAddr;
import io.nrt4j.net.NetTransport;
import io.nrt4j.net.opfifo.OpFifoProxy;
import io.nrt4j.net.opfifo.PeerLinks;
import io.nrt4j.proxy.EncContext;
import io.nrt4j.proxy.FifoSet;
import io.nrt4j.proxy.GlobalComm;
import io.nrt4j.proxy.HostBarrier;
import io.nrt4j.proxy.NetBarrier;
import io.nrt4j.proxy.ProxyTasks;
import io.nrt4j.proxy.SharedProxyQueues;
import io.nrt4j.proxy.TaskStatus;
import io.nrt4j.proxy.TaskType;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One rank of a collective: its memory, its links, its core, and a context for each step of the ring.
 *
 * <p>All the steps of an operation are handed to the driver at once, closed by their triggers. The core's thread opens a step's
 * trigger when the step before has sent and received and, where it reduces, been added; the calling thread takes the outcomes.
 *
 * <p>Threads: one thread calls; the core's thread runs within {@link #run}.
 */
final class CollectiveRank implements AutoCloseable {
    private static final int STREAM = 0;
    private static final int SEND_SEMAPHORE = 0;
    private static final int RECV_SEMAPHORE = 1;
    private static final int SEMAPHORES = 2;
    private static final int ROUNDS = 1;
    private static final Logger LOG = LoggerFactory.getLogger(CollectiveRank.class);
    private static final long CORE_LIMIT_NS = TimeUnit.SECONDS.toNanos(10);
    private static final Duration WATCHDOG = Duration.ofSeconds(10);

    private final CollectiveKind kind;
    private final int rank;
    private final int ranks;
    private final byte[] input;
    private final int sliceBytes;
    private final Duration limit;
    private final RankLinks links;
    private final OpFifoProxy proxy;
    private final long networkComm;
    private GlobalComm comm;
    private final NrtTensor data;
    private final NrtTensor received;
    private final SoftwareCore core;
    private final EncContext[] steps;
    private long execId;

    /** What all ranks of a job have in common. */
    record Job(
        CollectiveKind kind, int ranks, byte[] input, int sliceBytes, NrtConfig config, SharedProxyQueues registry, Meeting meeting,
        Duration limit) {
    }

    /**
     * Connects a rank and prepares its steps.
     *
     * @param barrier this rank's side of a barrier within the process, or null for one over the transport.
     * @param gate    tells when another rank has failed, who will not connect any more.
     */
    CollectiveRank(final Job job, final int rank, final NetTransport transport, final HostBarrier barrier, final RankGate gate) {
        this.rank = rank;
        kind = job.kind();
        ranks = job.ranks();
        input = job.input();
        limit = job.limit();
        sliceBytes = (int) Math.min(job.sliceBytes(), transport.maxMessageBytes());
        links = RankLinks.connect(transport, rank, ranks, job.meeting(), barrier == null, limit, gate);
        final int count = kind.steps(ranks);
        data = NrtTensor.allocate(Math.max(1, input.length));
        received = NrtTensor.allocate(Math.max(1, input.length / ranks + 1));
        core = new SoftwareCore(count, SEMAPHORES * count);
        proxy = new OpFifoProxy(transport, job.config());
        networkComm = proxy.openComm(new PeerLinks(ranks, 1)
            .sendTo(STREAM, next(), links.toNext())
            .receiveFrom(STREAM, previous(), links.fromPrevious()));
        steps = new EncContext[count];
        try {
            comm = GlobalComm.setup(job.registry(), job.config(), rank, rank, proxy, networkComm, barrier == null
                ? new NetBarrier(transport, rank, links.barrierSends(), links.barrierReceives()) : barrier);
            final long sendMr = transport.regMr(links.toNext(), data.address(), data.sizeBytes(), data.placement());
            final long recvMr = transport.regMr(links.fromPrevious(), data.address(), data.sizeBytes(), data.placement());
            final long partMr = transport.regMr(links.fromPrevious(), received.address(), received.sizeBytes(), received.placement());
            for (int step = 0; step < count; step++) {
                steps[step] = context(step, sendMr, recvMr, partMr);
            }
        } catch (final RuntimeException ex) {
            close();
            throw ex;
        }
    }

    private int next() {
        return (rank + 1) % ranks;
    }

    private int previous() {
        return (rank + ranks - 1) % ranks;
    }

    private EncContext context(final int step, final long sendMr, final long recvMr, final long partMr) {
        final int out = kind.sent(step, rank, ranks);
        final int in = kind.received(step, rank, ranks);
        final boolean reduces = kind.reduces(step, ranks);
        final long outLength = CollectiveKind.chunkLength(out, ranks, input.length);
        final long inLength = CollectiveKind.chunkLength(in, ranks, input.length);
        final FifoSet.Builder set = FifoSet.builder().operation(NetOpsInfo.builder()
            .basicBlockId(step)
            .entries(slices(outLength), slices(inLength))
            .completeSemaphores(core.semaphoreAddress(semaphore(step, SEND_SEMAPHORE)),
                core.semaphoreAddress(semaphore(step, RECV_SEMAPHORE)))
            .build());
        final long outAddress = data.address() + CollectiveKind.chunkStart(out, ranks, input.length);
        for (int slice = 0; slice < slices(outLength); slice++) {
            set.send(NetSrcAddr.send(0, outAddress + offset(slice), sendMr, length(slice, outLength), mark(slice, outLength), next()));
        }
        final long inAddress = reduces ? received.address() : data.address() + CollectiveKind.chunkStart(in, ranks, input.length);
        for (int slice = 0; slice < slices(inLength); slice++) {
            set.receive(NetDestAddr.receive(0, inAddress + offset(slice), reduces ? partMr : recvMr, length(slice, inLength),
                mark(slice, inLength), previous()));
        }
        return EncContext.builder(comm)
            .block(STREAM, step, set.build())
            .trigger(new long[] {core.triggerAddress(step)}, 1)
            .build();
    }

    private static int semaphore(final int step, final int which) {
        return SEMAPHORES * step + which;
    }

    /** A chunk without bytes still is one message, so that both ends agree on the number. */
    private int slices(final long chunkLength) {
        return (int) Math.max(1, (chunkLength + sliceBytes - 1) / sliceBytes);
    }

    private long offset(final int slice) {
        return (long) slice * sliceBytes;
    }

    private int length(final int slice, final long chunkLength) {
        return (int) Math.min(sliceBytes, chunkLength - offset(slice));
    }

    private NetAddrMark mark(final int slice, final long chunkLength) {
        return slice == slices(chunkLength) - 1 ? NetAddrMark.NET_OP_COMPLETE : NetAddrMark.NET_TRANSFER;
    }

    /** Puts this rank's data where the operation begins, and something wrong wherever the operation has to write. */
    void prepare() {
        core.reset();
        final ByteBuffer view = data.view(0, input.length);
        final long own = CollectiveKind.chunkStart(rank, ranks, input.length);
        final long ownEnd = own + CollectiveKind.chunkLength(rank, ranks, input.length);
        for (int i = 0; i < input.length; i++) {
            final boolean mine = i >= own && i < ownEnd;
            view.put(i, kind == CollectiveKind.ALL_REDUCE ? CollectiveKind.contribution(input[i], rank)
                : mine ? input[i] : (byte) ~input[i]);
        }
    }

    /**
     * Runs the operation once and waits for its end.
     *
     * @throws NrtException with the first outcome that is not SUCCESS.
     */
    void run() {
        core.startProgram("core-" + rank, this::program);
        try {
            execId++;
            for (final EncContext step : steps) {
                ProxyTasks.enqueueProxyTasks(step, execId);
            }
            final TaskStatus status = new TaskStatus();
            for (final EncContext step : steps) {
                consume(step, TaskType.NETWORK, status);
                consume(step, TaskType.BARRIER, status);
            }
        } catch (final RuntimeException ex) {
            core.halt();
            throw ex;
        } finally {
            core.endProgram(CORE_LIMIT_NS);
        }
    }

    private void consume(final EncContext step, final TaskType type, final TaskStatus status) {
        final NrtStatus outcome = ProxyTasks.consumeTaskStatus(step, type, status, WATCHDOG, limit);
        if (outcome != NrtStatus.SUCCESS) {
            throw new NrtException(outcome, "rank " + rank + ": " + kind + ", " + type + " task: " + outcome
                + (status.failure() == null ? "" : ": " + status.failure().getMessage()), status.failure());
        }
    }

    /** The core's program: open a step, wait for its words, combine, open the next. */
    private void program() {
        for (int step = 0; step < steps.length; step++) {
            core.release(step);
            if (!core.await(semaphore(step, RECV_SEMAPHORE), ROUNDS, limit.toNanos())
                || !core.await(semaphore(step, SEND_SEMAPHORE), ROUNDS, limit.toNanos())) {
                return;
            }
            if (kind.reduces(step, ranks)) {
                final int chunk = kind.received(step, rank, ranks);
                SoftwareCore.add(data, CollectiveKind.chunkStart(chunk, ranks, input.length), received, 0,
                    (int) CollectiveKind.chunkLength(chunk, ranks, input.length));
            }
        }
    }

    /**
     * Compares every byte of the result with a plain computation.
     *
     * @throws NrtException FAILURE at the first byte that is wrong.
     */
    void check() {
        final ByteBuffer view = data.view(0, input.length);
        for (int i = 0; i < input.length; i++) {
            byte expected = input[i];
            if (kind == CollectiveKind.ALL_REDUCE) {
                expected = 0;
                for (int each = 0; each < ranks; each++) {
                    expected += CollectiveKind.contribution(input[i], each);
                }
            }
            if (view.get(i) != expected) {
                throw new NrtException(NrtStatus.FAILURE, "rank " + rank + ": " + kind + ": byte " + i + " is " + view.get(i)
                    + " instead of " + expected);
            }
        }
    }

    /**
     * Fails what runs, then closes the links, at which the neighbours fail; then the memory goes, unless the core's program could not
     * be ended and still adds to it.
     */
    @Override
    public void close() {
        core.halt();
        if (comm != null) {
            comm.close();
        }
        proxy.closeComm(networkComm);
        links.close();
        final boolean ended = core.endProgram(CORE_LIMIT_NS);
        core.close();
        if (ended) {
            data.close();
            received.close();
        } else {
            LOG.error("rank {}: the core's program did not end; the memory that it adds to stays allocated", rank);
            data.storage().retain();
            received.storage().retain();
        }
    }
}
