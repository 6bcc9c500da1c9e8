package io.nrt4j.net.libnccom;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Objects by handles that are never used twice: generation &lt;&lt; 16 | index. Bit 62 stays free for other kinds of handle.
 *
 * <p>Threads: any. {@code entries} is replaced as a whole under the monitor, and read without it; so a look-up takes no lock and
 * allocates nothing.
 *
 * @param <T> what is found.
 */
final class HandleTable<T> {
    static final int INDEX_BITS = 16;
    static final int INDEX_MASK = (1 << INDEX_BITS) - 1;

    private record Entry<T>(long handle, T object) {
    }

    private volatile List<Entry<T>> entries = List.of();
    private long generation;
    private boolean closed;

    /** Makes an object with its handle known. */
    interface Maker<T> {
        T make(long handle);
    }

    /**
     * Adds an object.
     *
     * @throws NrtException CLOSED after {@link #close}, RESOURCE when there are 65,536.
     */
    synchronized T add(final Maker<T> maker) {
        if (closed) {
            throw new NrtException(NrtStatus.CLOSED, "it was closed");
        }
        final List<Entry<T>> after = new ArrayList<>(entries);
        int index = after.indexOf(null);
        if (index < 0) {
            index = after.size();
            after.add(null);
        }
        if (index > INDEX_MASK) {
            throw new NrtException(NrtStatus.RESOURCE, "there are " + after.size() + " handles");
        }
        final long handle = ++generation << INDEX_BITS | index;
        final T made = maker.make(handle);
        after.set(index, new Entry<>(handle, made));
        entries = after;
        return made;
    }

    /** The object at an index, whatever its generation; null if there is none. */
    T at(final int index) {
        final List<Entry<T>> all = entries;
        final Entry<T> entry = index < all.size() ? all.get(index) : null;
        return entry == null ? null : entry.object();
    }

    /** The object of a handle, or null. */
    T find(final long handle) {
        final List<Entry<T>> all = entries;
        final int index = (int) handle & INDEX_MASK;
        final Entry<T> entry = index < all.size() ? all.get(index) : null;
        return entry != null && entry.handle() == handle ? entry.object() : null;
    }

    /** Takes an object out; null when it is not there any more. */
    synchronized T remove(final long handle) {
        final T found = find(handle);
        if (found != null) {
            final List<Entry<T>> after = new ArrayList<>(entries);
            after.set((int) handle & INDEX_MASK, null);
            entries = after;
        }
        return found;
    }

    /** Lets nothing in any more, and answers the handles of what is there. */
    synchronized long[] close() {
        closed = true;
        return entries.stream().filter(entry -> entry != null).mapToLong(Entry::handle).toArray();
    }

    @Override
    public String toString() {
        return Arrays.toString(entries.stream().filter(entry -> entry != null).map(Entry::object).toArray());
    }
}
