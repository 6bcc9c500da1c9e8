package io.nrt4j.net.libfabric;

import com.sun.jna.Native;
import com.sun.jna.Pointer;
import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;

/** Native memory by address. Set-up only, except through the buffers it makes. */
final class Memory {
    private Memory() {
    }

    /** Allocates zeroed memory, aligned to 16 bytes. */
    static long allocate(final long sizeBytes) {
        final long address = Native.malloc(sizeBytes);
        if (address == 0) {
            throw new NrtException(NrtStatus.FAIL_HOST_MEM_ALLOC, "no native memory for " + sizeBytes + " bytes");
        }
        new Pointer(address).clear(sizeBytes);
        return address;
    }

    /** Frees what {@link #allocate} gave; 0 is ignored. */
    static void free(final long address) {
        if (address != 0) {
            Native.free(address);
        }
    }

    /** A native-order view; it does not keep the memory alive. */
    static ByteBuffer view(final long address, final long sizeBytes) {
        return new Pointer(address).getByteBuffer(0, sizeBytes).order(ByteOrder.nativeOrder());
    }

    static long getLong(final long address) {
        return new Pointer(address).getLong(0);
    }

    static int getInt(final long address) {
        return new Pointer(address).getInt(0);
    }

    static void putLong(final long address, final long value) {
        new Pointer(address).setLong(0, value);
    }

    static void putInt(final long address, final int value) {
        new Pointer(address).setInt(0, value);
    }

    /** The C string that a pointer at the address points to; null for a null pointer. */
    static String stringAt(final long pointerAddress) {
        final long text = getLong(pointerAddress);
        return text == 0 ? null : new Pointer(text).getString(0, StandardCharsets.UTF_8.name());
    }

    static byte[] bytes(final long address, final int length) {
        return new Pointer(address).getByteArray(0, length);
    }
}
