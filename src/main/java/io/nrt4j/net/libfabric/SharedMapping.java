package io.nrt4j.net.libfabric;

import com.sun.jna.Native;
import com.sun.jna.NativeLibrary;
import com.sun.jna.Pointer;
import java.io.IOException;
import java.nio.file.Path;

/**
 * The first page of a file, mapped for reading and writing, and unmapped at a time that is known: a mapping of Java's keeps the whole
 * file's memory until it is collected.
 *
 * <p>Threads: guarded by its owner; no access after {@link #close()}.
 */
final class SharedMapping implements AutoCloseable {
    private static final NativeLibrary LIBC = NativeLibrary.getInstance("c");
    private static final long BYTES = 4096;
    private static final int OPEN_READ_WRITE_CLOEXEC = 2 | 0x80000;
    private static final int PROT_READ_WRITE = 1 | 2;
    private static final int MAP_SHARED = 1;
    private static final long MAP_FAILED = -1;

    private final long address;

    private SharedMapping(final long address) {
        this.address = address;
    }

    /**
     * Maps a file's first page.
     *
     * @param file at least as long as what will be accessed, and never cut short.
     * @return the mapping.
     * @throws IOException with the call that failed and its number.
     */
    static SharedMapping map(final Path file) throws IOException {
        final int descriptor = LIBC.getFunction("open").invokeInt(new Object[] {file.toString(), OPEN_READ_WRITE_CLOEXEC});
        if (descriptor < 0) {
            throw new IOException("open of " + file + " failed: " + Native.getLastError());
        }
        final Pointer address = LIBC.getFunction("mmap").invokePointer(
            new Object[] {Pointer.NULL, BYTES, PROT_READ_WRITE, MAP_SHARED, descriptor, 0L});
        final int error = Native.getLastError();
        LIBC.getFunction("close").invokeInt(new Object[] {descriptor});
        if (Pointer.nativeValue(address) == MAP_FAILED) {
            throw new IOException("mmap of " + file + " failed: " + error);
        }
        return new SharedMapping(Pointer.nativeValue(address));
    }

    int getInt(final int offset) {
        return Memory.getInt(address + offset);
    }

    void putInt(final int offset, final int value) {
        Memory.putInt(address + offset, value);
    }

    /** Unmaps it; once. */
    @Override
    public void close() {
        LIBC.getFunction("munmap").invokeInt(new Object[] {new Pointer(address), BYTES});
    }
}
