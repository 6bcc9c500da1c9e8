package io.nrt4j.net.libnccom;

import java.util.Arrays;
import java.util.concurrent.atomic.AtomicLong;

/**
 * A communicator's memory registrations, by ids that are unique in the process: count &lt;&lt; 20 | slot.
 *
 * <p>A range is checked here: what the library does with one that is not registered is its own affair, up to ending the process.
 *
 * <p>Threads: under the communicator's monitor. A look-up allocates nothing.
 */
final class RegistrationTable {
    private static final AtomicLong COUNT = new AtomicLong();
    private static final int SLOT_BITS = 20;
    private static final int SLOT_MASK = (1 << SLOT_BITS) - 1;
    private static final int NONE = -1;

    private long[] ids = new long[4];
    private long[] mhandles = new long[4];
    private long[] addresses = new long[4];
    private long[] sizes = new long[4];

    /** Adds a registration; 0 when there are a million. */
    long add(final long mhandle, final long address, final long sizeBytes) {
        int slot = 0;
        while (slot < ids.length && ids[slot] != 0) {
            slot++;
        }
        if (slot > SLOT_MASK) {
            return 0;
        }
        if (slot == ids.length) {
            ids = Arrays.copyOf(ids, 2 * slot);
            mhandles = Arrays.copyOf(mhandles, 2 * slot);
            addresses = Arrays.copyOf(addresses, 2 * slot);
            sizes = Arrays.copyOf(sizes, 2 * slot);
        }
        ids[slot] = COUNT.incrementAndGet() << SLOT_BITS | slot;
        mhandles[slot] = mhandle;
        addresses[slot] = address;
        sizes[slot] = sizeBytes;
        return ids[slot];
    }

    private int slotOf(final long id) {
        final int slot = (int) id & SLOT_MASK;
        return id > 0 && slot < ids.length && ids[slot] == id ? slot : NONE;
    }

    /** The library's handle if the registration is there and covers the range; 0 otherwise. */
    long covering(final long id, final long address, final long lengthBytes) {
        final int slot = slotOf(id);
        if (slot == NONE) {
            return 0;
        }
        final long offset = address - addresses[slot];
        return address >= addresses[slot] && offset <= sizes[slot] && lengthBytes <= sizes[slot] - offset ? mhandles[slot] : 0;
    }

    /** Takes a registration out; its library handle, or 0. */
    long remove(final long id) {
        final int slot = slotOf(id);
        if (slot == NONE) {
            return 0;
        }
        ids[slot] = 0;
        return mhandles[slot];
    }

    /** Takes any registration out; its library handle, or 0 when there is none left. */
    long removeAny() {
        for (int slot = 0; slot < ids.length; slot++) {
            if (ids[slot] != 0) {
                ids[slot] = 0;
                return mhandles[slot];
            }
        }
        return 0;
    }

    /** Why a range is refused. */
    String describe(final long id, final long address, final long lengthBytes) {
        final int slot = slotOf(id);
        final String range = lengthBytes + " bytes at 0x" + Long.toHexString(address);
        return slot == NONE ? range + ": 0x" + Long.toHexString(id) + " is no registration of this communicator"
            : range + " are not in the registered range 0x" + Long.toHexString(addresses[slot]) + "+" + sizes[slot];
    }
}
