package io.nrt4j.net.libnccom;

import com.sun.jna.Native;
import com.sun.jna.Pointer;

/** A C type of the boundary, with its {@code ffi_type}, which is made once and never freed. */
enum CType {
    VOID(1, 0),
    BOOL(1, 5),
    U32(4, 9),
    INT(4, 10),
    SIZE(8, 11),
    POINTER(8, 14);

    /** {@code struct ffi_type { size_t size; unsigned short alignment, type; struct ffi_type **elements; }}. */
    private static final int FFI_TYPE_BYTES = 24;

    private final long ffiType;

    CType(final int sizeBytes, final int code) {
        ffiType = Native.malloc(FFI_TYPE_BYTES);
        final Pointer type = new Pointer(ffiType);
        type.clear(FFI_TYPE_BYTES);
        type.setLong(0, sizeBytes);
        type.setShort(Long.BYTES, (short) sizeBytes);
        type.setShort(Long.BYTES + Short.BYTES, (short) code);
    }

    /** The calling convention of a function with these types, made for good. */
    static long callInterface(final CType result, final CType[] parameters) {
        final long types = Native.malloc(Math.max(1, parameters.length) * (long) Long.BYTES);
        for (int i = 0; i < parameters.length; i++) {
            new Pointer(types).setLong((long) i * Long.BYTES, parameters[i].ffiType);
        }
        // FFI_UNIX64 of Linux on x86-64 is 2; FFI_SYSV of aarch64 is 1.
        final int abi = "aarch64".equals(System.getProperty("os.arch")) ? 1 : 2;
        return Native.ffi_prep_cif(abi, parameters.length, result.ffiType, types);
    }
}
