package io.nrt4j.proxy;

/** Kind of a proxy task. Ports {@code proxy_task_state_type_t}. */
public enum TaskType {
    /** No task. */
    UNKNOWN(0),
    /** Drives the network side over the seam. */
    NETWORK(1),
    /** A barrier between the hosts; never crosses the seam. */
    BARRIER(2);

    private final int code;

    TaskType(final int code) {
        this.code = code;
    }

    /**
     * Value in the original.
     *
     * @return 0 to 2.
     */
    public int code() {
        return code;
    }
}
