package io.nrt4j.net.libfabric;

/**
 * Where the data calls of an enabled endpoint and its completion queue are: libfabric's are inline functions over tables of
 * function pointers, so there is no symbol to bind.
 *
 * @param endpoint  {@code struct fid_ep *}.
 * @param queue     {@code struct fid_cq *}.
 * @param recv      {@code fi_trecv}'s function.
 * @param send      {@code fi_tsend}'s.
 * @param inject    {@code fi_tinject}'s.
 * @param read      {@code fi_cq_read}'s.
 * @param readError {@code fi_cq_readerr}'s.
 * @param cancel    {@code fi_cancel}'s.
 */
record FabricCalls(long endpoint, long queue, long recv, long send, long inject, long read, long readError, long cancel) {
    static FabricCalls of(final long endpoint, final long queue) {
        final long tagged = Memory.getLong(endpoint + FiLayout.EP_TAGGED_OPS);
        final long queueOps = Memory.getLong(queue + FiLayout.OBJECT_OPS);
        return new FabricCalls(endpoint, queue,
            Memory.getLong(tagged + FiLayout.TAGGED_OPS_RECV),
            Memory.getLong(tagged + FiLayout.TAGGED_OPS_SEND),
            Memory.getLong(tagged + FiLayout.TAGGED_OPS_INJECT),
            Memory.getLong(queueOps + FiLayout.CQ_OPS_READ),
            Memory.getLong(queueOps + FiLayout.CQ_OPS_READERR),
            Memory.getLong(Memory.getLong(endpoint + FiLayout.OBJECT_OPS) + FiLayout.EP_OPS_CANCEL));
    }
}
