package io.nrt4j.net.signals;

import com.sun.jna.Native;
import com.sun.jna.NativeLibrary;
import java.util.function.Supplier;

/**
 * Keeps the JVM's signal handlers in place around native calls that replace them.
 *
 * <p>Opening Debian's libfabric opens libinfinipath, whose constructor installs handlers for SIGSEGV, SIGBUS, SIGILL, SIGABRT,
 * SIGTERM and SIGINT; the shm provider hooks four of them when its first endpoint opens. libnccom's plug-in opens libfabric, too.
 * A JVM whose SIGSEGV handler is gone aborts at the next implicit null check or safepoint poll. So each such call runs here: the handlers
 * are read before and put back after, which costs a few microseconds.
 *
 * <p>Threads: any number of calls at the same time, and calls within calls: some wait inside the library for one another, as the
 * ranks of one process do. The handlers are saved when the first of them begins, while they are the JVM's for certain, and put back
 * whenever one of them returns, whichever; so what a call replaces is gone again when the last one has returned, at the latest. A
 * handler that the program itself installs while a guarded call runs is lost. {@code inside} and the saved handlers are guarded by
 * the class's lock, which is never held while a call runs.
 */
public final class SignalGuard {
    private static final int[] SIGNALS = {11, 7, 4, 6, 15, 2}; // SEGV, BUS, ILL, ABRT, TERM, INT
    /** {@code struct sigaction} has 152 bytes with glibc on x86-64. */
    private static final int ACTION_ROOM = 256;
    private static final long SAVED = Native.malloc((long) SIGNALS.length * ACTION_ROOM);
    /** Guarded calls under way. */
    private static int inside;

    static {
        Native.register(SignalGuard.class, NativeLibrary.getInstance("c"));
    }

    private SignalGuard() {
    }

    /** Pointers as numbers; C's name and arguments. */
    private static native int sigaction(int signal, long action, long old);

    /**
     * Runs a native call and puts the signal handlers back, also when it throws.
     *
     * @param call what to run.
     * @param <T>  type of its answer.
     * @return its answer.
     */
    public static <T> T around(final Supplier<T> call) {
        enter();
        try {
            return call.get();
        } finally {
            leave();
        }
    }

    private static synchronized void enter() {
        if (inside++ == 0) {
            for (int i = 0; i < SIGNALS.length; i++) {
                sigaction(SIGNALS[i], 0, saved(i));
            }
        }
    }

    private static synchronized void leave() {
        inside--;
        for (int i = 0; i < SIGNALS.length; i++) {
            sigaction(SIGNALS[i], saved(i), 0);
        }
    }

    private static long saved(final int index) {
        return SAVED + (long) index * ACTION_ROOM;
    }
}
