package io.nrt4j.tools;

import java.util.List;

/**
 * Walks over the chunks of a transfer, in the order in which both ends post them: file after file, each cut in chunks of equal
 * size but for the last. An empty file is one chunk of length 0, for which no message is sent.
 *
 * <p>Threads: one.
 */
final class ChunkCursor {
    private final List<TransferFile> files;
    private final long chunkBytes;
    private int file;
    private long offset;
    private long length;
    private boolean started;

    ChunkCursor(final List<TransferFile> files, final long chunkBytes) {
        this.files = files;
        this.chunkBytes = chunkBytes;
    }

    /** Goes to the next chunk; false behind the last. */
    boolean next() {
        if (!started) {
            started = true;
        } else if (isLastOfFile()) {
            file++;
            offset = 0;
        } else {
            offset += length;
        }
        if (file >= files.size()) {
            return false;
        }
        length = Math.min(chunkBytes, files.get(file).sizeBytes() - offset);
        return true;
    }

    int file() {
        return file;
    }

    long offset() {
        return offset;
    }

    long length() {
        return length;
    }

    boolean isLastOfFile() {
        return offset + length == files.get(file).sizeBytes();
    }
}
