package io.nrt4j.proxy;

import io.nrt4j.NrtStatus;
import java.util.function.UnaryOperator;

/** A task whose steps a test writes: from the present run state to the next one. */
final class StubTask extends ProxyTask {
    private final UnaryOperator<RunState> stepper;
    private volatile int steps;

    StubTask(final EncContext ctx, final TaskType type, final UnaryOperator<RunState> stepper) {
        super(ctx, 0, type);
        this.stepper = stepper;
    }

    /** A task that is done after a number of steps, idle before. */
    static StubTask doneAfter(final EncContext ctx, final int steps) {
        final int[] left = {steps};
        return new StubTask(ctx, TaskType.NETWORK, state -> --left[0] > 0 ? RunState.IDLE : RunState.DONE);
    }

    @Override
    public NrtStatus step() {
        final RunState next = stepper.apply(state().runState());
        steps = steps + 1;
        move(next);
        return state().progressStatus();
    }

    int steps() {
        return steps;
    }
}
