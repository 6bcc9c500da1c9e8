package io.nrt4j.proxy;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What a runtime calls: the producer's and the consumer's side of the driver.
 *
 * <p>Threads: any.
 */
public final class ProxyTasks {
    private static final Logger LOG = LoggerFactory.getLogger(ProxyTasks.class);
    private static final long POLL_NS = 50_000;
    private static final int YIELDS = 200;

    private ProxyTasks() {
    }

    /**
     * Hands an operation's execution to the driver: one network task and one barrier task. Ports {@code enc_enq_proxy_tasks}
     * 0x105560.
     *
     * @param ctx    what is executed.
     * @param execId number of the execution, for people.
     * @throws NrtException CLOSED when the communicator was freed.
     */
    public static void enqueueProxyTasks(final EncContext ctx, final long execId) {
        final ProxyQueue queue = ctx.comm().queue();
        queue.append(new NetworkProxyTask(ctx, execId));
        queue.append(new BarrierProxyTask(ctx, execId));
    }

    /**
     * Looks at a context's first network task. Ports {@code enc_check_proxy_network_task_status}.
     *
     * @param ctx    context.
     * @param status filled when there is one; a task that is done is forgotten.
     * @return SUCCESS, or FAILURE when there is none.
     */
    public static NrtStatus checkNetworkTaskStatus(final EncContext ctx, final TaskStatus status) {
        return checkStatus(ctx, TaskType.NETWORK, status);
    }

    /**
     * Looks at a context's first barrier task. Ports {@code enc_check_proxy_barrier_task_status}.
     *
     * @param ctx    context.
     * @param status filled when there is one; a task that is done is forgotten.
     * @return SUCCESS, or FAILURE when there is none.
     */
    public static NrtStatus checkBarrierTaskStatus(final EncContext ctx, final TaskStatus status) {
        return checkStatus(ctx, TaskType.BARRIER, status);
    }

    /** Ports {@code enc_proxy_check_status} 0xfcf90. */
    private static NrtStatus checkStatus(final EncContext ctx, final TaskType type, final TaskStatus status) {
        return ctx.comm().queue().checkProxyTaskStatus(ctx, type, status);
    }

    /**
     * Waits for a context's first task of a kind and takes its outcome. Ports {@code enc_consume_proxy_task_status} 0xfd0d0.
     *
     * @param ctx      context.
     * @param type     kind.
     * @param status   filled with the outcome and its first cause.
     * @param watchdog how long the task may take before a warning is logged, and between warnings.
     * @param limit    how long to wait at all.
     * @return the task's status; FAILURE when there is no such task; TIMEOUT when it did not end in time, and may be polled again.
     */
    public static NrtStatus consumeTaskStatus(
        final EncContext ctx, final TaskType type, final TaskStatus status, final Duration watchdog, final Duration limit) {
        return consumeTaskStatus(ctx, type, status, watchdog, limit, LOG::warn);
    }

    /** As above, with a log of one's own. */
    static NrtStatus consumeTaskStatus(
        final EncContext ctx, final TaskType type, final TaskStatus status, final Duration watchdog, final Duration limit,
        final Consumer<String> log) {
        final String who = "[nec_dev " + ctx.comm().necDev() + " gid " + ctx.comm().gid() + "] ";
        final long startNs = System.nanoTime();
        long nextWarningNs = watchdog.toNanos();
        boolean interrupted = false;
        try {
            for (int polls = 0; checkStatus(ctx, type, status) == NrtStatus.SUCCESS; polls++) {
                if (status.done()) {
                    if (status.status() != NrtStatus.SUCCESS) {
                        log.accept(who + "Proxy failed to execute task, status = " + status.status().code());
                    }
                    return status.status();
                }
                final long elapsedNs = System.nanoTime() - startNs;
                if (elapsedNs >= nextWarningNs) {
                    log.accept(who + "Timeout exceeded: Waiting on proxy task type " + type.code() + ": "
                        + TimeUnit.NANOSECONDS.toSeconds(elapsedNs) + " sec");
                    nextWarningNs += Math.max(1, watchdog.toNanos());
                }
                if (elapsedNs >= limit.toNanos()) {
                    return NrtStatus.TIMEOUT;
                }
                if (polls < YIELDS) {
                    Thread.yield();
                } else {
                    // An interrupt would make the parks return at once: it is kept for the caller.
                    interrupted |= Thread.interrupted();
                    LockSupport.parkNanos(POLL_NS);
                }
            }
            return NrtStatus.FAILURE;
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }
}
