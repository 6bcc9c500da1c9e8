package io.nrt4j.sendrecv;

/** State of a request slot. Ports {@code async_sr_request_status}; the numbers are the low bits of a slot's state word. */
enum RequestStatus {
    /** In the communicator's pool. */
    FREE(0),
    /** Waits in the stash ring for the service thread, which registers its memory and posts it. */
    STASHED(1),
    /** The transport has it. */
    OFI_POSTED(2),
    /** It failed; the next test tells why and recycles it. */
    ERROR(3);

    private static final RequestStatus[] VALUES = values();

    private final int code;

    RequestStatus(final int code) {
        this.code = code;
    }

    int code() {
        return code;
    }

    static RequestStatus fromCode(final int code) {
        return VALUES[code];
    }
}
