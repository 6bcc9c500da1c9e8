package io.nrt4j.tools;

import io.nrt4j.NrtConfig;
import java.time.Duration;

/**
 * How a transfer is made.
 *
 * @param transport  name; null for the configured one.
 * @param lnc        own LNC.
 * @param peerLnc    the peer's.
 * @param inFlight   chunks in flight.
 * @param chunkBytes longest message.
 * @param timeout    longest time without any progress, and of connecting.
 * @param port       of the key-value store; 0 for the configured one, or any free one when both ends are in this JVM.
 */
record TransferOptions(
    String transport, int lnc, int peerLnc, int inFlight, long chunkBytes, Duration timeout, int port) {

    /** A configuration over the environment's. */
    NrtConfig.Builder config(final int portOrZero) {
        final NrtConfig.Builder builder = NrtConfig.builder().asyncSendRecvEnabled(true).connectTimeout(timeout);
        if (transport != null) {
            builder.transport(transport);
        }
        if (portOrZero != 0) {
            builder.bootstrapPort(portOrZero);
        }
        return builder;
    }
}
