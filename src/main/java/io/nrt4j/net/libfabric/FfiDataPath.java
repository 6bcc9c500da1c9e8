package io.nrt4j.net.libfabric;

import com.sun.jna.Native;
import java.nio.ByteBuffer;

/**
 * The data path through libffi, which JNA carries: libfabric's data calls are inline functions over tables of function
 * pointers, so there is no symbol to bind. Argument values sit in fixed off-heap slots; a call writes them, calls, and reads
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
    private final long endpoint;
    private final long queue;
    private final long recv;
    private final long send;
    private final long inject;
    private final long read;
    private final long readError;
    private final long cancel;

    /**
     * Binds to an enabled endpoint and its completion queue.
     *
     * @param endpoint {@code struct fid_ep *}.
     * @param queue    {@code struct fid_cq *}.
     */
    FfiDataPath(final long endpoint, final long queue) {
        this.endpoint = endpoint;
        this.queue = queue;
        arguments = Memory.allocate(POINTERS + MAX_ARGUMENTS * Long.BYTES);
        result = arguments + RESULT;
        pointers = arguments + POINTERS;
        block = Memory.view(arguments, POINTERS + MAX_ARGUMENTS * Long.BYTES);
        for (int i = 0; i < MAX_ARGUMENTS; i++) {
            block.putLong(POINTERS + i * Long.BYTES, arguments + (long) i * Long.BYTES);
        }
        final long tagged = Memory.getLong(endpoint + FiLayout.EP_TAGGED_OPS);
        recv = Memory.getLong(tagged + FiLayout.TAGGED_OPS_RECV);
        send = Memory.getLong(tagged + FiLayout.TAGGED_OPS_SEND);
        inject = Memory.getLong(tagged + FiLayout.TAGGED_OPS_INJECT);
        final long queueOps = Memory.getLong(queue + FiLayout.OBJECT_OPS);
        read = Memory.getLong(queueOps + FiLayout.CQ_OPS_READ);
        readError = Memory.getLong(queueOps + FiLayout.CQ_OPS_READERR);
        cancel = Memory.getLong(Memory.getLong(endpoint + FiLayout.OBJECT_OPS) + FiLayout.EP_OPS_CANCEL);
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
    public long recv(final long buffer, final long length, final long descriptor, final long tag, final long context) {
        block.putLong(0, endpoint);
        block.putLong(8, buffer);
        block.putLong(16, length);
        block.putLong(24, descriptor);
        block.putLong(32, FiLayout.ADDR_UNSPEC);
        block.putLong(40, tag);
        block.putLong(48, 0);
        block.putLong(56, context);
        return call(8, recv);
    }

    @Override
    public long send(final long buffer, final long length, final long descriptor, final long destination, final long tag,
        final long context) {
        block.putLong(0, endpoint);
        block.putLong(8, buffer);
        block.putLong(16, length);
        block.putLong(24, descriptor);
        block.putLong(32, destination);
        block.putLong(40, tag);
        block.putLong(48, context);
        return call(7, send);
    }

    @Override
    public long inject(final long buffer, final long length, final long destination, final long tag) {
        block.putLong(0, endpoint);
        block.putLong(8, buffer);
        block.putLong(16, length);
        block.putLong(24, destination);
        block.putLong(32, tag);
        return call(5, inject);
    }

    @Override
    public long cqRead(final long entries, final long count) {
        block.putLong(0, queue);
        block.putLong(8, entries);
        block.putLong(16, count);
        return call(3, read);
    }

    @Override
    public long cqReadError(final long entry) {
        block.putLong(0, queue);
        block.putLong(8, entry);
        block.putLong(16, 0);
        return call(3, readError);
    }

    @Override
    public long cancel(final long context) {
        block.putLong(0, endpoint);
        block.putLong(8, context);
        return call(2, cancel);
    }

    @Override
    public void free() {
        Memory.free(arguments);
    }
}
