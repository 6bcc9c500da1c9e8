package io.nrt4j.proxy;

import io.nrt4j.NrtConfig;
import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.net.NetworkProxy;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A rank's communicator as the proxy driver sees it: owner of a share in its group's queue, of its side of the barrier, and of its
 * way across the seam.
 *
 * <p>Set up, it has a running worker; freed, it leaves nothing in the queue: its states are forgotten, its running tasks fail with
 * CLOSED, and the worker does not call the network side or the barrier for it any more when {@link #free()} has returned. The
 * network side's communicator is the caller's, to be closed afterwards.
 *
 * <p>Threads: any may free it; the rest never changes, but for: {@code freed}, written under the queue's state lock and read by
 * anybody; {@code liveTasks}, counted up by producers and down by the worker; {@code freeing}, which elects the one that frees; and
 * the barrier's turn and failure, which are the worker's.
 *
 * <p>Ports the queue's part of {@code enc_setup_global_comm_internal} 0x10b050 and {@code enc_free_global_comm} 0x10a650
 * (comm +0x89ca8 is the queue).
 */
public final class GlobalComm implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(GlobalComm.class);
    private static final long ABANDON_TIMEOUT_MS = 2000;

    private final SharedProxyQueues registry;
    private final int necDev;
    private final int rank;
    private final NetworkProxy networkProxy;
    private final long networkComm;
    private final HostBarrier barrier;
    private final ProxyQueue queue;
    private final AtomicBoolean freeing = new AtomicBoolean();
    private final AtomicInteger liveTasks = new AtomicInteger();
    private volatile boolean freed;
    private long barrierRounds;
    private long barrierTurn;
    private NrtException barrierFailure;

    private GlobalComm(
        final SharedProxyQueues registry, final NrtConfig config, final int necDev, final int rank, final NetworkProxy networkProxy,
        final long networkComm, final HostBarrier barrier) {
        if (necDev < 0 || rank < 0) {
            throw new NrtException(NrtStatus.INVALID, "no device " + necDev + " or no rank " + rank);
        }
        this.registry = registry;
        this.necDev = necDev;
        this.rank = rank;
        this.networkProxy = Objects.requireNonNull(networkProxy);
        this.networkComm = networkComm;
        this.barrier = Objects.requireNonNull(barrier);
        queue = registry.acquire(necDev / config.ranksPerNetworkProxy(), config);
    }

    /**
     * Sets a communicator up on its group's queue: group = device number / ranks per network proxy.
     *
     * @param registry     where the group's queue is, or will be.
     * @param config       ranks of a group, waiting policy, processors.
     * @param necDev       device number, at least 0.
     * @param rank         rank in the communicator, at least 0.
     * @param networkProxy the network side.
     * @param networkComm  the network side's communicator.
     * @param barrier      this rank's side of the barrier; closed with the communicator.
     * @return to be freed once.
     * @throws NrtException RESOURCE when the group's worker cannot be started; nothing is left behind then, and the barrier is not
     *                      closed.
     */
    public static GlobalComm setup(
        final SharedProxyQueues registry, final NrtConfig config, final int necDev, final int rank, final NetworkProxy networkProxy,
        final long networkComm, final HostBarrier barrier) {
        final GlobalComm comm = new GlobalComm(registry, config, necDev, rank, networkProxy, networkComm, barrier);
        LOG.debug("[nec_dev {}] global comm of rank {} is set up on proxy group {}", necDev, rank, comm.gid());
        return comm;
    }

    /**
     * Frees the communicator. Running tasks fail; the group's last communicator ends the worker. Bounded: a step that does not come
     * back within 2 s is left behind, and this rank's side of the barrier is closed, by a thread of its own, when the step is out of it.
     *
     * @throws NrtException INVALID_HANDLE when it was freed before.
     */
    public void free() {
        if (!freeing.compareAndSet(false, true)) {
            throw new NrtException(NrtStatus.INVALID_HANDLE, this + " was freed before");
        }
        boolean quiet = false;
        try {
            quiet = queue.abandon(this, ABANDON_TIMEOUT_MS, TimeUnit.MILLISECONDS);
            if (!quiet) {
                LOG.error("{}: a step did not come back within {} ms; {} tasks are left to it", this, ABANDON_TIMEOUT_MS, liveTasks());
            }
        } finally {
            try {
                registry.release(queue);
            } finally {
                closeBarrier(quiet);
            }
        }
    }

    /** The step that did not come back may be inside the barrier, whose close waits for it. */
    private void closeBarrier(final boolean quiet) {
        if (quiet) {
            barrier.close();
            return;
        }
        final Thread closer = new Thread(() -> {
            try {
                barrier.close();
            } catch (final RuntimeException ex) {
                LOG.error("{}: the barrier could not be closed", this, ex);
            }
        }, "nrt4j-barrier-close-" + necDev);
        closer.setDaemon(true);
        closer.start();
    }

    /** Frees the communicator unless that was done before. */
    @Override
    public void close() {
        if (!freeing.get()) {
            free();
        }
    }

    /**
     * Group whose queue it shares.
     *
     * @return device number divided by the ranks of a group.
     */
    public int gid() {
        return queue.gid();
    }

    /**
     * Device number.
     *
     * @return as it was set up.
     */
    public int necDev() {
        return necDev;
    }

    /**
     * Rank.
     *
     * @return as it was set up.
     */
    public int rank() {
        return rank;
    }

    /**
     * The queue that it shares.
     *
     * @return with a running worker until the communicator is freed.
     */
    public ProxyQueue queue() {
        return queue;
    }

    NetworkProxy networkProxy() {
        return networkProxy;
    }

    long networkComm() {
        return networkComm;
    }

    HostBarrier barrier() {
        return barrier;
    }

    // ---- tasks of the communicator

    boolean isFreed() {
        return freed;
    }

    /** Under the queue's state lock. */
    void markFreed() {
        freed = true;
    }

    void taskAppended() {
        liveTasks.incrementAndGet();
    }

    void taskDropped() {
        liveTasks.decrementAndGet();
    }

    int liveTasks() {
        return liveTasks.get();
    }

    // ---- the barrier's order; worker only

    /** Round of the next barrier task, in the order of their appends. */
    long nextBarrierRound() {
        return barrierRounds++;
    }

    /** Round whose task may use the barrier. */
    long barrierTurn() {
        return barrierTurn;
    }

    /** Why no round can be complete any more, or null. */
    NrtException barrierFailure() {
        return barrierFailure;
    }

    /** A round ended; with a failure, all later ones fail. */
    void endBarrier(final long round, final NrtException failure) {
        if (failure != null) {
            if (barrierFailure == null) {
                barrierFailure = failure;
            }
        } else {
            barrierTurn = round + 1;
        }
    }

    @Override
    public String toString() {
        return "global comm of nec_dev " + necDev + ", rank " + rank + ", gid " + gid() + (freed ? " (freed)" : "");
    }
}
