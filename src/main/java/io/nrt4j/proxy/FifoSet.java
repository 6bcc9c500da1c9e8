package io.nrt4j.proxy;

import io.nrt4j.net.NetDestAddr;
import io.nrt4j.net.NetOpsInfo;
import io.nrt4j.net.NetSrcAddr;
import java.util.ArrayList;
import java.util.List;

/**
 * The three descriptor lists of a basic block, as they cross the seam. Ports {@code enc_fifo_set} (72 B: src_addr_fifo +0,
 * dest_addr_fifo +24, net_ops_info_fifo +48).
 *
 * @param operations   the block's operations.
 * @param sources      what is sent; empty, or ending in EXEC_COMPLETE.
 * @param destinations what is received; empty, or ending in EXEC_COMPLETE.
 */
public record FifoSet(NetOpsInfo[] operations, NetSrcAddr[] sources, NetDestAddr[] destinations) {
    /**
     * Starts a set.
     *
     * @return a builder.
     */
    public static Builder builder() {
        return new Builder();
    }

    /** Collects descriptors. Not safe for use by several threads. */
    public static final class Builder {
        private final List<NetOpsInfo> operations = new ArrayList<>();
        private final List<NetSrcAddr> sources = new ArrayList<>();
        private final List<NetDestAddr> destinations = new ArrayList<>();

        private Builder() {
        }

        /**
         * Adds an operation.
         *
         * @param operation named by its index from then on.
         * @return this.
         */
        public Builder operation(final NetOpsInfo operation) {
            operations.add(operation);
            return this;
        }

        /**
         * Adds a send.
         *
         * @param entry the next one.
         * @return this.
         */
        public Builder send(final NetSrcAddr entry) {
            sources.add(entry);
            return this;
        }

        /**
         * Adds a receive.
         *
         * @param entry the next one.
         * @return this.
         */
        public Builder receive(final NetDestAddr entry) {
            destinations.add(entry);
            return this;
        }

        /**
         * Makes the set; a list that has entries is ended. Ports {@code proxy_end_operation}.
         *
         * @return the set.
         */
        public FifoSet build() {
            if (!sources.isEmpty()) {
                sources.add(NetSrcAddr.end());
            }
            if (!destinations.isEmpty()) {
                destinations.add(NetDestAddr.end());
            }
            return new FifoSet(operations.toArray(NetOpsInfo[]::new), sources.toArray(NetSrcAddr[]::new),
                destinations.toArray(NetDestAddr[]::new));
        }
    }
}
