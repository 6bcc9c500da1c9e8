package io.nrt4j.sendrecv;

import java.util.Optional;

/**
 * Handle of a communicator: made by the caller, filled by {@link NrtAsyncSendRecv#connect} or {@link NrtAsyncSendRecv#accept},
 * and asked with {@link NrtAsyncSendRecv#testComm}. The communicator itself belongs to its LNC and ends with it.
 *
 * <p>Threads: any; {@code communicator} is written by connect and accept, and read by every call, as a volatile. Ports the
 * {@code nrt_async_sendrecv_comm_t *} of the C API.
 */
public final class SendRecvComm {
    private volatile Communicator communicator;

    /** An empty handle. */
    public SendRecvComm() {
    }

    Communicator communicator() {
        return communicator;
    }

    void fill(final Communicator filled) {
        communicator = filled;
    }

    /**
     * Whether transfers can be posted, now: unlike the C function's out-parameter it needs no {@link NrtAsyncSendRecv#testComm}.
     *
     * @return true from the moment the communicator is connected until its LNC is closed or has failed.
     */
    public boolean connected() {
        final Communicator present = communicator;
        return present != null && present.status() == CommStatus.CONNECTED && !present.isDead() && present.context().fatal() == null;
    }

    /** Whether it names a communicator that connects or is connected. */
    boolean isActive() {
        final Communicator present = communicator;
        return present != null && !present.isDead() && present.status() != CommStatus.CONNECTION_ERROR;
    }

    /**
     * Why the communicator did not connect.
     *
     * @return empty unless it failed.
     */
    public Optional<CommFailure> failure() {
        final Communicator present = communicator;
        return present == null ? Optional.empty() : Optional.ofNullable(present.failure());
    }

    @Override
    public String toString() {
        final Communicator present = communicator;
        return present == null ? "empty communicator handle"
            : present + " (" + present.status() + (present.isDead() ? ", closed" : "") + ")";
    }
}
