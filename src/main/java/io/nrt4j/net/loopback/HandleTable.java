package io.nrt4j.net.loopback;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.Arrays;
import java.util.BitSet;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Objects by handles of type {@code long}: the place in the table, and a number that no other handle of this JVM has, so that a
 * stale handle, or one of another table, finds nothing.
 *
 * <pre>
 *   63  62  61 ............ 24  23 ....... 0
 *  | 0 | 0 | sequence, from 1  | index      |
 * </pre>
 *
 * <p>Threads: any. {@code entries} is written under the table's monitor (the array is replaced when it grows, an element is set by
 * a release store) and read without it (volatile, then acquire); an entry's fields are set before it is put in. {@code used},
 * {@code batons} and {@code size} are guarded by the monitor. A look-up takes no lock and allocates nothing.
 *
 * @param <E> type of the objects.
 */
final class HandleTable<E extends HandleTable.Entry> {
    private static final VarHandle ELEMENT = MethodHandles.arrayElementVarHandle(Entry[].class);
    private static final AtomicLong SEQUENCE = new AtomicLong();
    private static final int INDEX_BITS = 24;
    private static final int INDEX_MASK = (1 << INDEX_BITS) - 1;
    private static final int FIRST_CAPACITY = 16;

    /** What stands in a table. */
    abstract static class Entry {
        private long handle;
        private long baton;

        /** The handle; 0 before the entry is put into a table. */
        final long handle() {
            return handle;
        }

        /** Place in the table. */
        final int index() {
            return (int) handle & INDEX_MASK;
        }

        /** What the entry that stood at this place before handed on; 0 for the first. */
        final long baton() {
            return baton;
        }

        /** Sets what the next entry at this place takes over. Before the entry is removed. */
        final void handOn(final long value) {
            baton = value;
        }
    }

    private final int limit;
    private final BitSet used = new BitSet();
    private volatile Entry[] entries = new Entry[FIRST_CAPACITY];
    private long[] batons = new long[FIRST_CAPACITY];
    private int size;

    /** Makes an empty table for at most {@code limit} entries. */
    HandleTable(final int limit) {
        this.limit = Math.min(limit, INDEX_MASK + 1);
    }

    /** Puts an entry in and gives it its handle. */
    synchronized long add(final E entry) {
        final int index = used.nextClearBit(0);
        if (index >= limit) {
            throw new NrtException(NrtStatus.RESOURCE, "loopback: the limit of " + limit + " open objects of this kind is reached");
        }
        if (index >= batons.length) {
            batons = Arrays.copyOf(batons, 2 * batons.length);
            entries = Arrays.copyOf(entries, batons.length);
        }
        final Entry added = entry;
        added.handle = SEQUENCE.incrementAndGet() << INDEX_BITS | index;
        added.baton = batons[index];
        used.set(index);
        size++;
        ELEMENT.setRelease(entries, index, added);
        return added.handle;
    }

    /** Takes an entry out; false if it was not in. */
    synchronized boolean remove(final E entry) {
        final Entry removed = entry;
        final int index = removed.index();
        if (removed.handle == 0 || index >= batons.length || entries[index] != removed) {
            return false;
        }
        batons[index] = removed.baton;
        used.clear(index);
        size--;
        ELEMENT.setRelease(entries, index, (Entry) null);
        return true;
    }

    /** The entry with this handle, or null. */
    E get(final long handle) {
        final E found = at((int) handle & INDEX_MASK);
        return found != null && found.handle() == handle ? found : null;
    }

    /** The entry at this place, or null. */
    @SuppressWarnings("unchecked") // only entries of type E are put in
    E at(final int index) {
        final Entry[] seen = entries;
        return index < seen.length ? (E) (Entry) ELEMENT.getAcquire(seen, index) : null;
    }

    /** Number of entries. */
    synchronized int size() {
        return size;
    }
}
