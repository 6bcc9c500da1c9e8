package io.nrt4j.concurrent;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.Objects;

/**
 * A bounded first-in-first-out ring between one producer at a time and one consumer. Allocates nothing after construction.
 *
 * <p>Threads: {@code tail} is written by the producer (several producers take turns under a lock of their own) and read by
 * the consumer; {@code head} is written by the consumer and read by the producers. An element is stored before the release
 * store of {@code tail} and read after the acquire load of it; a slot is cleared before the release store of {@code head}
 * and reused after the acquire load of it. {@link #isEmpty()} may be asked by any thread; a producer that finds the ring
 * empty also sees all that the consumer did before it advanced.
 *
 * <p>Ports the 128-slot rings {@code conn_task_handover_queue} and {@code stashed_reqs}.
 *
 * @param <E> type of the elements.
 */
public final class SpscRing<E> {
    private static final VarHandle HEAD;
    private static final VarHandle TAIL;

    static {
        try {
            final MethodHandles.Lookup lookup = MethodHandles.lookup();
            HEAD = lookup.findVarHandle(SpscRing.class, "head", long.class);
            TAIL = lookup.findVarHandle(SpscRing.class, "tail", long.class);
        } catch (final ReflectiveOperationException ex) {
            throw new ExceptionInInitializerError(ex);
        }
    }

    private final Object[] slots;
    private final int mask;
    @SuppressWarnings("unused") // through HEAD
    private long head;
    @SuppressWarnings("unused") // through TAIL
    private long tail;

    /**
     * Makes an empty ring.
     *
     * @param capacity a power of two.
     */
    public SpscRing(final int capacity) {
        if (Integer.bitCount(capacity) != 1) {
            throw new IllegalArgumentException("capacity must be a power of two: " + capacity);
        }
        slots = new Object[capacity];
        mask = capacity - 1;
    }

    /**
     * Appends an element. Producer only.
     *
     * @param element not null.
     * @return false if the ring is full; nothing was appended then.
     */
    public boolean offer(final E element) {
        Objects.requireNonNull(element);
        final long at = (long) TAIL.get(this);
        if (at - (long) HEAD.getAcquire(this) > mask) {
            return false;
        }
        slots[(int) at & mask] = element;
        TAIL.setRelease(this, at + 1);
        return true;
    }

    /**
     * The oldest element, which stays in the ring. Consumer only.
     *
     * @return null if the ring is empty.
     */
    @SuppressWarnings("unchecked") // only elements of type E are stored
    public E peek() {
        final long at = (long) HEAD.get(this);
        return at == (long) TAIL.getAcquire(this) ? null : (E) slots[(int) at & mask];
    }

    /**
     * Drops the oldest element. Consumer only, after {@link #peek()} showed one.
     */
    public void advance() {
        final long at = (long) HEAD.get(this);
        slots[(int) at & mask] = null;
        HEAD.setRelease(this, at + 1);
    }

    /**
     * Takes the oldest element. Consumer only.
     *
     * @return null if the ring is empty.
     */
    public E poll() {
        final E element = peek();
        if (element != null) {
            advance();
        }
        return element;
    }

    /**
     * Whether nothing is in the ring. Any thread.
     *
     * @return true if every element that was appended has been dropped.
     */
    public boolean isEmpty() {
        return (long) HEAD.getAcquire(this) == (long) TAIL.getAcquire(this);
    }

    /**
     * Number of elements. Any thread; a snapshot.
     *
     * @return 0 to the capacity.
     */
    public int size() {
        final long before = (long) HEAD.getAcquire(this);
        final long size = (long) TAIL.getAcquire(this) - before;
        return (int) Math.min(size, slots.length);
    }

    /**
     * Number of slots.
     *
     * @return what the ring was made with.
     */
    public int capacity() {
        return slots.length;
    }
}
