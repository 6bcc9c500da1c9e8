package io.nrt4j.tools;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.List;

/**
 * Writes what arrives below a folder, and nothing outside of it. Files are written to a hidden folder inside first and moved to
 * their names when all of it proved right; a file that is there already is replaced then.
 *
 * <p>Threads: {@link #write} by the digest lane, the rest by the receiving thread before the lane starts or after it is idle.
 */
final class FileSink implements DigestLane.Sink, AutoCloseable {
    private final Path folder;
    private final Path staging;
    private final List<TransferFile> files;
    private FileChannel channel;

    /** Makes the folder if it is not there. */
    FileSink(final Path folder, final List<TransferFile> files) {
        this.folder = folder.toAbsolutePath().normalize();
        this.files = files;
        try {
            Files.createDirectories(this.folder);
            staging = ScratchFolders.create(this.folder, ".nrt4j-incoming-");
        } catch (final IOException ex) {
            throw new NrtException(NrtStatus.FAILURE, "cannot write to '" + folder + "': " + ex, ex);
        }
    }

    @Override
    public void write(final int file, final ByteBuffer bytes, final boolean last) throws IOException {
        if (channel == null) {
            final Path target = FileNames.below(staging, files.get(file).name());
            Files.createDirectories(target.getParent());
            channel = FileChannel.open(target, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE);
        }
        while (bytes.hasRemaining()) {
            channel.write(bytes);
        }
        if (last) {
            final FileChannel done = channel;
            channel = null;
            done.close();
        }
    }

    /** Moves a file that proved right to its name. */
    void keep(final int file) {
        final byte[] name = files.get(file).name();
        final Path target = FileNames.below(folder, name);
        try {
            makeParents(target);
            if (Files.isDirectory(target, LinkOption.NOFOLLOW_LINKS)) {
                throw new IOException("there is a folder of this name");
            }
            Files.move(FileNames.below(staging, name), target, StandardCopyOption.REPLACE_EXISTING, StandardCopyOption.ATOMIC_MOVE);
        } catch (final IOException ex) {
            throw new NrtException(NrtStatus.FAILURE, "cannot keep '" + files.get(file) + "' in '" + folder + "': "
                + (ex.getMessage() == null ? ex : ex.getMessage()), ex);
        }
    }

    /** Step by step, since a symbolic link on the way would lead out of the folder. */
    private void makeParents(final Path target) throws IOException {
        Path at = folder;
        for (final Path step : folder.relativize(target.getParent())) {
            if (step.toString().isEmpty()) {
                continue;
            }
            at = at.resolve(step);
            if (!Files.exists(at, LinkOption.NOFOLLOW_LINKS)) {
                Files.createDirectory(at);
            } else if (!Files.isDirectory(at, LinkOption.NOFOLLOW_LINKS)) {
                throw new IOException("'" + at + "' is there and is no folder");
            }
        }
    }

    /** Removes what was not kept. */
    @Override
    public void close() {
        try {
            if (channel != null) {
                channel.close();
            }
            ScratchFolders.delete(staging);
        } catch (final IOException ex) {
            throw new NrtException(NrtStatus.FAILURE, "cannot remove '" + staging + "': " + ex, ex);
        }
    }
}
