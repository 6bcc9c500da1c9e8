package io.nrt4j.proxy;

import java.util.Arrays;

/**
 * The active tasks of one rank, in the order in which they came. Ports a bucket of {@code active_tasks}.
 *
 * <p>Threads: the worker's. Allocates only when it grows.
 */
final class RankTasks {
    private static final int FIRST_CAPACITY = 8;

    private final int rank;
    private ProxyTask[] tasks = new ProxyTask[FIRST_CAPACITY];
    private int size;

    RankTasks(final int rank) {
        this.rank = rank;
    }

    int rank() {
        return rank;
    }

    int size() {
        return size;
    }

    ProxyTask get(final int at) {
        return tasks[at];
    }

    /** The tasks themselves, up to {@link #size()}; valid until one is added. */
    ProxyTask[] array() {
        return tasks;
    }

    void add(final ProxyTask task) {
        if (size == tasks.length) {
            tasks = Arrays.copyOf(tasks, 2 * size);
        }
        tasks[size++] = task;
    }

    /** Drops the tasks that were set to null by {@link #drop}; the others keep their order. */
    void compact() {
        int kept = 0;
        for (int i = 0; i < size; i++) {
            final ProxyTask task = tasks[i];
            tasks[i] = null;
            if (task != null) {
                tasks[kept++] = task;
            }
        }
        size = kept;
    }

    /** Takes a task out; its place stays until {@link #compact}. */
    void drop(final int at) {
        tasks[at] = null;
    }
}
