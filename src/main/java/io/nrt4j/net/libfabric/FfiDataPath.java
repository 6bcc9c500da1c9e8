package io.nrt4j.net.libfabric;

import com.sun.jna.Native;
import java.nio.ByteBuffer;

/**
 * The data path through libffi, which JNA carries. Argument values sit in fixed off-heap slots; a call writes them, calls, and reads
 * the result slot. It allocates nothing.
 *
 * <p>Block: arguments {@code long[8]} at 0, result at 64, pointers to the arguments {@code void *[8]} at 72.
 */
final class FfiDataPath implements DataPath {
    private static final int RESULT = 64;
    private static final int POINTERS = 72;
    private static final int MAX_ARGUMENTS = 8;
    /** FFI_UNIX64, the only ABI of Linux on x86-64; on aarch64 FFI_SYSV is 1. */
    private static final int ABI = "aarch64".equals(System.getProperty("os.arch")) ? 1 : 2;
    /** FFI_TYPE_SINT64. */
    private static final short SINT64 = 12;
    /** Calling convention of n long arguments and a long result; made once, never freed. */
    private static final long[] CALL_INTERFACES = callInterfaces();

    private final ByteBuffer block;
    private final long arguments;
    private final long result;
    private final long pointers;
    private final FabricCalls calls;

    FfiDataPath(final FabricCalls calls) {
        this.calls = calls;
        arguments = Memory.allocate(POINTERS + MAX_ARGUMENTS * Long.BYTES);
        result = arguments + RESULT;
        pointers = arguments + POINTERS;
        block = Memory.view(arguments, POINTERS + MAX_ARGUMENTS * Long.BYTES);
        for (int i = 0; i < MAX_ARGUMENTS; i++) {
            block.putLong(POINTERS + i * Long.BYTES, arguments + (long) i * Long.BYTES);
        }
    }

    private static long[] callInterfaces() {
        // struct ffi_type { size_t size; unsigned short alignment, type; struct ffi_type **elements; }
        final long type = Memory.allocate(24);
        Memory.putLong(type, Long.BYTES);
        Memory.putInt(type + 8, Long.BYTES | SINT64 << 16);
        final long types = Memory.allocate((long) MAX_ARGUMENTS * Long.BYTES);
        for (int i = 0; i < MAX_ARGUMENTS; i++) {
            Memory.putLong(types + (long) i * Long.BYTES, type);
        }
        final long[] interfaces = new long[MAX_ARGUMENTS + 1];
        for (int n = 1; n <= MAX_ARGUMENTS; n++) {
            interfaces[n] = Native.ffi_prep_cif(ABI, n, type, types);
        }
        return interfaces;
    }

    private long call(final int argumentCount, final long function) {
        Native.ffi_call(CALL_INTERFACES[argumentCount], function, result, pointers);
        return block.getLong(RESULT);
    }

    @Override
    public long recv(
        final long buffer, final long length, final long descriptor, final long tag, final long ignore, final long context) {
        block.putLong(0, calls.endpoint());
        block.putLong(8, buffer);
        block.putLong(16, length);
        block.putLong(24, descriptor);
        block.putLong(32, FiLayout.ADDR_UNSPEC);
        block.putLong(40, tag);
        block.putLong(48, ignore);
        block.putLong(56, context);
        return call(8, calls.recv());
    }

    @Override
    public long send(final long buffer, final long length, final long descriptor, final long destination, final long tag,
        final long context) {
        block.putLong(0, calls.endpoint());
        block.putLong(8, buffer);
        block.putLong(16, length);
        block.putLong(24, descriptor);
        block.putLong(32, destination);
        block.putLong(40, tag);
        block.putLong(48, context);
        return call(7, calls.send());
    }

    @Override
    public long inject(final long buffer, final long length, final long destination, final long tag) {
        block.putLong(0, calls.endpoint());
        block.putLong(8, buffer);
        block.putLong(16, length);
        block.putLong(24, destination);
        block.putLong(32, tag);
        return call(5, calls.inject());
    }

    @Override
    public long cqRead(final long entries, final long count) {
        block.putLong(0, calls.queue());
        block.putLong(8, entries);
        block.putLong(16, count);
        return call(3, calls.read());
    }

    @Override
    public long cqReadError(final long entry) {
        block.putLong(0, calls.queue());
        block.putLong(8, entry);
        block.putLong(16, 0);
        return call(3, calls.readError());
    }

    @Override
    public long cancel(final long context) {
        block.putLong(0, calls.endpoint());
        block.putLong(8, context);
        return call(2, calls.cancel());
    }

    @Override
    public void free() {
        Memory.free(arguments);
    }
}
