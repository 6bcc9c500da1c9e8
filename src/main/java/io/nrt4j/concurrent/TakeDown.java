package io.nrt4j.concurrent;

/**
 * Takes one thing down after the other, whatever becomes of those before: the first failure is thrown at the end, with the others
 * suppressed in it.
 *
 * <p>Threads: one.
 */
public final class TakeDown {
    private Throwable first;

    /**
     * Takes the next thing down.
     *
     * @param what its close.
     * @return this.
     */
    public TakeDown step(final Runnable what) {
        try {
            what.run();
        } catch (final RuntimeException | Error ex) { // a native library that lacks a function throws an error
            if (first == null) {
                first = ex;
            } else if (first != ex) {
                first.addSuppressed(ex);
            }
        }
        return this;
    }

    /** Throws what failed first, if anything did. */
    public void end() {
        if (first instanceof RuntimeException ex) {
            throw ex;
        }
        if (first instanceof Error error) {
            throw error;
        }
    }
}
