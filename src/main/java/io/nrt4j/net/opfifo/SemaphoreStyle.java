package io.nrt4j.net.opfifo;

/**
 * What is stored into a semaphore word when one more round of an operation is complete. The original stores the amount to add,
 * because its words are increment registers of the device; a word of plain memory does not add.
 */
public enum SemaphoreStyle {
    /** The number of rounds so far, from the block's start on and over all its runs, shifted: for words of plain memory. */
    RUNNING_COUNT {
        @Override
        int value(final int count, final int step, final int shift) {
            return count << shift;
        }
    },
    /** The amount to add, shifted: for increment registers, as {@code nec_inc_semaphore} does it. */
    INCREMENT_REGISTER {
        @Override
        int value(final int count, final int step, final int shift) {
            return step << shift;
        }
    };

    abstract int value(int count, int step, int shift);
}
