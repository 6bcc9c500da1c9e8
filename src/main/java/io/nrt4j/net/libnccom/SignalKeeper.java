package io.nrt4j.net.libnccom;

import com.sun.jna.Native;
import com.sun.jna.NativeLibrary;
import com.sun.jna.Pointer;
import java.util.function.Supplier;

/**
 * Keeps the JVM's signal handlers in place while a library is opened, starts its network, or makes an endpoint.
 *
 * <p>libnccom's plug-in opens libfabric, and what libfabric opens may install handlers of its own (libinfinipath does when it is
 * loaded, the shm provider when its first endpoint opens). A JVM whose SIGSEGV handler is gone aborts at the next implicit null
 * check. A guard costs a few microseconds.
 *
 * <p>Threads: one guarded call at a time in the process, since another one would take replaced handlers for the JVM's. All fields
 * are guarded by the class's lock.
 */
final class SignalKeeper {
    private static final int[] SIGNALS = {11, 7, 4, 6, 15, 2}; // SEGV, BUS, ILL, ABRT, TERM, INT
    /** {@code struct sigaction} has 152 bytes with glibc on x86-64. */
    private static final int ACTION_ROOM = 256;
    private static final long SIGACTION = Pointer.nativeValue(NativeLibrary.getProcess().getFunction("sigaction"));
    private static final long CALL_INTERFACE =
        CType.callInterface(CType.INT, new CType[] {CType.INT, CType.POINTER, CType.POINTER});
    private static final NativeCall CALL = new NativeCall();
    private static final long SAVED = Native.malloc((long) SIGNALS.length * ACTION_ROOM);
    private static boolean guarding;

    private SignalKeeper() {
    }

    /** Runs a call and puts the handlers back, also when it throws. */
    static synchronized <T> T around(final Supplier<T> call) {
        if (guarding) {
            return call.get();
        }
        for (int i = 0; i < SIGNALS.length; i++) {
            sigaction(SIGNALS[i], 0, SAVED + (long) i * ACTION_ROOM);
        }
        guarding = true;
        try {
            return call.get();
        } finally {
            guarding = false;
            for (int i = 0; i < SIGNALS.length; i++) {
                sigaction(SIGNALS[i], SAVED + (long) i * ACTION_ROOM, 0);
            }
        }
    }

    private static void sigaction(final int signal, final long action, final long old) {
        CALL.argument(0, signal);
        CALL.argument(1, action);
        CALL.argument(2, old);
        CALL.invoke(CALL_INTERFACE, SIGACTION);
    }
}
