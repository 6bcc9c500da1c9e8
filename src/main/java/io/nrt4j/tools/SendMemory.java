package io.nrt4j.tools;

import io.nrt4j.NrtTensor;
import java.nio.ByteBuffer;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;

/**
 * Memory that chunks are sent from, with a count of who still needs it: the transfer and the digest lane, for each chunk.
 *
 * <p>Threads: the sending thread uses it, and the digest lane gives uses back.
 */
final class SendMemory {
    private final NrtTensor tensor;
    private final ByteBuffer bytes;
    private final Consumer<SendMemory> whenUnused;
    private final AtomicInteger uses = new AtomicInteger();

    SendMemory(final NrtTensor tensor, final ByteBuffer bytes, final Consumer<SendMemory> whenUnused) {
        this.tensor = tensor;
        this.bytes = bytes;
        this.whenUnused = whenUnused;
    }

    NrtTensor tensor() {
        return tensor;
    }

    /** All of the memory; the caller duplicates it. */
    ByteBuffer bytes() {
        return bytes;
    }

    SendMemory retain(final int more) {
        uses.addAndGet(more);
        return this;
    }

    void release() {
        if (uses.decrementAndGet() == 0) {
            whenUnused.accept(this);
        }
    }
}
