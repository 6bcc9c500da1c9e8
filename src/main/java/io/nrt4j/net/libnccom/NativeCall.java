package io.nrt4j.net.libnccom;

import com.sun.jna.Native;
import com.sun.jna.Pointer;
import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * Off-heap memory for one call at a time: its arguments, its result, and room for what it answers through pointers. A call
 * allocates nothing.
 *
 * <pre>
 *  +0   arguments  long[10]     +88  pointers to the arguments, void *[10]     +192 a net handle, 128 bytes
 *  +80  result     long         +168 out-parameters, long[3]
 * </pre>
 *
 * <p>Threads: one at a time; whoever owns it.
 */
final class NativeCall implements AutoCloseable {
    private static final int MAX_ARGUMENTS = 10;
    private static final int RESULT = MAX_ARGUMENTS * Long.BYTES;
    private static final int POINTERS = RESULT + Long.BYTES;
    private static final int OUT = POINTERS + MAX_ARGUMENTS * Long.BYTES;
    private static final int HANDLE = OUT + 3 * Long.BYTES;
    private static final int HANDLE_BYTES = 128;
    private static final int BYTES = HANDLE + HANDLE_BYTES;

    private final long address;
    private final ByteBuffer block;
    private boolean closed;

    /** Makes a block, zeroed. */
    NativeCall() {
        address = Native.malloc(BYTES);
        if (address == 0) {
            throw new NrtException(NrtStatus.FAIL_HOST_MEM_ALLOC, "no native memory for " + BYTES + " bytes");
        }
        final Pointer memory = new Pointer(address);
        memory.clear(BYTES);
        block = memory.getByteBuffer(0, BYTES).order(ByteOrder.LITTLE_ENDIAN);
        for (int i = 0; i < MAX_ARGUMENTS; i++) {
            block.putLong(POINTERS + i * Long.BYTES, address + (long) i * Long.BYTES);
        }
    }

    /** Sets an argument; narrower types take its low bytes. */
    void argument(final int index, final long value) {
        block.putLong(index * Long.BYTES, value);
    }

    /** Calls a function with the arguments that were set, and answers its int. */
    int invoke(final long callInterface, final long function) {
        Native.ffi_call(callInterface, function, address + RESULT, address + POINTERS);
        return block.getInt(RESULT);
    }

    /** Address of an out-parameter of eight bytes, 0 to 2. */
    long outAddress(final int index) {
        return address + OUT + (long) index * Long.BYTES;
    }

    long out(final int index) {
        return block.getLong(OUT + index * Long.BYTES);
    }

    int outInt(final int index) {
        return block.getInt(OUT + index * Long.BYTES);
    }

    void out(final int index, final long value) {
        block.putLong(OUT + index * Long.BYTES, value);
    }

    /** Address of the net handle. */
    long handleAddress() {
        return address + HANDLE;
    }

    /** Copies a net handle to where the library finds it. */
    void putHandle(final byte[] handle) {
        block.put(HANDLE, handle, 0, HANDLE_BYTES);
    }

    /** Copies the net handle, and the state that the library keeps in it, back. */
    void getHandle(final byte[] handle) {
        block.get(HANDLE, handle, 0, HANDLE_BYTES);
    }

    @Override
    public void close() {
        if (!closed) {
            closed = true;
            Native.free(address);
        }
    }
}
