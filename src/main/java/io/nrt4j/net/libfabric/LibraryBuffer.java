package io.nrt4j.net.libfabric;

import java.nio.ByteBuffer;

/** One buffer for library messages, received or sent. Threads: under the endpoint's lock. */
final class LibraryBuffer {
    final ByteBuffer bytes;
    final long address;
    final long descriptor;
    /** Whose buffer it is. */
    final FabricEndpoint endpoint;
    /** Operation that it is posted with for its whole life. */
    int op = OpTable.NONE;
    /** Who sent what it holds while it is pinned, or whose send buffer it is. */
    Peer peer;
    /** What it held was consumed, and its credit is given back when it receives again. */
    boolean consumed;
    /** Length of the message that is to be sent. */
    int length;
    /** Next one in a list of free, unposted or waiting buffers. */
    LibraryBuffer next;

    LibraryBuffer(final FabricEndpoint endpoint, final long address, final int sizeBytes, final long descriptor) {
        this.endpoint = endpoint;
        this.address = address;
        this.descriptor = descriptor;
        bytes = Memory.view(address, sizeBytes);
    }
}
