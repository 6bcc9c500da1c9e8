package io.nrt4j.net;

import com.sun.jna.Pointer;
import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * One 32-bit word of native memory that a device and the host share: trigger words and semaphores.
 *
 * <p>It neither owns nor keeps the memory. Loads and stores allocate nothing.
 *
 * <p>Threads: any. {@link #load()} is a volatile load; {@link #store(int)} is a release store: whoever sees the value also sees
 * what the storing thread wrote before. Ports {@code nec_inc_semaphore}, which is a plain store on the original's machine.
 */
public final class NativeWord {
    private static final VarHandle INT = MethodHandles.byteBufferViewVarHandle(int[].class, ByteOrder.nativeOrder());

    private final ByteBuffer memory;
    private final long address;

    private NativeWord(final long address) {
        this.address = address;
        memory = new Pointer(address).getByteBuffer(0, Integer.BYTES);
    }

    /**
     * The word at an address. Reads nothing.
     *
     * @param address not 0, and a multiple of 4.
     * @return the word.
     * @throws NrtException INVALID for any other address.
     */
    public static NativeWord at(final long address) {
        if (address == 0 || (address & Integer.BYTES - 1) != 0) {
            throw new NrtException(NrtStatus.INVALID, "no 32-bit word can be at address 0x" + Long.toHexString(address));
        }
        return new NativeWord(address);
    }

    /**
     * Loads the word from memory, each time anew.
     *
     * @return its present value.
     */
    public int load() {
        return (int) INT.getVolatile(memory, 0);
    }

    /**
     * Stores the word after all that was written before.
     *
     * @param value new value.
     */
    public void store(final int value) {
        INT.setRelease(memory, 0, value);
    }

    /**
     * Where the word is.
     *
     * @return native address.
     */
    public long address() {
        return address;
    }

    @Override
    public String toString() {
        return "word 0x" + Long.toHexString(address) + "=0x" + Integer.toHexString(load());
    }
}
