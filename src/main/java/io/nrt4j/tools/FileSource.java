package io.nrt4j.tools;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.NrtTensor;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;

/**
 * Turns the chunks of files into memory that can be sent. Where the transport allows it, a large file is mapped for reading, a
 * window at a time, and sent from the page cache without a copy; a small one is read into one of a few tensors that are used
 * again and again, since a mapping for each of many files would cost more than the copy.
 *
 * <p>A transport that moves bytes in native code must not be given mapped memory: when somebody cuts the file short
 * meanwhile, the first access behind its new end is a SIGBUS, which ends the process there, and an error that can be
 * caught in Java only. For such a transport all files are read.
 *
 * <p>A window's tensor is closed when its last chunk was sent and digested. The mapping itself goes when the garbage collector
 * finds its buffer, which the tensor keeps as long as a request or a registration needs it.
 *
 * <p>Threads: the sending thread; the digest lane gives memory back, to the queue of free tensors.
 */
final class FileSource implements AutoCloseable {
    /** Smallest file that is mapped. */
    static final long MAP_FROM_BYTES = 1 << 20;
    private static final long MAX_WINDOW_BYTES = 1 << 30;
    /** Most memory for chunks that are read. */
    static final long MAX_POOL_BYTES = 8L << 30;

    /**
     * A chunk in memory.
     *
     * @param memory with two uses for this chunk: the transfer's and the digest lane's.
     * @param offset of the chunk in the memory's tensor.
     * @param bytes  view of the chunk.
     */
    record Chunk(SendMemory memory, long offset, ByteBuffer bytes) {
    }

    private final long mapFromBytes;
    private final long pooledBytes;
    private final long windowBytes;
    private final int poolSize;
    private final List<NrtTensor> pool = new ArrayList<>();
    private final Queue<SendMemory> free = new ConcurrentLinkedQueue<>();
    private TransferFile file;
    private FileChannel channel;
    private SendMemory window;
    private long windowStart;

    /**
     * A source.
     *
     * @param chunkBytes   longest chunk.
     * @param poolSize     chunks that are in memory at once, at most.
     * @param largestBytes size of the largest file.
     * @param mapping      whether large files may be mapped.
     * @throws NrtException RESOURCE when so many chunks of that size would need too much memory.
     */
    FileSource(final long chunkBytes, final int poolSize, final long largestBytes, final boolean mapping) {
        this.poolSize = poolSize;
        mapFromBytes = mapping ? MAP_FROM_BYTES : Long.MAX_VALUE;
        pooledBytes = Math.max(1, Math.min(chunkBytes, Math.min(largestBytes, mapFromBytes)));
        windowBytes = Math.max(1, MAX_WINDOW_BYTES / chunkBytes) * chunkBytes;
        if (pooledBytes > MAX_POOL_BYTES / poolSize) {
            throw new NrtException(NrtStatus.RESOURCE, poolSize + " chunks of " + pooledBytes + " bytes in flight need more than "
                + MAX_POOL_BYTES + " bytes of memory: take a smaller chunk or fewer in flight");
        }
    }

    /**
     * Brings a chunk into memory. Chunks are asked for in order.
     *
     * @return the chunk, or null while all tensors that files are read into are in use.
     */
    Chunk open(final TransferFile of, final long offset, final int length, final boolean last) {
        try {
            if (of != file) {
                begin(of);
            }
            final Chunk chunk = of.sizeBytes() >= mapFromBytes ? mapped(offset, length) : read(offset, length);
            if (chunk != null && last) {
                end();
            }
            return chunk;
        } catch (final IOException ex) {
            throw new NrtException(NrtStatus.FAILURE, "cannot read '" + of.path() + "': "
                + (ex.getMessage() == null ? ex : ex.getMessage()), ex);
        }
    }

    private void begin(final TransferFile of) throws IOException {
        closeFile();
        file = of;
        channel = FileChannel.open(of.path(), StandardOpenOption.READ);
        checkSize();
    }

    private void end() throws IOException {
        checkSize();
        closeFile();
    }

    private void checkSize() throws IOException {
        if (channel.size() != file.sizeBytes()) {
            throw new IOException("it changed from " + file.sizeBytes() + " to " + channel.size() + " bytes");
        }
    }

    private Chunk mapped(final long offset, final int length) throws IOException {
        if (window == null || offset - windowStart >= windowBytes) {
            releaseWindow();
            windowStart = offset;
            checkSize();
            final ByteBuffer bytes = channel.map(MapMode.READ_ONLY, offset, Math.min(windowBytes, file.sizeBytes() - offset));
            window = new SendMemory(NrtTensor.wrap(bytes), bytes, unused -> unused.tensor().close()).retain(1);
        }
        final int at = (int) (offset - windowStart);
        return new Chunk(window.retain(2), at, window.bytes().slice(at, length));
    }

    private Chunk read(final long offset, final int length) throws IOException {
        SendMemory memory = free.poll();
        if (memory == null) {
            if (pool.size() == poolSize) {
                return null;
            }
            final NrtTensor tensor = NrtTensor.allocate(pooledBytes);
            pool.add(tensor);
            memory = new SendMemory(tensor, tensor.view(0, (int) pooledBytes), free::add);
        }
        final ByteBuffer bytes = memory.bytes().slice(0, length);
        while (bytes.hasRemaining()) {
            if (channel.read(bytes, offset + bytes.position()) < 0) {
                throw new IOException("it was cut short while it was read");
            }
        }
        return new Chunk(memory.retain(2), 0, bytes.flip());
    }

    private void releaseWindow() {
        if (window != null) {
            final SendMemory old = window;
            window = null;
            old.release();
        }
    }

    private void closeFile() throws IOException {
        releaseWindow();
        file = null;
        if (channel != null) {
            final FileChannel old = channel;
            channel = null;
            old.close();
        }
    }

    /** Closes file and tensors. Tensors of requests in flight live on until those are done. */
    @Override
    public void close() {
        try {
            closeFile();
        } catch (final IOException ex) {
            throw new NrtException(NrtStatus.FAILURE, "cannot close a file that was sent: " + ex.getMessage(), ex);
        } finally {
            pool.forEach(NrtTensor::close);
        }
    }
}
