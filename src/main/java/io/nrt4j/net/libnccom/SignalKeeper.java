package io.nrt4j.net.libnccom;

import com.sun.jna.Function;
import com.sun.jna.Memory;
import com.sun.jna.NativeLibrary;
import com.sun.jna.Pointer;
import java.util.function.Supplier;

/**
 * Keeps the JVM's signal handlers in place while a library is opened or starts its network.
 *
 * <p>libnccom's plug-in opens libfabric, and what libfabric opens may install handlers of its own (libinfinipath does). A JVM
 * whose SIGSEGV handler is gone aborts at the next implicit null check. One guarded call at a time in the process.
 */
final class SignalKeeper {
    private static final int[] SIGNALS = {11, 7, 4, 6, 15, 2}; // SEGV, BUS, ILL, ABRT, TERM, INT
    /** {@code struct sigaction} has 152 bytes with glibc on x86-64. */
    private static final int ACTION_ROOM = 256;
    private static final Function SIGACTION = NativeLibrary.getProcess().getFunction("sigaction");

    private SignalKeeper() {
    }

    /** Runs a call and puts the handlers back, also when it throws. */
    static synchronized <T> T around(final Supplier<T> call) {
        try (Memory saved = new Memory((long) SIGNALS.length * ACTION_ROOM)) {
            for (int i = 0; i < SIGNALS.length; i++) {
                SIGACTION.invokeInt(new Object[] {SIGNALS[i], Pointer.NULL, saved.share((long) i * ACTION_ROOM)});
            }
            try {
                return call.get();
            } finally {
                for (int i = 0; i < SIGNALS.length; i++) {
                    SIGACTION.invokeInt(new Object[] {SIGNALS[i], saved.share((long) i * ACTION_ROOM), Pointer.NULL});
                }
            }
        }
    }
}
