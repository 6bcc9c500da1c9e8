package io.nrt4j.tools;

import java.lang.management.ManagementFactory;

/** How much a thread allocates. */
final class Allocation {
    private static final com.sun.management.ThreadMXBean THREADS =
        ManagementFactory.getThreadMXBean() instanceof com.sun.management.ThreadMXBean known ? known : null;

    private Allocation() {
    }

    /** Bytes that this thread has allocated so far; always 0 where the JVM does not tell. */
    static long ofThisThread() {
        return THREADS == null ? 0 : Math.max(0, THREADS.getThreadAllocatedBytes(Thread.currentThread().getId()));
    }
}
