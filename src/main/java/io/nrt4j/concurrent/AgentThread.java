package io.nrt4j.concurrent;

import java.util.Objects;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The thread around an {@link Agent}: duty cycles with idling between them, until it is closed or a duty cycle throws.
 *
 * <p>The thread is a daemon: an application that returns from {@code main} without closing ends.
 *
 * <p>Threads: {@code running} is written by {@link #close} and read by the agent's thread once per cycle; {@code failure} is
 * written by the agent's thread before it tells the error handler and counts {@code ended} down.
 */
public final class AgentThread {
    private static final Logger LOG = LoggerFactory.getLogger(AgentThread.class);

    private final Agent agent;
    private final IdleStrategy idle;
    private final Consumer<Throwable> onFailure;
    private final Thread thread;
    private final CountDownLatch ended = new CountDownLatch(1);
    private volatile boolean running = true;
    private volatile Throwable failure;

    /**
     * Makes the thread without starting it.
     *
     * @param agent     what it drives.
     * @param idle      what it does between duty cycles.
     * @param onFailure told, on the agent's thread and before {@link Agent#onClose()}, what a duty cycle threw.
     */
    public AgentThread(final Agent agent, final IdleStrategy idle, final Consumer<Throwable> onFailure) {
        this.agent = Objects.requireNonNull(agent);
        this.idle = Objects.requireNonNull(idle);
        this.onFailure = Objects.requireNonNull(onFailure);
        thread = new Thread(this::run, agent.roleName());
        thread.setDaemon(true);
    }

    /**
     * Starts the thread.
     *
     * @return this.
     */
    public AgentThread start() {
        thread.start();
        return this;
    }

    /**
     * The thread, for diagnostics.
     *
     * @return never null.
     */
    public Thread thread() {
        return thread;
    }

    /**
     * What ended the agent before it was closed.
     *
     * @return null while it runs, and after an orderly end.
     */
    public Throwable failure() {
        return failure;
    }

    /**
     * Ends the thread and waits for it, at most for the given time. Idempotent; called on the agent's own thread, it does not
     * wait.
     *
     * @param timeout bound of the wait.
     * @param unit    its unit.
     * @return true if the thread has ended (or was never started).
     */
    public boolean close(final long timeout, final TimeUnit unit) {
        running = false;
        idle.wakeUp();
        if (thread.getState() == Thread.State.NEW) {
            return true;
        }
        if (Thread.currentThread() == thread) {
            return false;
        }
        final long startNs = System.nanoTime();
        final long limitNs = unit.toNanos(timeout);
        if (!Uninterrupted.await(limitNs, leftNs -> ended.await(leftNs, TimeUnit.NANOSECONDS))) {
            final StackTraceElement[] stack = thread.getStackTrace(); // once: it may end between two looks
            LOG.warn("{} did not end within {} ms; it is at {}", agent.roleName(), unit.toMillis(timeout),
                stack.length == 0 ? "its end" : stack[0]);
            return false;
        }
        // Nothing but its return is left.
        return Uninterrupted.join(thread, Math.max(TimeUnit.MILLISECONDS.toNanos(1), limitNs - (System.nanoTime() - startNs)));
    }

    /** Waits until the thread has ended, or was never started, however long it takes; an interrupt does not cut it short. */
    public void awaitEnd() {
        Uninterrupted.join(thread, Long.MAX_VALUE);
    }

    private void run() {
        try {
            agent.onStart();
            while (running) {
                idle.idle(agent.doWork());
            }
        } catch (final Throwable ex) { // an Error too: whoever waits on this agent must be told
            failure = ex;
            onFailure.accept(ex);
        } finally {
            try {
                agent.onClose();
            } catch (final RuntimeException ex) {
                LOG.error("{} failed while it closed", agent.roleName(), ex);
            } finally {
                ended.countDown();
            }
        }
    }
}
