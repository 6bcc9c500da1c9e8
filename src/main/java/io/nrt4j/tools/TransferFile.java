package io.nrt4j.tools;

import java.nio.charset.StandardCharsets;
import java.nio.file.Path;

/**
 * A file of a transfer.
 *
 * <p>The name is the bytes that the file system has, segments joined by {@code /}, so that it arrives the same whatever the
 * character set of either side's locale.
 */
final class TransferFile {
    private final byte[] name;
    private final long sizeBytes;
    private final Path path;

    /** A file as the manifest names it. */
    TransferFile(final byte[] name, final long sizeBytes) {
        this(name, sizeBytes, null);
    }

    /** A file of the sending side. */
    TransferFile(final byte[] name, final long sizeBytes, final Path path) {
        this.name = name;
        this.sizeBytes = sizeBytes;
        this.path = path;
    }

    /** Not a copy. */
    byte[] name() {
        return name;
    }

    long sizeBytes() {
        return sizeBytes;
    }

    /** Where it is; null at the receiving side. */
    Path path() {
        return path;
    }

    /** The name for people: control characters are replaced. */
    @Override
    public String toString() {
        return new String(name, StandardCharsets.UTF_8).replaceAll("\\p{Cntrl}", "?");
    }
}
