package io.nrt4j.proxy;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;

/**
 * Something that the worker moves on step by step. Ports {@code enc_proxy_task} (88 B: wq +8, ctx +16, exec_id +24, proxy_state +32,
 * start_proxy_task_host_mem_addrs +48, streams_n +80) with its pure virtual {@code step()}.
 *
 * <p>Threads: made by a producer, handed over by {@link ProxyQueue#append}; from then on only the worker touches it. Its
 * {@link #state()} is what others may look at; {@code runState} is the worker's.
 */
public abstract class ProxyTask {
    private final EncContext ctx;
    private final long execId;
    private final ProxyTaskState state;
    /** The worker's own copy of the published run state: a pass over idle tasks touches nothing that others read. */
    private RunState runState = RunState.INIT;

    ProxyTask(final EncContext ctx, final long execId, final TaskType type) {
        this.ctx = ctx;
        this.execId = execId;
        state = new ProxyTaskState(ctx, type);
    }

    /**
     * Moves the task on by one step and publishes where it is. Worker only; must not block; allocates nothing while nothing changes.
     *
     * @return outcome so far.
     */
    public abstract NrtStatus step();

    /** The worker took the task over. */
    void onDrain() {
    }

    /** The worker drops the task, which is DONE. */
    void onDrop() {
    }

    /** Where the task is, for the worker. */
    final RunState runState() {
        return runState;
    }

    /** Publishes where the task is. Worker only. A task that stays where it is costs no store. */
    final void move(final RunState next) {
        if (runState != next) {
            runState = next;
            state.publish(next);
        }
    }

    /** Publishes a failure, once: a task that is DONE keeps its outcome. Worker only. */
    final void fail(final NrtException cause) {
        if (runState != RunState.DONE) {
            runState = RunState.DONE;
            state.publishFailure(cause);
        }
    }

    final EncContext ctx() {
        return ctx;
    }

    final long execId() {
        return execId;
    }

    final ProxyTaskState state() {
        return state;
    }

    /** Rank whose list the task is in. Ports {@code get_rank_id}. */
    final int rankId() {
        return ctx.comm().rank();
    }

    @Override
    public String toString() {
        return state + " execution " + execId;
    }
}
