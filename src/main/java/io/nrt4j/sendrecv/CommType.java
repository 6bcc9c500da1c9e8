package io.nrt4j.sendrecv;

/** Direction of a communicator. Ports {@code async_sr_comm_type}. */
enum CommType {
    /** Posts sends only. */
    SEND_COMM(0, "send"),
    /** Posts receives only. */
    RECV_COMM(1, "recv");

    private final int code;
    private final String word;

    CommType(final int code, final String word) {
        this.code = code;
        this.word = word;
    }

    int code() {
        return code;
    }

    /** For texts. */
    String word() {
        return word;
    }
}
