package io.nrt4j.tools;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;

/**
 * Digests the pieces of a transfer in order, in a thread of its own beside the transfer, and hands them on to a sink.
 *
 * <p>Threads: {@link #offer} by the transferring thread; {@code digests} and {@code busyNs} are written by the lane's thread
 * before it raises the volatile {@code processed}, and read by the transferring thread once that shows all pieces;
 * {@code failure} is a volatile.
 */
final class DigestLane implements AutoCloseable {
    private static final long JOIN_MS = 5000;
    private static final Piece END = new Piece(-1, null, false, () -> { });

    /**
     * Consecutive bytes of a file.
     *
     * @param file  number of the file.
     * @param bytes the bytes, from position to limit; the lane may move the position.
     * @param last  whether the file ends with them.
     * @param done  called by the lane's thread when it no longer needs the bytes.
     */
    record Piece(int file, ByteBuffer bytes, boolean last, Runnable done) {
    }

    /** Where the pieces go once they are digested. */
    @FunctionalInterface
    interface Sink {
        /** Takes bytes; {@code last} says that the file ends with them. */
        void write(int file, ByteBuffer bytes, boolean last) throws IOException;
    }

    private final BlockingQueue<Piece> queue;
    private final Sink sink;
    private final byte[][] digests;
    private final MessageDigest digest;
    private final Thread thread;
    private long offered;
    private long busyNs;
    private volatile long processed;
    private volatile Throwable failure;

    DigestLane(final String name, final int files, final int capacity, final Sink sink) {
        queue = new ArrayBlockingQueue<>(capacity);
        this.sink = sink;
        digests = new byte[files][];
        try {
            digest = MessageDigest.getInstance("SHA-256");
        } catch (final NoSuchAlgorithmException ex) {
            throw new IllegalStateException(ex); // every JDK has it
        }
        thread = new Thread(this::run, name);
        thread.setDaemon(true);
        thread.start();
    }

    /** Hands a piece over; false if the queue is full. */
    boolean offer(final Piece piece) {
        if (!queue.offer(piece)) {
            return false;
        }
        offered++;
        return true;
    }

    /** Pieces that are done; grows while the lane lives. */
    long processed() {
        return processed;
    }

    /** Whether every piece that was offered is done. */
    boolean isIdle() {
        return processed == offered;
    }

    /** Throws what ended the lane before its time. */
    void check() {
        final Throwable why = failure;
        if (why instanceof InternalError) {
            // How the JVM reports an access to a mapped page behind the end of its file.
            throw new NrtException(NrtStatus.FAILURE, "a file was cut short while it was read", why);
        }
        if (why instanceof NrtException known) {
            throw new NrtException(known.status(), known.getMessage(), why);
        }
        if (why != null) {
            throw new NrtException(NrtStatus.FAILURE, why instanceof IOException ? why.getClass().getSimpleName() + ": "
                + why.getMessage() : why.toString(), why);
        }
    }

    /** The digests, once the lane is idle. */
    byte[][] digests() {
        return digests;
    }

    /** Time spent on digesting alone, once the lane is idle. */
    long busyNs() {
        return busyNs;
    }

    private void run() {
        try {
            for (Piece piece = queue.take(); piece != END; piece = queue.take()) {
                process(piece);
                piece.done().run();
                processed++; // by this thread only
            }
        } catch (final InterruptedException ex) {
            // Only close() interrupts.
            Thread.currentThread().interrupt();
        } catch (final Throwable ex) { // an InternalError too: the transferring thread must be told
            failure = ex;
        }
    }

    private void process(final Piece piece) throws IOException {
        final long startNs = System.nanoTime();
        digest.update(piece.bytes().duplicate());
        if (piece.last()) {
            digests[piece.file()] = digest.digest();
        }
        busyNs += System.nanoTime() - startNs;
        if (sink != null) {
            sink.write(piece.file(), piece.bytes(), piece.last());
        }
    }

    /** Ends the thread: at once after the last piece, or in the middle. No piece is touched afterwards. */
    @Override
    public void close() {
        if (!queue.offer(END) || !isIdle()) {
            thread.interrupt();
        }
        try {
            thread.join(JOIN_MS);
        } catch (final InterruptedException ex) {
            Thread.currentThread().interrupt();
        }
        if (thread.isAlive()) {
            throw new NrtException(NrtStatus.TIMEOUT, thread.getName() + " did not end within " + JOIN_MS + " ms; it is at "
                + (thread.getStackTrace().length == 0 ? "its end" : thread.getStackTrace()[0]));
        }
    }
}
