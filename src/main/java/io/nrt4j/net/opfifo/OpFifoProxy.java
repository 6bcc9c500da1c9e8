package io.nrt4j.net.opfifo;

import io.nrt4j.NrtConfig;
import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.net.NetDestAddr;
import io.nrt4j.net.NetOpsInfo;
import io.nrt4j.net.NetSrcAddr;
import io.nrt4j.net.NetTransport;
import io.nrt4j.net.NetworkProxy;
import java.util.Arrays;
import java.util.Objects;

/**
 * The proxy seam's far side over any transport: a passive list of operations. It has no thread; whoever calls
 * {@link #progress} moves the operations of that stream's block on by one tick.
 *
 * <p>Two-sided transfers only. The transport and the links belong to the caller: {@link #closeComm} first, then the links, which
 * gives up what is in flight.
 *
 * <p>Threads: any; calls for one communicator exclude one another, and calls for different ones do not meet. {@code comms} is
 * written under the proxy's monitor, replaced as a whole, and read without it.
 *
 * <p>Ports {@code ncclProxyProgressOps} and what surrounds it in libnccom.
 */
public final class OpFifoProxy implements NetworkProxy {
    private static final int INDEX_BITS = 16;
    private static final int MAX_COMMS = 1 << INDEX_BITS;

    /** One communicator. {@code closed} is guarded by its monitor, as are its streams. */
    private static final class FifoComm {
        private final long handle;
        private final PeerLinks links;
        private final FifoStream[] streams;
        private boolean closed;

        FifoComm(final long handle, final PeerLinks links) {
            this.handle = handle;
            this.links = links;
            streams = new FifoStream[links.streams()];
            Arrays.setAll(streams, i -> new FifoStream());
        }
    }

    private final FifoBlock.Policy policy;
    private long generation;
    private volatile FifoComm[] comms = new FifoComm[0];

    /**
     * Makes a proxy for words of plain memory.
     *
     * @param transport moves the bytes.
     * @param config    whether early posting and early completion are allowed at all.
     */
    public OpFifoProxy(final NetTransport transport, final NrtConfig config) {
        this(transport, config, SemaphoreStyle.RUNNING_COUNT);
    }

    /**
     * Makes a proxy.
     *
     * @param transport moves the bytes.
     * @param config    whether early posting and early completion are allowed at all.
     * @param style     what is stored into semaphore words.
     */
    public OpFifoProxy(final NetTransport transport, final NrtConfig config, final SemaphoreStyle style) {
        policy = new FifoBlock.Policy(Objects.requireNonNull(transport), config.earlyPosting(), config.earlyCompletion(),
            Objects.requireNonNull(style));
    }

    /**
     * Makes a communicator over links that are connected already.
     *
     * @param links the rank's links, not changed afterwards.
     * @return handle, never 0 and never used twice.
     */
    public synchronized long openComm(final PeerLinks links) {
        final FifoComm[] before = comms;
        int index = 0;
        while (index < before.length && before[index] != null) {
            index++;
        }
        if (index == MAX_COMMS) {
            throw new NrtException(NrtStatus.RESOURCE, "op-FIFO: the limit of " + MAX_COMMS + " communicators is reached");
        }
        final FifoComm[] after = Arrays.copyOf(before, Math.max(before.length, index + 1));
        after[index] = new FifoComm(++generation << INDEX_BITS | index, links);
        comms = after;
        return after[index].handle;
    }

    /**
     * Forgets a communicator and all its blocks. What is in flight stays with the links, which the caller closes next. Idempotent.
     *
     * @param comm from {@link #openComm}.
     */
    public void closeComm(final long comm) {
        final FifoComm found = find(comm);
        if (found == null) {
            return;
        }
        synchronized (found) {
            found.closed = true;
        }
        synchronized (this) {
            final FifoComm[] after = comms.clone();
            if (after[(int) comm & MAX_COMMS - 1] == found) {
                after[(int) comm & MAX_COMMS - 1] = null;
            }
            comms = after;
        }
    }

    @Override
    public void start(
        final long comm, final int stream, final int basicBlock, final NetOpsInfo[] operations, final NetSrcAddr[] sources,
        final NetDestAddr[] destinations) {
        final FifoComm found = checked("start", comm, stream, basicBlock);
        synchronized (found) {
            try {
                final FifoStream target = streamOf(found, stream);
                Objects.requireNonNull(operations, "operations");
                Objects.requireNonNull(sources, "sources");
                Objects.requireNonNull(destinations, "destinations");
                target.start(new FifoBlock(basicBlock, stream, operations, sources, destinations, found.links, policy));
            } catch (final NrtException | NullPointerException ex) {
                throw failure("start", stream, basicBlock, ex);
            }
        }
    }

    @Override
    public void abandon(final long comm, final int stream, final int basicBlock, final NrtException cause) {
        final FifoComm found = checked("abandon", comm, stream, basicBlock);
        synchronized (found) {
            try {
                streamOf(found, stream).abandon(basicBlock, cause);
            } catch (final NrtException ex) {
                throw failure("abandon", stream, basicBlock, ex);
            }
        }
    }

    @Override
    public int progress(final long comm, final int stream, final int basicBlock) {
        final FifoComm found = checked("progress", comm, stream, basicBlock);
        synchronized (found) {
            try {
                final int flags = streamOf(found, stream).progress(basicBlock);
                if ((flags & IDLE) != 0 && policy.transport().needsProgress()) {
                    policy.transport().progress();
                }
                return flags;
            } catch (final NrtException ex) {
                throw failure("progress", stream, basicBlock, ex);
            }
        }
    }

    @Override
    public void stop(final long comm, final int stream) {
        final FifoComm found = checked("stop", comm, stream, 0);
        synchronized (found) {
            try {
                streamOf(found, stream).stop();
            } catch (final NrtException ex) {
                throw failure("stop", stream, -1, ex);
            }
        }
    }

    /**
     * Blocks that a stream knows, for tests of leaks.
     *
     * @param comm   communicator.
     * @param stream 0 to 3.
     * @return number of blocks.
     */
    int blocks(final long comm, final int stream) {
        final FifoComm found = checked("blocks", comm, stream, 0);
        synchronized (found) {
            return streamOf(found, stream).size();
        }
    }

    private FifoComm find(final long comm) {
        final FifoComm[] all = comms;
        final int index = (int) comm & MAX_COMMS - 1;
        final FifoComm found = index < all.length ? all[index] : null;
        return found != null && found.handle == comm ? found : null;
    }

    private FifoComm checked(final String call, final long comm, final int stream, final int basicBlock) {
        final FifoComm found = find(comm);
        if (found == null || stream < 0 || stream >= found.streams.length || basicBlock < 0) {
            throw failure(call, stream, basicBlock, new NrtException(NrtStatus.INVALID_HANDLE,
                found == null ? "no open communicator 0x" + Long.toHexString(comm) : "no such stream or block"));
        }
        return found;
    }

    /** Under the communicator's monitor. */
    private static FifoStream streamOf(final FifoComm comm, final int stream) {
        if (comm.closed) {
            throw new NrtException(NrtStatus.CLOSED, "the communicator was closed");
        }
        return comm.streams[stream];
    }

    private static NrtException failure(final String call, final int stream, final int block, final RuntimeException cause) {
        return new NrtException(NrtStatus.NETWORK_PROXY_FAILURE, "op-FIFO " + call + " of stream " + stream
            + (block < 0 ? "" : ", block " + block) + ": " + cause.getMessage(), cause);
    }
}
