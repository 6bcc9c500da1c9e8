package io.nrt4j;

import com.sun.jna.Native;
import com.sun.jna.Pointer;
import java.lang.ref.Cleaner;
import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Objects;
import java.util.function.Consumer;

/**
 * A byte range at a stable native address: what a transfer reads from or writes to.
 *
 * <p>Three ways to make one: {@link #allocate(long)} (off-heap, any size up to the machine's memory, zeroed),
 * {@link #wrap(ByteBuffer)} (a direct buffer, which the tensor keeps alive), and
 * {@link #wrapAddress(long, long, Placement, int)} (memory of the host runtime, whose owner must keep it in place until the
 * tensor is closed and its requests are done).
 *
 * <p>Closing a tensor refuses new posts at once; memory and registrations go when the last request in flight is done, never
 * before. A tensor that is dropped without being closed is closed when the garbage collector finds it; a request in flight
 * keeps its tensor reachable.
 *
 * <p>Threads: safe for use by several threads. What the bytes hold while a transfer is in flight is the application's to
 * order, as with the C library. Ports {@code nrt_tensor_t}.
 */
public final class NrtTensor implements AutoCloseable {
    private static final Cleaner CLEANER = Cleaner.create();

    private final TensorStorage storage;
    private final Placement placement;
    private final int deviceIndex;
    private final boolean readOnly;
    private final Cleaner.Cleanable cleanable;

    private NrtTensor(
        final TensorStorage storage, final Placement placement, final int deviceIndex, final boolean readOnly) {
        this.storage = storage;
        this.placement = placement;
        this.deviceIndex = deviceIndex;
        this.readOnly = readOnly;
        cleanable = CLEANER.register(this, storage::close);
    }

    /**
     * Allocates zeroed host memory outside the heap.
     *
     * @param sizeBytes at least 1; may exceed 2 GiB.
     * @return a host tensor that owns its memory.
     * @throws NrtException INVALID if the size is not positive, FAIL_HOST_MEM_ALLOC if there is no such memory.
     */
    public static NrtTensor allocate(final long sizeBytes) {
        if (sizeBytes <= 0) {
            throw new NrtException(NrtStatus.INVALID, "tensor of " + sizeBytes + " bytes: the size must be positive");
        }
        final long address = Native.malloc(sizeBytes);
        if (address == 0) {
            throw new NrtException(NrtStatus.FAIL_HOST_MEM_ALLOC, "no host memory for a tensor of " + sizeBytes + " bytes");
        }
        new Pointer(address).clear(sizeBytes);
        return new NrtTensor(new TensorStorage(address, sizeBytes, TensorStorage.Origin.ALLOCATED, null),
            Placement.HOST, 0, false);
    }

    /**
     * Wraps the range from the buffer's position to its limit. The tensor keeps the buffer alive. A read-only buffer, such as
     * a file mapped for reading, makes a tensor that can be sent but not received into.
     *
     * @param direct a direct buffer with at least one byte remaining.
     * @return a host tensor over the buffer's memory.
     * @throws NrtException INVALID if the buffer is not direct, or empty.
     */
    public static NrtTensor wrap(final ByteBuffer direct) {
        Objects.requireNonNull(direct, "direct");
        if (!direct.isDirect()) {
            throw new NrtException(NrtStatus.INVALID, "only a direct buffer has a stable address; got " + direct);
        }
        if (!direct.hasRemaining()) {
            throw new NrtException(NrtStatus.INVALID, "a tensor needs at least one byte; nothing remains in " + direct);
        }
        final ByteBuffer slice = direct.slice();
        final long address = Pointer.nativeValue(Native.getDirectBufferPointer(slice));
        return new NrtTensor(
            new TensorStorage(address, slice.remaining(), TensorStorage.Origin.WRAPPED_BUFFER, slice),
            Placement.HOST, 0, direct.isReadOnly());
    }

    /**
     * Wraps memory that somebody else owns, such as device memory mapped by the host runtime.
     *
     * @param address     of the first byte, not 0.
     * @param sizeBytes   at least 1.
     * @param placement   where the memory is.
     * @param deviceIndex index that must match the one of the LNC ({@code vtpb_idx}) for {@link Placement#DEVICE}; ignored for
     *                    {@link Placement#HOST}.
     * @return a tensor that never frees its memory.
     * @throws NrtException INVALID if address or size cannot be.
     */
    public static NrtTensor wrapAddress(
        final long address, final long sizeBytes, final Placement placement, final int deviceIndex) {
        Objects.requireNonNull(placement, "placement");
        if (address == 0 || sizeBytes <= 0 || Long.compareUnsigned(address + sizeBytes, address) <= 0) {
            throw new NrtException(NrtStatus.INVALID,
                "no tensor can be at address 0x" + Long.toHexString(address) + " with " + sizeBytes + " bytes");
        }
        return new NrtTensor(
            new TensorStorage(address, sizeBytes, TensorStorage.Origin.FOREIGN, null), placement, deviceIndex, false);
    }

    /**
     * Address of the first byte. Ports {@code nrt_tensor_get_va}.
     *
     * @return native address, never 0.
     */
    public long address() {
        return storage.address();
    }

    /**
     * Size in bytes. Ports {@code nrt_tensor_get_size}.
     *
     * @return at least 1.
     */
    public long sizeBytes() {
        return storage.sizeBytes();
    }

    /**
     * Where the bytes live.
     *
     * @return placement given at creation.
     */
    public Placement placement() {
        return placement;
    }

    /**
     * Index of the device that holds the bytes ({@code vtpb_idx}).
     *
     * @return meaningful for {@link Placement#DEVICE} only.
     */
    public int deviceIndex() {
        return deviceIndex;
    }

    /**
     * Whether the memory may only be read, hence the tensor only be sent.
     *
     * @return true for a tensor over a read-only buffer.
     */
    public boolean isReadOnly() {
        return readOnly;
    }

    /**
     * Whether {@link #close()} was called.
     *
     * @return true from the close on.
     */
    public boolean isClosed() {
        return storage.isClosed();
    }

    /**
     * The memory behind this tensor, for engines and transports.
     *
     * @return same object for the life of the tensor.
     */
    public TensorStorage storage() {
        return storage;
    }

    /**
     * A view of part of a tensor's bytes, in the machine's byte order. The view does not keep the tensor: it must not be used after the
     * tensor was closed, or was dropped and collected.
     *
     * @param offset      of the first byte.
     * @param lengthBytes number of bytes.
     * @return a direct buffer with position 0 and limit {@code lengthBytes}; read-only if the tensor is.
     * @throws IndexOutOfBoundsException if the range is not inside the tensor.
     * @throws NrtException              CLOSED if the tensor is closed.
     */
    public ByteBuffer view(final long offset, final int lengthBytes) {
        Objects.checkFromIndexSize(offset, lengthBytes, sizeBytes());
        if (isClosed()) {
            throw new NrtException(NrtStatus.CLOSED, "view of closed " + this);
        }
        if (lengthBytes == 0) {
            return ByteBuffer.allocateDirect(0).order(ByteOrder.nativeOrder());
        }
        final ByteBuffer view = new Pointer(address() + offset).getByteBuffer(0, lengthBytes);
        return (readOnly ? view.asReadOnlyBuffer() : view).order(ByteOrder.nativeOrder());
    }

    /**
     * Copies bytes into the tensor.
     *
     * @param offset where they go.
     * @param source what is copied, whole.
     * @throws IndexOutOfBoundsException if they do not fit.
     * @throws NrtException              CLOSED if the tensor is closed.
     */
    public void write(final long offset, final byte[] source) {
        use(offset, source.length, view -> view.put(source));
    }

    /**
     * Copies bytes out of the tensor.
     *
     * @param offset      where they are.
     * @param lengthBytes how many.
     * @return a new array.
     * @throws IndexOutOfBoundsException if the range is not inside the tensor.
     * @throws NrtException              CLOSED if the tensor is closed.
     */
    public byte[] read(final long offset, final int lengthBytes) {
        Objects.checkFromIndexSize(offset, lengthBytes, sizeBytes()); // before an array of any length is made
        final byte[] target = new byte[lengthBytes];
        use(offset, lengthBytes, view -> view.get(target));
        return target;
    }

    /** Works on a view while the memory is held, so that a close meanwhile does not pull it away. */
    private void use(final long offset, final int lengthBytes, final Consumer<ByteBuffer> work) {
        final boolean held = storage.retain();
        try {
            work.accept(view(offset, lengthBytes));
        } finally {
            if (held) {
                storage.release();
            }
            Reference.reachabilityFence(this);
        }
    }

    /** Refuses new posts; memory and registrations go with the last request in flight. Idempotent. */
    @Override
    public void close() {
        cleanable.clean();
    }

    @Override
    public String toString() {
        return "tensor[" + placement + (placement == Placement.DEVICE ? " " + deviceIndex : "") + ", " + storage + "]";
    }
}
