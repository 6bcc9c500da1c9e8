package io.nrt4j.net.opfifo;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.net.NetworkProxy;
import java.util.ArrayList;
import java.util.List;

/**
 * One stream of a communicator: the block that it runs, the block that waits for its turn, and the blocks that are only known.
 *
 * <pre>
 *   start ----> deferred --progress, nothing runs--> current (running) --finished--> current (armed) --stop--> gone
 *                  |                                                                      |
 *                  +--progress, another runs--> pending --progress, nothing runs----------+ takes its place
 * </pre>
 *
 * <p>Threads: under the monitor of the communicator. Progress allocates nothing unless it fails.
 */
final class FifoStream {
    private static final int NONE = -1;

    /** All known blocks; the current one is among them. */
    private final List<FifoBlock> blocks = new ArrayList<>();
    private FifoBlock current;
    private int pending = NONE;
    /** First failure; everything on the stream fails with it afterwards. */
    private NrtException failure;

    /** Makes a block known, in the place of an earlier one of its number. */
    void start(final FifoBlock block) {
        checkNotFailed();
        final FifoBlock earlier = find(block.id());
        if (earlier != null && earlier.isRunning()) {
            throw new NrtException(NrtStatus.INVALID, "the block is running");
        }
        blocks.remove(earlier);
        blocks.add(block);
        if (current == earlier) {
            current = null;
        }
        // Early receives occupy the links: not before every block that was started earlier has run, whose receives come first.
        if (block.mayPostEarly() && pending == NONE && allOthersHaveRun(block)) {
            current = block;
            try {
                block.postEarly();
            } catch (final NrtException ex) {
                failure = ex;
                throw ex;
            }
        }
    }

    private boolean allOthersHaveRun(final FifoBlock block) {
        for (final FifoBlock other : blocks) {
            if (other != block && (other.isRunning() || !other.hasRun())) {
                return false;
            }
        }
        return true;
    }

    /** Forgets a block that will not be run; if its receives are posted already, the stream fails. */
    void abandon(final int id, final NrtException cause) {
        final FifoBlock block = find(id);
        if (block == null || failure != null) {
            return;
        }
        if (block.isRunning()) {
            // Whatever comes next on the link would be matched with them.
            failure = new NrtException(cause.status(), "block " + id + " had posted receives and was given up: " + cause.getMessage(),
                cause);
            return;
        }
        blocks.remove(block);
        if (pending == id) {
            pending = NONE;
        }
        if (current == block) {
            current = null;
        }
    }

    /** One tick of a block; flags of {@link NetworkProxy#progress}. */
    int progress(final int id) {
        checkNotFailed();
        if ((current == null || current.id() != id) && !load(id)) {
            return NetworkProxy.IDLE;
        }
        try {
            final int work = current.tick();
            return (work == 0 ? NetworkProxy.IDLE : 0) | (current.finish() ? NetworkProxy.DONE : 0);
        } catch (final NrtException ex) {
            failure = ex;
            throw ex;
        }
    }

    private boolean load(final int id) {
        final FifoBlock block = find(id);
        if (block == null) {
            throw new NrtException(NrtStatus.INVALID, "the block was not started");
        }
        if (current != null && current.isRunning()) {
            if (pending == NONE) {
                pending = id;
            }
            return false;
        }
        if (pending != NONE && pending != id) {
            return false;
        }
        pending = NONE;
        current = block;
        return true;
    }

    /** Forgets the blocks that have run and do not run now. */
    void stop() {
        for (int i = blocks.size() - 1; i >= 0; i--) {
            final FifoBlock block = blocks.get(i);
            if (block.hasRun() && !block.isRunning() && block.id() != pending) {
                blocks.remove(i);
                if (block == current) {
                    current = null;
                }
            }
        }
    }

    int size() {
        return blocks.size();
    }

    private void checkNotFailed() {
        if (failure != null) {
            throw new NrtException(NrtStatus.NETWORK_PROXY_FAILURE, "the stream has failed before: " + failure.getMessage(), failure);
        }
    }

    private FifoBlock find(final int id) {
        for (int i = 0; i < blocks.size(); i++) {
            if (blocks.get(i).id() == id) {
                return blocks.get(i);
            }
        }
        return null;
    }
}
