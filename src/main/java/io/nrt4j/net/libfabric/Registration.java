package io.nrt4j.net.libfabric;

import java.nio.ByteBuffer;

/**
 * A registered range of user memory. The native registration lives until it was closed and no operation holds it: the
 * provider may still touch the memory of an operation whose request was answered without it.
 *
 * <p>Threads: under the endpoint's lock.
 */
final class Registration {
    private static final int WINDOW_SHIFT = 30;
    private static final long WINDOW = 1L << WINDOW_SHIFT;
    /** What a window reaches beyond its stride, so that a short copy never crosses two. */
    private static final int OVERLAP = 1 << 20;

    final long id;
    /** Handle of the communicator that it was made for. */
    final long comm;
    /** For the provider, 0 where it asks for none. */
    final long descriptor;
    private final long address;
    private final long sizeBytes;
    private final ByteBuffer[] windows;
    private final FabricEndpoint endpoint;
    private final long nativeRegistration;
    private int holds = 1;
    private boolean closed;

    Registration(final long id, final long comm, final long address, final long sizeBytes, final FabricEndpoint endpoint,
        final long nativeRegistration) {
        this.id = id;
        this.comm = comm;
        this.address = address;
        this.sizeBytes = sizeBytes;
        this.endpoint = endpoint;
        this.nativeRegistration = nativeRegistration;
        descriptor = nativeRegistration == 0 ? 0 : Memory.getLong(nativeRegistration + FiLayout.MR_MEM_DESC);
        windows = new ByteBuffer[(int) ((sizeBytes + WINDOW - 1) >>> WINDOW_SHIFT)];
        for (int i = 0; i < windows.length; i++) {
            final long start = (long) i << WINDOW_SHIFT;
            windows[i] = Memory.view(address + start, Math.min(sizeBytes - start, WINDOW + OVERLAP));
        }
    }

    boolean covers(final long start, final long lengthBytes) {
        final long offset = start - address;
        return offset >= 0 && offset <= sizeBytes && lengthBytes <= sizeBytes - offset;
    }

    /** Copies from user memory; at most 1 MiB. */
    void copyFrom(final long start, final ByteBuffer target, final int at, final int lengthBytes) {
        if (lengthBytes > 0) {
            final long offset = start - address;
            target.put(at, windows[(int) (offset >>> WINDOW_SHIFT)], (int) (offset & WINDOW - 1), lengthBytes);
        }
    }

    /** Copies into user memory; at most 1 MiB. */
    void copyTo(final long start, final ByteBuffer source, final int at, final int lengthBytes) {
        if (lengthBytes > 0) {
            final long offset = start - address;
            windows[(int) (offset >>> WINDOW_SHIFT)].put((int) (offset & WINDOW - 1), source, at, lengthBytes);
        }
    }

    void hold() {
        holds++;
    }

    void release() {
        if (--holds == 0 && nativeRegistration != 0) {
            endpoint.deregister(nativeRegistration);
        }
    }

    /** Ends it for new posts. Idempotent. */
    void close() {
        if (!closed) {
            closed = true;
            release();
        }
    }
}
