package io.nrt4j.proxy;

import io.nrt4j.NrtConfig;
import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.concurrent.AgentThread;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The proxy queues by group: one queue and one worker for all communicators of a group, as long as there is one.
 *
 * <p>The count of users is the node's, not the queue's: a communicator that shares a queue touches nothing of it. A node whose last
 * user left stays, closing, until its worker has been joined; whoever wants the group meanwhile waits for that, so there never are
 * two workers of one group. Other groups are not held up.
 *
 * <p>Threads: any; {@code nodes} and the nodes' fields are guarded by {@code lock}.
 *
 * <p>Ports {@code g_shared_proxy_queues} 0xc91320 with its lock 0xc912e0, and {@code shared_network_proxy_queue} (queue +0,
 * refcnt +8).
 */
public final class SharedProxyQueues {
    private static final Logger LOG = LoggerFactory.getLogger(SharedProxyQueues.class);
    private static final SharedProxyQueues PROCESS_WIDE = new SharedProxyQueues();
    /** Bound of the wait for a worker's last step. */
    static final long JOIN_TIMEOUT_MS = 2000;

    private static final class Node {
        private final ProxyQueue queue;
        private int refcnt = 1;
        private boolean closing;

        Node(final ProxyQueue queue) {
            this.queue = queue;
        }
    }

    private final ReentrantLock lock = new ReentrantLock();
    private final Condition removed = lock.newCondition();
    private final Map<Integer, Node> nodes = new HashMap<>();
    private final ProxyQueue.Starter starter;

    /** Makes a registry of its own, with workers of its own. */
    public SharedProxyQueues() {
        this(AgentThread::start);
    }

    /** Makes a registry that starts its workers in a way of its own. */
    SharedProxyQueues(final ProxyQueue.Starter starter) {
        this.starter = starter;
    }

    /**
     * The registry that all of this process shares unless it is given another one.
     *
     * @return always the same.
     */
    public static SharedProxyQueues processWide() {
        return PROCESS_WIDE;
    }

    /**
     * Shares a group's queue, or makes and starts it.
     *
     * @param gid    group.
     * @param config waiting policy and processors of a worker that is made.
     * @return queue with a running worker, to be given back by {@link #release}.
     * @throws NrtException RESOURCE when the worker cannot be started; nothing is left behind.
     */
    ProxyQueue acquire(final int gid, final NrtConfig config) {
        lock.lock();
        try {
            Node node = nodes.get(gid);
            while (node != null && node.closing) {
                // Bounded: whoever closes it gives the worker JOIN_TIMEOUT_MS.
                removed.awaitUninterruptibly();
                node = nodes.get(gid);
            }
            if (node != null) {
                node.refcnt++;
                return node.queue;
            }
            final ProxyQueue queue = new ProxyQueue(gid, config.oneThreadPerCore(), config.lowLatencyCpus());
            queue.start(starter);
            nodes.put(gid, new Node(queue));
            return queue;
        } finally {
            lock.unlock();
        }
    }

    /**
     * Gives a queue back; the last one of a group stops the worker and joins it.
     *
     * @param queue from {@link #acquire}, once for each.
     * @throws NrtException INVALID_HANDLE when it was given back more often than acquired.
     */
    void release(final ProxyQueue queue) {
        lock.lock();
        try {
            final Node node = nodes.get(queue.gid());
            if (node == null || node.queue != queue || node.closing) {
                throw new NrtException(NrtStatus.INVALID_HANDLE, queue + " was released more often than it was acquired");
            }
            node.refcnt--;
            if (node.refcnt > 0) {
                return;
            }
            node.closing = true;
        } finally {
            lock.unlock();
        }
        try {
            if (!queue.stop(JOIN_TIMEOUT_MS, TimeUnit.MILLISECONDS)) {
                LOG.error("{} was not joined within {} ms; its thread is left behind", queue, JOIN_TIMEOUT_MS);
            }
        } finally {
            lock.lock();
            try {
                nodes.remove(queue.gid());
                removed.signalAll();
            } finally {
                lock.unlock();
            }
        }
    }

    /**
     * Communicators that use a group's queue.
     *
     * @param gid group.
     * @return 0 when there is no queue.
     */
    public int users(final int gid) {
        lock.lock();
        try {
            final Node node = nodes.get(gid);
            return node == null ? 0 : node.refcnt;
        } finally {
            lock.unlock();
        }
    }

    /**
     * Groups that have a queue.
     *
     * @return number of groups.
     */
    public int size() {
        lock.lock();
        try {
            return nodes.size();
        } finally {
            lock.unlock();
        }
    }
}
