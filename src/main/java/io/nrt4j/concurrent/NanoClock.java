package io.nrt4j.concurrent;

/** A monotonic clock. A test hands in one that it sets by hand. */
@FunctionalInterface
public interface NanoClock {
    /** The JVM's monotonic clock. */
    NanoClock SYSTEM = System::nanoTime;

    /**
     * Current reading.
     *
     * @return nanoseconds from an arbitrary origin; only differences mean something.
     */
    long nanoTime();
}
