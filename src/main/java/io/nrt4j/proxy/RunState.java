package io.nrt4j.proxy;

/**
 * Where a proxy task is. Ports {@code proxy_task_run_state_t}.
 *
 * <pre>
 *   INIT 0 --> WAITING_DEVICE_TRIGGER 2 --> PROGRESSING 1 &lt;--> IDLE 3
 *     |                                          |              |
 *     +-------(nothing to wait for)--------------+              |
 *     +-------(skipped, failed)----> DONE 4 &lt;----+--------------+
 * </pre>
 *
 * <p>IDLE is no end: the task made no progress in its last tick and is ticked again.
 */
public enum RunState {
    /** Not stepped yet, or not begun. */
    INIT(0),
    /** In flight, and something moved in the last tick. */
    PROGRESSING(1),
    /** Begun, but the device has not released it. */
    WAITING_DEVICE_TRIGGER(2),
    /** In flight, and nothing moved in the last tick. */
    IDLE(3),
    /** Ended, well or not: the only state that lets the worker drop the task. */
    DONE(4);

    private final int code;

    RunState(final int code) {
        this.code = code;
    }

    /**
     * Value in the original.
     *
     * @return 0 to 4.
     */
    public int code() {
        return code;
    }
}
