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
 * <p>Threads: one guarded call at a time in the process, whichever transport's, since another one would take replaced handlers for
 * the JVM's. All fields are guarded by the class's lock.
 */
public final class SignalGuard {
    private static final int[] SIGNALS = {11, 7, 4, 6, 15, 2}; // SEGV, BUS, ILL, ABRT, TERM, INT
    /** {@code struct sigaction} has 152 bytes with glibc on x86-64. */
    private static final int ACTION_ROOM = 256;
    private static final long SAVED = Native.malloc((long) SIGNALS.length * ACTION_ROOM);
    private static boolean guarding;

    static {
        Native.register(SignalGuard.class, NativeLibrary.getInstance("c"));
    }

    private SignalGuard() {
    }

    /** Pointers as numbers; C's name and arguments. */
    private static native int sigaction(int signal, long action, long old);

    /**
     * Runs a native call and puts the signal handlers back, also when it throws. A call within a guarded call is as guarded.
     *
     * @param call what to run.
     * @param <T>  type of its answer.
     * @return its answer.
     */
    public static synchronized <T> T around(final Supplier<T> call) {
        if (guarding) {
            return call.get();
        }
        for (int i = 0; i < SIGNALS.length; i++) {
            sigaction(SIGNALS[i], 0, saved(i));
        }
        guarding = true;
        try {
            return call.get();
        } finally {
            guarding = false;
            for (int i = 0; i < SIGNALS.length; i++) {
                sigaction(SIGNALS[i], saved(i), 0);
            }
        }
    }

    private static long saved(final int index) {
        return SAVED + (long) index * ACTION_ROOM;
    }
}
