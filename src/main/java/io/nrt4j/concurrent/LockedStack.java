package io.nrt4j.concurrent;

import java.util.Objects;
import java.util.concurrent.locks.ReentrantLock;

/**
 * A bounded last-in-first-out pool under a lock. Allocates nothing after construction.
 *
 * <p>An element that is taken out stays referenced until another takes its place: a pool's elements live as long as the pool, and a
 * store that changes nothing is one that the garbage collector need not be told of.
 *
 * <p>Threads: any; {@code slots} and {@code top} are read and written under the lock. Ports {@code locked_stack<T, N>}.
 *
 * @param <E> type of the elements.
 */
public final class LockedStack<E> {
    private final ReentrantLock lock = new ReentrantLock();
    private final Object[] slots;
    private int top;

    /**
     * Makes an empty stack.
     *
     * @param capacity most elements that it holds.
     */
    public LockedStack(final int capacity) {
        slots = new Object[capacity];
    }

    /**
     * Puts an element on top.
     *
     * @param element not null.
     * @throws IllegalStateException if the stack is full: an element came back twice.
     */
    public void push(final E element) {
        Objects.requireNonNull(element);
        lock.lock();
        try {
            if (top == slots.length) {
                throw new IllegalStateException("more than " + slots.length + " elements came back: " + element);
            }
            if (slots[top] != element) {
                slots[top] = element;
            }
            top++;
        } finally {
            lock.unlock();
        }
    }

    /**
     * Takes the top element.
     *
     * @return null if the stack is empty.
     */
    @SuppressWarnings("unchecked") // only elements of type E are stored
    public E pop() {
        lock.lock();
        try {
            if (top == 0) {
                return null;
            }
            return (E) slots[--top];
        } finally {
            lock.unlock();
        }
    }

    /**
     * Number of elements; a snapshot.
     *
     * @return 0 to the capacity.
     */
    public int size() {
        lock.lock();
        try {
            return top;
        } finally {
            lock.unlock();
        }
    }
}
