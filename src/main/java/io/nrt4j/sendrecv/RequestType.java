package io.nrt4j.sendrecv;

/** Direction of a request. Ports {@code async_sr_request_type}. */
enum RequestType {
    /** A slot that is not in use. */
    NOTYPE(0),
    /** A send. */
    ISEND(1),
    /** A receive. */
    IRECV(2);

    private final int code;

    RequestType(final int code) {
        this.code = code;
    }

    int code() {
        return code;
    }

    static RequestType of(final CommType type) {
        return type == CommType.SEND_COMM ? ISEND : IRECV;
    }
}
