package io.nrt4j.net.libfabric;

/**
 * What suits a provider.
 *
 * @param eagerLimit   longest message that travels inside a library message, in bytes: below it a copy at each end costs less
 *                     than a message of its own for the announcement.
 * @param flushDelayNs how long the announcement of a short receive waits for a message to ride on.
 * @param endpointPerPeer whether each peer process gets an endpoint of its own. shm completes long sends of an endpoint in their
 *                     order: one that a killed peer never answers holds up those to all others. {@link ShmRescue} relies on it, too.
 */
record EndpointTuning(int eagerLimit, long flushDelayNs, boolean endpointPerPeer) {
    /** Longest that any provider is given, so that library buffers stay small. */
    private static final int MAX_EAGER = 8192;

    static EndpointTuning of(final FabricInfo info) {
        return "shm".equals(info.provider()) ? new EndpointTuning(4096, 2_000, true)
            : new EndpointTuning(MAX_EAGER, 10_000, false);
    }
}
