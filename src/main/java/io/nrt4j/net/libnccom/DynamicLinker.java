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
        final long handle = Pointer.nativeValue(DLOPEN.invokePointer(new Object[] {name, RTLD_NOW}));
        if (handle == 0) {
            final Pointer text = DLERROR.invokePointer(new Object[0]);
            throw new UnsatisfiedLinkError(text == null ? name + ": the loader says no more" : text.getString(0));
        }
        return handle;
    }

    /** Address of a symbol, or 0. */
    static long find(final long handle, final String symbol) {
        return Pointer.nativeValue(DLSYM.invokePointer(new Object[] {new Pointer(handle), symbol}));
    }

    static void close(final long handle) {
        DLCLOSE.invokeInt(new Object[] {new Pointer(handle)});
    }
}
