package io.nrt4j.net.loopback;

import com.sun.jna.Pointer;
import java.nio.ByteBuffer;

/**
 * A registered range of memory, with views through which its bytes are copied.
 *
 * <p>The views neither own nor keep the memory. Segments of at most 1 GiB make ranges beyond 2 GiB reachable.
 *
 * <p>Threads: {@code segments} is set before the registration is handed out and cleared under the lock of its channel, under
 * which alone bytes are copied; so a deregistration that returned means that the memory is not touched any more.
 */
final class Registration extends HandleTable.Entry {
    private static final int SEGMENT_BITS = 30;
    private static final int SEGMENT_BYTES = 1 << SEGMENT_BITS;
    private static final long SEGMENT_MASK = SEGMENT_BYTES - 1;

    private final LoopbackEnd end;
    private final long address;
    private final long sizeBytes;
    private ByteBuffer[] segments;

    Registration(final LoopbackEnd end, final long address, final long sizeBytes) {
        this.end = end;
        this.address = address;
        this.sizeBytes = sizeBytes;
        segments = new ByteBuffer[(int) ((sizeBytes + SEGMENT_MASK) >>> SEGMENT_BITS)];
        final Pointer memory = new Pointer(address);
        for (int i = 0; i < segments.length; i++) {
            final long offset = (long) i << SEGMENT_BITS;
            segments[i] = memory.getByteBuffer(offset, Math.min(sizeBytes - offset, SEGMENT_BYTES));
        }
    }

    /** The end that it was made for. */
    LoopbackEnd end() {
        return end;
    }

    /** Distance of an address from the first registered byte; may be outside. */
    long offsetOf(final long of) {
        return of - address;
    }

    /** Whether the whole range is registered. */
    boolean covers(final long of, final long lengthBytes) {
        final long offset = of - address;
        return offset >= 0 && offset <= sizeBytes && lengthBytes <= sizeBytes - offset;
    }

    /** Whether it has not been ended. Under the channel's lock. */
    boolean isLive() {
        return segments != null;
    }

    /** Ends it: the views go. Under the channel's lock. */
    void invalidate() {
        segments = null;
    }

    /** Copies bytes from one registered range to another. Under the channel's lock; both live; the ranges were checked. */
    static void copy(
        final Registration from, final long fromOffset, final Registration to, final long toOffset, final long lengthBytes) {
        long done = 0;
        while (done < lengthBytes) {
            final long source = fromOffset + done;
            final long target = toOffset + done;
            final int sourceIndex = (int) (source & SEGMENT_MASK);
            final int targetIndex = (int) (target & SEGMENT_MASK);
            final int chunk = (int) Math.min(lengthBytes - done, SEGMENT_BYTES - Math.max(sourceIndex, targetIndex));
            to.segments[(int) (target >>> SEGMENT_BITS)].put(
                targetIndex, from.segments[(int) (source >>> SEGMENT_BITS)], sourceIndex, chunk);
            done += chunk;
        }
    }

    @Override
    public String toString() {
        return "registration 0x" + Long.toHexString(handle()) + " of 0x" + Long.toHexString(address) + "+" + sizeBytes;
    }
}
