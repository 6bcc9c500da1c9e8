package io.nrt4j.net.libfabric;

/**
 * The libfabric calls of the data path, with addresses as {@code long}. Answers are libfabric's: 0 or a count, or a negative
 * error number.
 *
 * <p>Threads: one at a time, under the endpoint's lock. No call blocks, calls back or allocates.
 */
interface DataPath {
    /** The fastest that this JVM has: through {@code java.lang.foreign}, or through libffi. */
    static DataPath open(final long endpoint, final long queue) {
        final FabricCalls calls = FabricCalls.of(endpoint, queue);
        return ForeignCalls.available() ? new ForeignDataPath(calls) : new FfiDataPath(calls);
    }

    /** {@code fi_trecv} from any source; {@code ignore} has the tag bits that do not matter. */
    long recv(long buffer, long length, long descriptor, long tag, long ignore, long context);

    /** {@code fi_tsend}. */
    long send(long buffer, long length, long descriptor, long destination, long tag, long context);

    /** {@code fi_tinject}: the buffer is free when it returns, and there is no completion. */
    long inject(long buffer, long length, long destination, long tag);

    /** {@code fi_cq_read} into an array of {@code fi_cq_tagged_entry}. */
    long cqRead(long entries, long count);

    /** {@code fi_cq_readerr} into a zeroed {@code fi_cq_err_entry}. */
    long cqReadError(long entry);

    /** {@code fi_cancel}. */
    long cancel(long context);

    /** Frees what the calls need. The endpoint must not be used afterwards. */
    void free();
}
