package io.nrt4j.net.libnccom;

import com.sun.jna.Function;
import com.sun.jna.NativeLibrary;
import com.sun.jna.Pointer;

/**
 * The system's loader as the original uses it: {@code dlopen} with RTLD_NOW, {@code dlsym} by bare name. JNA's own look-up would
 * search more places than the original's and wrap the loader's text. Set-up only; any thread.
 */
final class DynamicLinker {
    private static final int RTLD_NOW = 2;
    private static final NativeLibrary PROCESS = NativeLibrary.getProcess();
    private static final Function DLOPEN = PROCESS.getFunction("dlopen");
    private static final Function DLSYM = PROCESS.getFunction("dlsym");
    private static final Function DLCLOSE = PROCESS.getFunction("dlclose");
    private static final Function DLERROR = PROCESS.getFunction("dlerror");

    static {
        // The JVM itself calls dlsym when it first meets a native method, which frees the text of the error before: so every
        // native method that lies between dlopen and the text is met here.
        attempt("/");
    }

    private DynamicLinker() {
    }

    /**
     * Opens a library.
     *
     * @param name file, or a name that the loader looks for.
     * @return its handle.
     * @throws UnsatisfiedLinkError with the loader's own text.
     */
    static long open(final String name) {
        final Object opened = attempt(name);
        if (opened instanceof Pointer handle) {
            return Pointer.nativeValue(handle);
        }
        throw new UnsatisfiedLinkError((String) opened);
    }

    /** The handle as a pointer, or the loader's text. */
    private static Object attempt(final String name) {
        final Pointer handle = DLOPEN.invokePointer(new Object[] {name, RTLD_NOW});
        if (handle != null) {
            return handle;
        }
        final Pointer text = DLERROR.invokePointer(new Object[0]);
        return text == null ? name + ": the loader says no more" : text.getString(0);
    }

    /** Address of a symbol, or 0. */
    static long find(final long handle, final String symbol) {
        return Pointer.nativeValue(DLSYM.invokePointer(new Object[] {new Pointer(handle), symbol}));
    }

    static void close(final long handle) {
        DLCLOSE.invokeInt(new Object[] {new Pointer(handle)});
    }
}
