package io.nrt4j.net.libfabric;

import com.sun.jna.Function;
import com.sun.jna.NativeLibrary;
import com.sun.jna.Pointer;
import java.util.function.Supplier;

/**
 * Keeps the JVM's signal handlers in place around native calls that replace them.
 *
 * <p>Opening Debian's libfabric opens libinfinipath, whose constructor installs handlers for SIGSEGV, SIGBUS, SIGILL, SIGABRT,
 * SIGTERM and SIGINT; the shm provider hooks four of them when its first endpoint opens. A JVM whose SIGSEGV handler is gone
 * aborts at the next implicit null check or safepoint poll. So each such call runs here: the handlers are read before and put
 * back after. Threads: one guarded call at a time in the process.
 */
final class SignalGuard {
    private static final int[] SIGNALS = {11, 7, 4, 6, 15, 2}; // SEGV, BUS, ILL, ABRT, TERM, INT
    /** {@code struct sigaction} has 152 bytes with glibc on x86-64. */
    private static final int ACTION_ROOM = 256;
    private static final NativeLibrary LIBC = NativeLibrary.getInstance("c");
    private static final Function SIGACTION = LIBC.getFunction("sigaction");

    private SignalGuard() {
    }

    /**
     * Runs a native call and puts the signal handlers back, also when it throws.
     *
     * @param call what to run.
     * @param <T>  type of its answer.
     * @return its answer.
     */
    static synchronized <T> T around(final Supplier<T> call) {
        final long saved = Memory.allocate((long) SIGNALS.length * ACTION_ROOM);
        try {
            for (int i = 0; i < SIGNALS.length; i++) {
                SIGACTION.invokeInt(new Object[] {SIGNALS[i], Pointer.NULL, at(saved, i)});
            }
            try {
                return call.get();
            } finally {
                for (int i = 0; i < SIGNALS.length; i++) {
                    SIGACTION.invokeInt(new Object[] {SIGNALS[i], at(saved, i), Pointer.NULL});
                }
            }
        } finally {
            Memory.free(saved);
        }
    }

    private static Pointer at(final long saved, final int index) {
        return new Pointer(saved + (long) index * ACTION_ROOM);
    }

    /** Sets a variable of the C environment, which libraries read; Java's own map is a copy. */
    static void setEnvironment(final String name, final String value, final boolean overwrite) {
        LIBC.getFunction("setenv").invokeInt(new Object[] {name, value, overwrite ? 1 : 0});
    }

    /** A copy of the text that {@code free} frees, as libfabric expects it in hints. */
    static long duplicate(final String text) {
        return Pointer.nativeValue(LIBC.getFunction("strdup").invokePointer(new Object[] {text}));
    }
}
