package io.nrt4j.sendrecv;

/**
 * State of a communicator. Ports {@code async_sr_comm_status}.
 *
 * <pre>
 *   SEND  START_INIT(0) &gt; WAIT_FOR_NET_HANDLE_GET(2) &gt; NET_CONNECT(4) &gt; CONNECTED(6)
 *   RECV  START_INIT(0) &gt; WAIT_FOR_HOSTNAME(1) &gt; LISTEN(5) &gt; WAIT_FOR_NET_HANDLE_SET(3) &gt; NET_CONNECT(4) &gt; CONNECTED(6)
 *   any state but CONNECTED &gt; CONNECTION_ERROR(7)
 * </pre>
 *
 * <p>Two steps back are ours: a SEND whose handle proves stale (its listener died) starts again, and a RECV whose handle was
 * lost with the key-value server, or taken by a peer that never came, publishes it again.
 */
enum CommStatus {
    /** Nothing was asked for yet. */
    START_INIT(0),
    /** RECV asks the peer's key-value server for the peer's host identity. */
    WAIT_FOR_HOSTNAME(1),
    /** SEND waits for the receiver's listen handle. */
    WAIT_FOR_NET_HANDLE_GET(2),
    /** RECV publishes its listen handle. */
    WAIT_FOR_NET_HANDLE_SET(3),
    /** The transport connects, or accepts. */
    NET_CONNECT(4),
    /** RECV is about to listen. */
    LISTEN(5),
    /** Transfers may be posted. */
    CONNECTED(6),
    /** Given up; the communicator's failure says why. */
    CONNECTION_ERROR(7);

    private final int code;

    CommStatus(final int code) {
        this.code = code;
    }

    int code() {
        return code;
    }

    /** No connect step follows any more. */
    boolean isTerminal() {
        return this == CONNECTED || this == CONNECTION_ERROR;
    }

    /** Whether a communicator of this type is ever in this state. */
    boolean isLegalFor(final CommType type) {
        return switch (this) {
            case WAIT_FOR_HOSTNAME, LISTEN, WAIT_FOR_NET_HANDLE_SET -> type == CommType.RECV_COMM;
            case WAIT_FOR_NET_HANDLE_GET -> type == CommType.SEND_COMM;
            default -> true;
        };
    }

    /** Whether the walk of this type goes from here to {@code next}. */
    boolean mayMoveTo(final CommStatus next, final CommType type) {
        if (!isLegalFor(type) || !next.isLegalFor(type) || isTerminal()) {
            return false;
        }
        if (next == CONNECTION_ERROR) {
            return true;
        }
        return switch (this) {
            case START_INIT -> next == WAIT_FOR_HOSTNAME || next == WAIT_FOR_NET_HANDLE_GET;
            case WAIT_FOR_HOSTNAME -> next == LISTEN;
            case LISTEN -> next == WAIT_FOR_NET_HANDLE_SET;
            case WAIT_FOR_NET_HANDLE_GET, WAIT_FOR_NET_HANDLE_SET -> next == NET_CONNECT;
            case NET_CONNECT -> next == CONNECTED
                || (type == CommType.SEND_COMM ? next == START_INIT : next == WAIT_FOR_NET_HANDLE_SET);
            default -> false;
        };
    }
}
