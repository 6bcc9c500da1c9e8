package io.nrt4j.net;

/** What the end of an address entry means. Ports {@code net_addr_mark_t}. */
public enum NetAddrMark {
    /** A transfer in the middle of an operation. */
    NET_TRANSFER(0),
    /** A transfer that ends a round of its operation: the operation's semaphores are stored. */
    NET_OP_COMPLETE(1),
    /** The end of the block's list. With an address it is a transfer as well, and ends its operation; without, it only ends. */
    EXEC_COMPLETE(2);

    private final int code;

    NetAddrMark(final int code) {
        this.code = code;
    }

    /**
     * Value in the native record.
     *
     * @return 0 to 2.
     */
    public int code() {
        return code;
    }
}
