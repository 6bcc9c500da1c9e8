package io.nrt4j.net.libnccom;

import io.nrt4j.net.NetTransport;
import java.util.Arrays;

/**
 * The requests of a communicator that are in flight, by ids that are never used twice:
 * 1 &lt;&lt; 62 | generation (34 bits) &lt;&lt; 28 | slot (12 bits) &lt;&lt; 16 | index of the communicator.
 *
 * <p>The library's own requests are bare pointers: one that is over must never reach it again.
 *
 * <p>Threads: under the communicator's monitor. It grows while more requests are in flight than ever before; otherwise nothing is
 * allocated.
 */
final class RequestTable {
    private static final long TAG = 1L << 62;
    private static final int SLOT_BITS = 12;
    private static final int MAX_SLOTS = 1 << SLOT_BITS;
    private static final int GENERATION_SHIFT = HandleTable.INDEX_BITS + SLOT_BITS;
    private static final int FIRST_SLOTS = 128;

    private final int commIndex;
    private long lastGeneration;
    private long[] ids = new long[FIRST_SLOTS];
    private long[] pointers = new long[FIRST_SLOTS];
    private int[] lengths = new int[FIRST_SLOTS];
    private NccomSymbol[] calls = new NccomSymbol[FIRST_SLOTS];
    private int[] free = new int[FIRST_SLOTS];
    private int freeCount;

    /**
     * Makes a table.
     *
     * @param commHandle the communicator's handle: index, and where the generations begin, so that ids of an earlier communicator
     *                   at this index stay far away.
     */
    RequestTable(final long commHandle) {
        commIndex = (int) commHandle & HandleTable.INDEX_MASK;
        lastGeneration = (commHandle >>> HandleTable.INDEX_BITS) * 0x9E3779B9L;
        for (int slot = FIRST_SLOTS - 1; slot >= 0; slot--) {
            free[freeCount++] = slot;
        }
    }

    /** Whether the id can be of a request at all. */
    static boolean isRequest(final long id) {
        return id > 0 && (id & TAG) != 0;
    }

    /** Index of the communicator that an id belongs to. */
    static int commIndex(final long id) {
        return (int) id & HandleTable.INDEX_MASK;
    }

    boolean hasRoom() {
        if (freeCount == 0 && ids.length < MAX_SLOTS) {
            grow();
        }
        return freeCount > 0;
    }

    private void grow() {
        final int before = ids.length;
        ids = Arrays.copyOf(ids, 2 * before);
        pointers = Arrays.copyOf(pointers, 2 * before);
        lengths = Arrays.copyOf(lengths, 2 * before);
        calls = Arrays.copyOf(calls, 2 * before);
        free = Arrays.copyOf(free, 2 * before);
        for (int slot = 2 * before - 1; slot >= before; slot--) {
            free[freeCount++] = slot;
        }
    }

    /** Adds a request; there must be room. */
    long add(final long pointer, final NccomSymbol call, final int lengthBytes) {
        final int slot = free[--freeCount];
        lastGeneration = lastGeneration + 1 & (1L << 62 - GENERATION_SHIFT) - 1;
        ids[slot] = TAG | lastGeneration << GENERATION_SHIFT | (long) slot << HandleTable.INDEX_BITS | commIndex;
        pointers[slot] = pointer;
        calls[slot] = call;
        lengths[slot] = lengthBytes;
        return ids[slot];
    }

    /** Slot of a request in flight, or -1. */
    int find(final long id) {
        final int slot = (int) (id >>> HandleTable.INDEX_BITS) & MAX_SLOTS - 1;
        return slot < ids.length && ids[slot] == id && id != NetTransport.NOT_YET ? slot : -1;
    }

    long pointer(final int slot) {
        return pointers[slot];
    }

    /** What a slot's request is, for a failure's text. */
    String describe(final int slot) {
        return "of an " + calls[slot].symbol().substring("neuronNetI".length() - 1).toLowerCase(java.util.Locale.ROOT) + " of "
            + lengths[slot] + " bytes";
    }

    /** The request is over. */
    void remove(final int slot) {
        ids[slot] = 0;
        free[freeCount++] = slot;
    }

    int inFlight() {
        return ids.length - freeCount;
    }
}
