package io.nrt4j.proxy;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;

/**
 * What a poll of a task answers, in the caller's own object: the out-parameters of {@code enc_proxy_check_status}. Used by one
 * thread at a time.
 */
public final class TaskStatus {
    private boolean done;
    private NrtStatus status = NrtStatus.SUCCESS;
    private NrtException failure;

    /** Makes a status that says nothing yet. */
    public TaskStatus() {
        // The fields' first values are the right ones.
    }

    void set(final boolean newDone, final NrtStatus newStatus, final NrtException newFailure) {
        done = newDone;
        status = newStatus;
        failure = newFailure;
    }

    /**
     * Whether the task has ended, well or not.
     *
     * @return true once; the task is forgotten with it.
     */
    public boolean done() {
        return done;
    }

    /**
     * Outcome.
     *
     * @return SUCCESS while the task runs.
     */
    public NrtStatus status() {
        return status;
    }

    /**
     * First cause of a failure.
     *
     * @return null unless the task failed.
     */
    public NrtException failure() {
        return failure;
    }

    @Override
    public String toString() {
        return (done ? "done, " : "running, ") + status + (failure == null ? "" : ": " + failure.getMessage());
    }
}
