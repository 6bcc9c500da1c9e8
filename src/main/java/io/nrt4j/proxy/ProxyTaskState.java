package io.nrt4j.proxy;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;

/**
 * What the worker publishes about a task and a consumer reads; the only thing that both touch. Ports {@code enc_proxy_task_state}
 * (24 B: progress_status +0, enc_ctx +8, task_type +16, run_state +20).
 *
 * <p>Threads: the worker writes {@code progressStatus} and {@code failure} before the volatile store of {@code runState}; a
 * consumer reads {@code runState} first. Status and cause are final once it is DONE.
 */
public final class ProxyTaskState {
    private final EncContext encCtx;
    private final TaskType taskType;
    private NrtStatus progressStatus = NrtStatus.SUCCESS;
    private NrtException failure;
    private volatile RunState runState = RunState.INIT;

    ProxyTaskState(final EncContext encCtx, final TaskType taskType) {
        this.encCtx = encCtx;
        this.taskType = taskType;
    }

    EncContext encCtx() {
        return encCtx;
    }

    TaskType taskType() {
        return taskType;
    }

    /**
     * Where the task is.
     *
     * @return never null.
     */
    public RunState runState() {
        return runState;
    }

    /** Outcome; read after {@link #runState()}. */
    NrtStatus progressStatus() {
        return progressStatus;
    }

    /** First cause of a failure, or null; read after {@link #runState()}. */
    NrtException failure() {
        return failure;
    }

    /** By {@link ProxyTask#move} only. */
    void publish(final RunState next) {
        runState = next;
    }

    /** By {@link ProxyTask#fail} only. */
    void publishFailure(final NrtException cause) {
        progressStatus = cause.status();
        failure = cause;
        runState = RunState.DONE;
    }

    @Override
    public String toString() {
        final RunState seen = runState;
        return taskType + " task of " + encCtx + " (" + seen + ", " + progressStatus
            + (failure == null ? "" : ": " + failure.getMessage()) + ")";
    }
}
