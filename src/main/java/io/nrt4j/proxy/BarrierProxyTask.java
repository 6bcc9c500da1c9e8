package io.nrt4j.proxy;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.net.NativeWord;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The execution barrier between the hosts of a communicator, in pieces that the worker can leave and come back to.
 *
 * <pre>
 *   trigger --> turn --> arrive --> leader: store the semaphores --> depart --> DONE
 *   (waiting)   (idle)   (idle)                                     (idle)
 * </pre>
 *
 * <p>The barriers of one communicator take turns in the order in which they were appended, so that round n of one rank meets round
 * n of the others. After a barrier that failed, every later one of the communicator fails with its cause: the ranks do not agree on
 * the round any more.
 *
 * <p>Ports {@code enc_barrier_proxy_task} (128 B; exec_id +88, barrier_done_semaphore_inc_addrs[4] +96), {@code step} 0x1ce830 and
 * {@code inc_leader_sps_barrier_done_semas} 0x1ce7b0, without the sleep that would block the other ranks of the worker.
 */
public final class BarrierProxyTask extends ProxyTask {
    private static final Logger LOG = LoggerFactory.getLogger(BarrierProxyTask.class);
    private static final int SEMAPHORE_INCREMENT = 1;

    private final GlobalComm comm;
    private long round;
    private boolean arrived;

    /**
     * Makes the task.
     *
     * @param ctx    what it belongs to.
     * @param execId number of the execution.
     */
    public BarrierProxyTask(final EncContext ctx, final long execId) {
        super(ctx, execId, TaskType.BARRIER);
        comm = ctx.comm();
    }

    @Override
    void onDrain() {
        round = comm.nextBarrierRound();
    }

    @Override
    public NrtStatus step() {
        switch (runState()) {
            case INIT, WAITING_DEVICE_TRIGGER -> awaitTrigger();
            case PROGRESSING, IDLE -> meet();
            case DONE -> LOG.error("Task shouldn't be polled after it reached a done state: {}", this);
            default -> throw new AssertionError(state());
        }
        return state().progressStatus();
    }

    private void awaitTrigger() {
        if (ctx().trigger().canStart()) {
            LOG.debug("[nec_dev {}] run enc_barrier_proxy_task for enc_context {}", comm.necDev(), ctx());
            ctx().trigger().clear();
            move(RunState.PROGRESSING);
        } else {
            move(RunState.WAITING_DEVICE_TRIGGER);
        }
    }

    private void meet() {
        final NrtException broken = comm.barrierFailure();
        if (broken != null) {
            fail(new NrtException(broken.status(), "[nec_dev " + comm.necDev() + "] barrier round " + round
                + ": an earlier round failed: " + broken.getMessage(), broken));
        } else if (comm.barrierTurn() != round) {
            move(RunState.IDLE);
        } else {
            try {
                move(arriveAndDepart() ? RunState.DONE : RunState.IDLE);
            } catch (final RuntimeException ex) {
                final NrtStatus status = ex instanceof NrtException known ? known.status() : NrtStatus.FAILURE;
                fail(new NrtException(status, "[nec_dev " + comm.necDev() + "] barrier round " + round + ", execution "
                    + execId() + ", could not " + (arrived ? "depart" : "arrive") + ": " + ex.getMessage(), ex));
            }
        }
    }

    private boolean arriveAndDepart() {
        if (!arrived) {
            if (!comm.barrier().arrive(round)) {
                return false;
            }
            arrived = true;
            if (comm.barrier().isLeader()) {
                for (final NativeWord semaphore : ctx().barrierDoneSemaphores()) {
                    semaphore.store(SEMAPHORE_INCREMENT);
                }
            }
        }
        return comm.barrier().depart(round);
    }

    @Override
    void onDrop() {
        comm.endBarrier(round, state().failure());
    }
}
