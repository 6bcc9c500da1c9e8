package io.nrt4j.net.opfifo;

import io.nrt4j.net.NativeWord;

/**
 * One semaphore word of an operation and its count. The edge to the device is a store that comes after the data.
 *
 * <p>Threads: the thread that drives the block.
 */
final class Semaphore {
    private static final Semaphore ABSENT = new Semaphore(null, null, 0);

    private final NativeWord word;
    private final SemaphoreStyle style;
    private final int shift;
    private int count;

    private Semaphore(final NativeWord word, final SemaphoreStyle style, final int shift) {
        this.word = word;
        this.style = style;
        this.shift = shift;
    }

    /** A semaphore at an address, or one that does nothing at address 0. */
    static Semaphore of(final long address, final SemaphoreStyle style, final int shift) {
        return address == 0 ? ABSENT : new Semaphore(NativeWord.at(address), style, shift);
    }

    /** Tells the device of more. */
    void add(final int step) {
        if (word != null) {
            count += step;
            word.store(style.value(count, step, shift));
        }
    }
}
