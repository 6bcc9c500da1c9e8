package io.nrt4j.proxy;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.net.NetworkProxy;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Drives the network stage of one execution over the seam: start of each block, one progress a stream and step, stop when a stream
 * goes on to its next block.
 *
 * <p>The streams are independent: each walks its own blocks. A step is idle when all unfinished streams are, and done when all are.
 * A stream whose last block is done is not ticked any more, since the far side would begin its next run.
 *
 * <p>When a start fails, the blocks that were started before it are given up. Where receives of theirs are posted already, the far
 * side fails the stream, so that neither the next execution nor a sibling's waits behind a block that nobody runs.
 *
 * <p>Ports {@code enc_network_proxy_task} (104 B; num_net_ops[4] +84): {@code step} 0x1d0620, {@code init_network_proxy} 0x1ce5b0,
 * {@code setup_first_basic_block_switch} 0x1ce560, {@code check_basic_block_switch} 0x1d01c0, {@code proxy_progress} 0x1d03f0.
 */
public final class NetworkProxyTask extends ProxyTask {
    private static final Logger LOG = LoggerFactory.getLogger(NetworkProxyTask.class);

    /** Instead of flags. */
    private static final int FAILED = -1;

    private final NetworkProxy proxy;
    private final long networkComm;
    private final int[] numNetOps = new int[NetworkProxy.MAX_STREAMS];
    /** Place of each stream's present block among its blocks, and the block's number. */
    private final int[] blockAt = new int[NetworkProxy.MAX_STREAMS];
    private final int[] blockId = new int[NetworkProxy.MAX_STREAMS];
    /** One bit a stream: it has something to do; its present block is done and the next one comes. */
    private int unfinished;
    private int switching;

    /**
     * Makes the task.
     *
     * @param ctx    what it runs.
     * @param execId number of the execution.
     */
    public NetworkProxyTask(final EncContext ctx, final long execId) {
        super(ctx, execId, TaskType.NETWORK);
        proxy = ctx.comm().networkProxy();
        networkComm = ctx.comm().networkComm();
    }

    @Override
    public NrtStatus step() {
        final RunState from = runState();
        // The state of nearly every step, and of every step that has to be cheap.
        if (from == RunState.IDLE) {
            progress();
        } else {
            stepFrom(from);
        }
        return runState() == RunState.DONE ? state().progressStatus() : NrtStatus.SUCCESS;
    }

    private void stepFrom(final RunState from) {
        switch (from) {
            case INIT -> init();
            case PROGRESSING, IDLE -> progress();
            case WAITING_DEVICE_TRIGGER -> awaitTrigger();
            case DONE -> LOG.error("Task shouldn't be polled after it reached a done state: {}", this);
            default -> throw new AssertionError(from);
        }
    }

    private void init() {
        if (ctx().skipsNetwork()) {
            move(RunState.DONE);
        } else if (ctx().acquireNetwork(this) && initNetworkProxy()) {
            move(ctx().waitsForDevice() ? RunState.WAITING_DEVICE_TRIGGER : RunState.PROGRESSING);
        }
    }

    private boolean initNetworkProxy() {
        int stream = 0;
        int block = 0;
        try {
            for (stream = 0; stream < ctx().streams(); stream++) {
                for (block = 0; block < ctx().blocks(stream); block++) {
                    final FifoSet set = ctx().fifoSet(stream, block);
                    proxy.start(networkComm, stream, ctx().blockId(stream, block), set.operations(), set.sources(),
                        set.destinations());
                    numNetOps[stream] += set.operations().length;
                }
                setupFirstBasicBlock(stream);
            }
            return true;
        } catch (final RuntimeException ex) {
            fail("start", stream, ctx().blockId(stream, block), ex);
            abandonBefore(stream, block);
            return false;
        }
    }

    /** Gives up what was started before the block whose start failed. */
    private void abandonBefore(final int failedStream, final int failedBlock) {
        for (int stream = 0; stream <= failedStream; stream++) {
            final int end = stream == failedStream ? failedBlock : ctx().blocks(stream);
            for (int block = 0; block < end; block++) {
                try {
                    proxy.abandon(networkComm, stream, ctx().blockId(stream, block), state().failure());
                } catch (final RuntimeException ex) {
                    LOG.error("[nec_dev {}] stream {}, block {} could not be given up", ctx().comm().necDev(), stream,
                        ctx().blockId(stream, block), ex);
                }
            }
        }
    }

    private void setupFirstBasicBlock(final int stream) {
        if (ctx().blocks(stream) > 0) {
            blockAt[stream] = 0;
            blockId[stream] = ctx().blockId(stream, 0);
            unfinished |= 1 << stream;
        }
    }

    private void awaitTrigger() {
        if (ctx().trigger().canStart()) {
            ctx().trigger().clear();
            move(RunState.PROGRESSING);
        }
    }

    private void progress() {
        int flags = NetworkProxy.IDLE | NetworkProxy.DONE;
        for (int left = unfinished; left != 0; left &= left - 1) {
            final int mine = progressStream(Integer.numberOfTrailingZeros(left));
            if (mine == FAILED) {
                return;
            }
            flags &= mine;
        }
        if (flags == NetworkProxy.IDLE) {
            move(RunState.IDLE);
        } else {
            move((flags & NetworkProxy.DONE) != 0 ? RunState.DONE : RunState.PROGRESSING);
        }
    }

    /** One tick of a stream; its flags, or {@link #FAILED} when it failed and the task is DONE. */
    private int progressStream(final int stream) {
        if ((switching & 1 << stream) != 0) {
            return switchBlock(stream);
        }
        try {
            final int flags = proxy.progress(networkComm, stream, blockId[stream]);
            return (flags & NetworkProxy.DONE) == 0 ? flags : onBlockDone(stream, flags);
        } catch (final RuntimeException ex) {
            fail("progress", stream, blockId[stream], ex);
            return FAILED;
        }
    }

    private int onBlockDone(final int stream, final int flags) {
        if (blockAt[stream] == ctx().blocks(stream) - 1) {
            unfinished &= ~(1 << stream);
            return flags;
        }
        switching |= 1 << stream;
        return 0;
    }

    /** The first tick of a stream's next block, after which the far side may forget the one that is done. */
    private int switchBlock(final int stream) {
        switching &= ~(1 << stream);
        blockAt[stream]++;
        blockId[stream] = ctx().blockId(stream, blockAt[stream]);
        final int flags = progressStream(stream);
        if (flags != FAILED) {
            try {
                proxy.stop(networkComm, stream);
            } catch (final RuntimeException ex) {
                fail("stop", stream, blockId[stream], ex);
                return FAILED;
            }
        }
        return flags;
    }

    private void fail(final String call, final int stream, final int block, final RuntimeException cause) {
        final int necDev = ctx().comm().necDev();
        final NrtStatus status = NrtStatus.NETWORK_PROXY_FAILURE;
        if (call.equals("start")) {
            LOG.error("[nec_dev {}] failed to start network proxy ret:{}", necDev, status.code(), cause);
        } else {
            LOG.error("[nec_dev {}] ncclNetworkProxy{} returns {}", necDev, call.equals("stop") ? "Stop" : "Progress", status.code(),
                cause);
        }
        fail(new NrtException(status, "[nec_dev " + necDev + "] " + call + " of stream " + stream + ", block " + block
            + ", execution " + execId() + ": " + cause.getMessage(), cause));
    }

    /** Operations of a stream, known after the first step. */
    int numNetOps(final int stream) {
        return numNetOps[stream];
    }

    @Override
    void onDrop() {
        ctx().releaseNetwork(this);
    }
}
