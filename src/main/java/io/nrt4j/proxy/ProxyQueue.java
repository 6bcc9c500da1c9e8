package io.nrt4j.proxy;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.concurrent.Agent;
import io.nrt4j.concurrent.AgentThread;
import io.nrt4j.concurrent.IdleStrategy;
import io.nrt4j.concurrent.Uninterrupted;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A queue of proxy tasks and the one worker that steps them, shared by all communicators of a group.
 *
 * <pre>
 *   producer --append--> [queue] --drain--> active tasks by rank --step each once--> drop those that are DONE
 *       |                 (mtx)                 (the worker's own)         |
 *       +--publishes--> [state queue] &lt;--------- writes the states --------+
 *                        (state mtx)  &lt;-- consumers poll
 * </pre>
 *
 * <p>Between two passes the worker goes on at once if a task moved; yields, or spins with one thread per core, if tasks only wait;
 * and sleeps when there is none.
 *
 * <p>Threads: {@code queue} and {@code stopping} are guarded by {@code mtx}; the worker sleeps on {@code cv} and re-checks both, and
 * its own list, under {@code mtx}, so that no wake-up is lost. {@code queued} is written under {@code mtx} and read without it: a hint
 * that spares an idle pass the lock. {@code active} belongs to the worker. {@code stateQueue} and the {@code freed} mark of
 * communicators are written under {@code stateMtx}. No lock is held while a task is stepped, so no producer and no consumer waits
 * for a step. An idle pass allocates nothing.
 *
 * <p>Ports {@code enc_proxy_queue} (296 B: queue +0, active_tasks +80, cv +128, mtx +176, state_queue +216, state_mtx +240, tid +280,
 * stop +288). A test may call {@link #doWork()} by hand instead of starting the worker.
 */
public final class ProxyQueue {
    private static final Logger LOG = LoggerFactory.getLogger(ProxyQueue.class);

    private final int gid;
    private final boolean spins;
    private final List<Integer> cpus;
    private final ReentrantLock mtx = new ReentrantLock();
    private final Condition cv = mtx.newCondition();
    private final Condition dropped = mtx.newCondition();
    private final ArrayDeque<ProxyTask> queue = new ArrayDeque<>();
    private volatile boolean queued;
    private boolean stopping;
    private final Object stateMtx = new Object();
    private final ArrayList<ProxyTaskState> stateQueue = new ArrayList<>();
    private final ArrayList<RankTasks> active = new ArrayList<>();
    private int activeTasks;
    /** Communicators that were freed so far, under {@code stateMtx}; and how many of them the worker has seen. */
    private volatile int freedComms;
    private int freedSeen;
    /** A task of a freed communicator was taken over after its sweep. The worker's own. */
    private boolean sweepDue;
    private final IdleStrategy waiting;
    private final AgentThread worker;
    /** Written by the worker before its first pass. */
    private volatile int tid;

    /** Starts a thread; a test hands in one that cannot. */
    @FunctionalInterface
    interface Starter {
        void start(AgentThread thread);
    }

    /**
     * Makes a queue whose worker is not started.
     *
     * @param gid   group.
     * @param spins whether the worker spins while its tasks only wait.
     * @param cpus  processors for the worker; empty leaves it alone.
     */
    ProxyQueue(final int gid, final boolean spins, final List<Integer> cpus) {
        this.gid = gid;
        this.spins = spins;
        this.cpus = cpus;
        waiting = new Waiting();
        worker = new AgentThread(new Worker(), waiting, this::onWorkerFailure);
    }

    /** Starts the worker; RESOURCE when the system gives no thread. Ports {@code enc_proxy_queue::start} 0x1ce4d0. */
    void start(final Starter starter) {
        try {
            starter.start(worker);
        } catch (final OutOfMemoryError | RuntimeException ex) { // what Thread.start throws when the system is out of threads
            LOG.error("Failed to create worker thread: {}", ex.toString());
            throw new NrtException(NrtStatus.RESOURCE, "the worker of proxy group " + gid + " could not be started: "
                + ex.getMessage(), ex);
        }
    }

    /**
     * Stops the worker and waits for it; what is still active or queued ends with CLOSED. Ports {@code ~enc_proxy_queue} 0x1ceb50.
     *
     * @return false if a step did not come back in time.
     */
    boolean stop(final long timeout, final TimeUnit unit) {
        return worker.close(timeout, unit);
    }

    /** What the worker does between two passes, for tests that play it. */
    IdleStrategy waiting() {
        return waiting;
    }

    /** Whether the worker's thread runs. */
    boolean isAlive() {
        return worker.thread().isAlive();
    }

    /**
     * Group that the queue serves.
     *
     * @return device number divided by the ranks of a group.
     */
    public int gid() {
        return gid;
    }

    /**
     * The worker's number in the process's task list.
     *
     * @return 0 before the worker runs.
     */
    public int tid() {
        return tid;
    }

    // ---- producers

    /**
     * Publishes a task's state, queues the task and wakes the worker. Any thread; never waits for a step. Ports
     * {@code append_task} 0x1cf3c0.
     *
     * @param task a task that was never appended.
     * @throws NrtException CLOSED when its communicator was freed or the worker has ended.
     */
    public void append(final ProxyTask task) {
        final GlobalComm comm = task.ctx().comm();
        synchronized (stateMtx) {
            if (comm.isFreed()) {
                throw new NrtException(NrtStatus.CLOSED, task + " cannot be appended: the communicator was freed");
            }
            comm.taskAppended();
            stateQueue.add(task.state());
        }
        mtx.lock();
        try {
            if (!stopping) {
                queue.addLast(task);
                queued = true;
                cv.signalAll();
                return;
            }
            comm.taskDropped();
            dropped.signalAll();
        } finally {
            mtx.unlock();
        }
        synchronized (stateMtx) {
            stateQueue.remove(task.state());
        }
        throw new NrtException(NrtStatus.CLOSED, task + " cannot be appended: the worker of proxy group " + gid + " has ended",
            worker.failure());
    }

    // ---- consumers

    /**
     * Looks at the first published task of a context and kind; one that is DONE is forgotten by this look. Any thread. Ports
     * {@code check_proxy_task_status} 0x1cf1c0.
     *
     * @param ctx    context.
     * @param type   kind.
     * @param status filled when there is such a task.
     * @return SUCCESS, or FAILURE when there is none.
     */
    public NrtStatus checkProxyTaskStatus(final EncContext ctx, final TaskType type, final TaskStatus status) {
        synchronized (stateMtx) {
            for (int i = 0; i < stateQueue.size(); i++) {
                final ProxyTaskState state = stateQueue.get(i);
                if (state.encCtx() == ctx && state.taskType() == type) {
                    // The run state first: what it was published after can then be read.
                    final boolean done = state.runState() == RunState.DONE;
                    status.set(done, done ? state.progressStatus() : NrtStatus.SUCCESS, done ? state.failure() : null);
                    if (done) {
                        stateQueue.remove(i);
                    }
                    return NrtStatus.SUCCESS;
                }
            }
        }
        return NrtStatus.FAILURE;
    }

    /** States that were published and not yet polled to their end, for tests of leaks. */
    int publishedStates() {
        synchronized (stateMtx) {
            return stateQueue.size();
        }
    }

    // ---- a communicator goes

    /**
     * Refuses new tasks of a communicator, forgets its states, and waits until the worker has failed and dropped its tasks. Any
     * thread but the worker's.
     *
     * @return false if a step did not come back in time.
     */
    boolean abandon(final GlobalComm comm, final long timeout, final TimeUnit unit) {
        synchronized (stateMtx) {
            comm.markFreed();
            freedComms++;
            stateQueue.removeIf(state -> state.encCtx().comm() == comm);
        }
        mtx.lock();
        try {
            cv.signalAll();
            return Uninterrupted.await(unit.toNanos(timeout), leftNs -> {
                if (comm.liveTasks() > 0) {
                    dropped.awaitNanos(leftNs);
                }
                return comm.liveTasks() == 0;
            });
        } finally {
            mtx.unlock();
        }
    }

    // ---- the worker

    /** The queue's passes, and what is around them, as the worker's thread calls them. */
    private final class Worker implements Agent {
        @Override
        public String roleName() {
            // Until it knows its own number.
            return "proxy-group-" + gid;
        }

        @Override
        public void onStart() {
            ProxyQueue.this.onStart();
        }

        @Override
        public int doWork() {
            return ProxyQueue.this.doWork();
        }

        @Override
        public void onClose() {
            endTasks();
        }
    }

    /** Ports {@code worker_thread} 0x1d0120, and the placement that the original's creator does. */
    private void onStart() {
        final int mine = OsThread.tid();
        final String name = "proxy-" + mine;
        Thread.currentThread().setName(name);
        OsThread.name(name);
        if (!cpus.isEmpty() && OsThread.affinity(cpus)) {
            LOG.info("{} of group {} runs on processors {}", name, gid, cpus);
        }
        tid = mine;
    }

    /**
     * One pass: takes over what is queued, steps each active task once, drops what is DONE. Ports the body of {@code process}
     * 0x1cf7c0.
     *
     * @return tasks that did something; 0 when all wait.
     */
    int doWork() {
        if (queued) {
            drain();
        }
        final int freed = freedComms;
        if (freed != freedSeen || sweepDue) {
            freedSeen = freed;
            sweepDue = false;
            sweep();
        }
        int busy = 0;
        boolean emptied = false;
        for (int i = 0; i < active.size(); i++) {
            final RankTasks tasks = active.get(i);
            busy += stepRank(tasks);
            emptied |= tasks.size() == 0;
        }
        if (emptied) {
            prune();
        }
        return busy;
    }

    private void drain() {
        mtx.lock();
        try {
            queued = false;
            for (ProxyTask task = queue.pollFirst(); task != null; task = queue.pollFirst()) {
                activeTasks++;
                task.onDrain();
                tasksOf(task.rankId()).add(task);
                // Its communicator may have been swept already.
                if (task.ctx().comm().isFreed()) {
                    sweepDue = true;
                }
            }
        } finally {
            mtx.unlock();
        }
    }

    /** Fails and drops the tasks of communicators that were freed. */
    private void sweep() {
        for (int at = 0; at < active.size(); at++) {
            final RankTasks tasks = active.get(at);
            for (int i = 0; i < tasks.size(); i++) {
                final ProxyTask task = tasks.get(i);
                if (task.ctx().comm().isFreed()) {
                    task.fail(new NrtException(NrtStatus.CLOSED, "the communicator was freed while " + task + " ran"));
                    tasks.drop(i);
                    drop(task);
                }
            }
            tasks.compact();
        }
    }

    private RankTasks tasksOf(final int rank) {
        int at = 0;
        while (at < active.size() && active.get(at).rank() < rank) {
            at++;
        }
        if (at == active.size() || active.get(at).rank() != rank) {
            active.add(at, new RankTasks(rank));
        }
        return active.get(at);
    }

    /** Steps a rank's tasks; how many did something. This is the loop that has to be cheap. */
    private int stepRank(final RankTasks tasks) {
        int busy = 0;
        boolean anyDropped = false;
        final ProxyTask[] all = tasks.array();
        final int size = tasks.size();
        for (int i = 0; i < size; i++) {
            final ProxyTask task = all[i];
            try {
                task.step();
            } catch (final Throwable ex) { // an Error too: the tasks of the other communicators run on
                onThrown(task, ex);
            }
            final RunState after = task.runState();
            if (after == RunState.IDLE) {
                continue;
            }
            if (after == RunState.DONE) {
                busy++;
                tasks.drop(i);
                anyDropped = true;
                drop(task);
            } else if (after == RunState.PROGRESSING) {
                busy++;
            }
            // Else it waits: its context is in use, or its trigger is closed.
        }
        if (anyDropped) {
            tasks.compact();
        }
        return busy;
    }

    private static void onThrown(final ProxyTask task, final Throwable thrown) {
        LOG.error("{} failed in its step", task, thrown);
        task.fail(new NrtException(NrtStatus.FAILURE, "a step of " + task + " failed: " + thrown, thrown));
    }

    private void drop(final ProxyTask task) {
        activeTasks--;
        task.onDrop();
        final GlobalComm comm = task.ctx().comm();
        comm.taskDropped();
        // The count went down before the mark is read; whoever frees sets the mark before it reads the count.
        if (comm.isFreed()) {
            mtx.lock();
            try {
                dropped.signalAll();
            } finally {
                mtx.unlock();
            }
        }
    }

    private void prune() {
        for (int i = active.size() - 1; i >= 0; i--) {
            if (active.get(i).size() == 0) {
                active.remove(i);
            }
        }
    }

    /** The worker ends: nobody is left to move its tasks on. */
    private void endTasks() {
        mtx.lock();
        try {
            stopping = true;
        } finally {
            mtx.unlock();
        }
        drain();
        final Throwable failure = worker.failure();
        for (final RankTasks tasks : active) {
            for (int i = 0; i < tasks.size(); i++) {
                final ProxyTask task = tasks.get(i);
                task.fail(new NrtException(NrtStatus.CLOSED, "the worker of proxy group " + gid + " ended while " + task + " ran",
                    failure));
                tasks.drop(i);
                drop(task);
            }
            tasks.compact();
        }
        active.clear();
    }

    private void onWorkerFailure(final Throwable failure) {
        LOG.error("the worker of proxy group {} failed", gid, failure);
    }

    /** Between two passes: goes on, yields or spins, or sleeps. */
    private final class Waiting implements IdleStrategy {
        @Override
        public void idle(final int workCount) {
            if (activeTasks == 0) {
                sleep();
            } else if (workCount == 0) {
                if (spins) {
                    Thread.onSpinWait();
                } else {
                    Thread.yield();
                }
            }
        }

        /** Nothing but an append or the end can give the worker something to do. */
        private void sleep() {
            mtx.lock();
            try {
                while (queue.isEmpty() && !stopping) {
                    cv.awaitUninterruptibly();
                }
            } finally {
                mtx.unlock();
            }
        }

        @Override
        public void wakeUp() {
            mtx.lock();
            try {
                stopping = true;
                cv.signalAll();
            } finally {
                mtx.unlock();
            }
        }
    }

    @Override
    public String toString() {
        final StringBuilder text = new StringBuilder("proxy queue of group " + gid + " (worker " + worker.thread().getName()
            + (isAlive() ? ", runs" : ", ended") + "): ");
        synchronized (stateMtx) {
            for (final Iterator<ProxyTaskState> each = stateQueue.iterator(); each.hasNext();) {
                text.append(each.next()).append(each.hasNext() ? "; " : "");
            }
        }
        return text.toString();
    }
}
