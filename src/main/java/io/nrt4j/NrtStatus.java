package io.nrt4j;

/**
 * Status of a runtime call, with the values of the C enumeration {@code NRT_STATUS}.
 *
 * <p>Every method of the public API answers one of these; no run-time condition is reported by an exception.
 */
public enum NrtStatus {
    /** The call did what it says. */
    SUCCESS(0),
    /** Non-specific failure; the text is in the log and in the caller's last error. */
    FAILURE(1),
    /** An argument is invalid. */
    INVALID(2),
    /** A handle is stale, was never filled, or names something that is not usable yet. */
    INVALID_HANDLE(3),
    /** A limit is reached: communicators of an LNC, pending requests of a communicator, threads. */
    RESOURCE(4),
    /** A time limit passed. */
    TIMEOUT(5),
    /** Hardware failure. */
    HW_ERROR(6),
    /** Not enough space in the execution queue. */
    QUEUE_FULL(7),
    /** Not enough neuron cores to load. */
    LOAD_NOT_ENOUGH_NC(9),
    /** The NEFF's version is not supported. */
    UNSUPPORTED_NEFF_VERSION(10),
    /** Host memory could not be allocated. */
    FAIL_HOST_MEM_ALLOC(11),
    /** The runtime is not initialised. */
    UNINITIALIZED(13),
    /** The runtime is closed. */
    CLOSED(14),
    /** A queue is empty. */
    QUEUE_EMPTY(15),
    /** The execution unit cannot recover. */
    EXEC_UNIT_UNRECOVERABLE(101),
    /** Invalid input was handed to an execution. */
    EXEC_BAD_INPUT(1002),
    /** Execution completed with numerical errors. */
    EXEC_COMPLETED_WITH_NUM_ERR(1003),
    /** Execution completed with other errors. */
    EXEC_COMPLETED_WITH_ERR(1004),
    /** The neuron core is busy. */
    EXEC_NC_BUSY(1005),
    /** Out-of-bounds access during an execution. */
    EXEC_OOB(1006),
    /** A collective is pending. */
    COLL_PENDING(1100),
    /** Hardware error in the collectives. */
    EXEC_HW_ERR_COLLECTIVES(1200),
    /** Uncorrectable error of the device memory. */
    EXEC_HW_ERR_HBM_UE(1201),
    /** Uncorrectable error of the neuron core. */
    EXEC_HW_ERR_NC_UE(1202),
    /** A DMA was aborted. */
    EXEC_HW_ERR_DMA_ABORT(1203),
    /** A software notification queue overflowed. */
    EXEC_SW_NQ_OVERFLOW(1204),
    /** Uncorrectable error of the device memory that a repair can cure. */
    EXEC_HW_ERR_REPAIRABLE_HBM_UE(1205),
    /** The network proxy failed. */
    NETWORK_PROXY_FAILURE(1206);

    private static final NrtStatus[] VALUES = values();

    private final int code;

    NrtStatus(final int code) {
        this.code = code;
    }

    /**
     * The C value.
     *
     * @return value of the constant in {@code NRT_STATUS}.
     */
    public int code() {
        return code;
    }

    /**
     * Looks a status up by its C value.
     *
     * @param code value of {@code NRT_STATUS}.
     * @return the status.
     * @throws IllegalArgumentException if no status has this value.
     */
    public static NrtStatus fromCode(final int code) {
        for (final NrtStatus status : VALUES) {
            if (status.code == code) {
                return status;
            }
        }
        throw new IllegalArgumentException("no NRT_STATUS has the value " + code);
    }

    /**
     * Looks a status up by its name, with or without the C prefix {@code NRT_}.
     *
     * @param name such as {@code RESOURCE} or {@code NRT_RESOURCE}.
     * @return the status.
     * @throws IllegalArgumentException if no status has this name.
     */
    public static NrtStatus fromName(final String name) {
        final String bare = name.startsWith("NRT_") ? name.substring("NRT_".length()) : name;
        for (final NrtStatus status : VALUES) {
            if (status.name().equals(bare)) {
                return status;
            }
        }
        throw new IllegalArgumentException("no NRT_STATUS has the name '" + name + "'");
    }
}
