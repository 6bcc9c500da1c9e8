package io.nrt4j.tools;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileSystemLoopException;
import java.nio.file.FileVisitOption;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.EnumSet;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Finds the files to send. A file arrives under its own name, a file of a folder under the folder's name and its place in it.
 * Symbolic links are followed, loops refused; whatever cannot be sent is refused before anything is sent. Empty folders are not
 * carried.
 */
final class FileCatalog {
    private final Map<String, TransferFile> byName = new HashMap<>();
    private final List<TransferFile> files = new ArrayList<>();

    private FileCatalog() {
    }

    /**
     * Looks at every source.
     *
     * @return the files in the order of the sources and, within a folder, of their names.
     * @throws NrtException with the path and the reason, if one cannot be sent, or if there is none.
     */
    static List<TransferFile> of(final List<Path> sources) {
        final FileCatalog catalog = new FileCatalog();
        for (final Path source : sources) {
            try {
                catalog.add(source);
            } catch (final IOException ex) {
                throw refusal(source, reason(ex), ex);
            }
        }
        if (catalog.files.isEmpty()) {
            throw new NrtException(NrtStatus.INVALID, "there is no file to send in " + sources);
        }
        return catalog.files;
    }

    private void add(final Path source) throws IOException {
        final Path start = source.toAbsolutePath().normalize();
        final byte[] root = FileNames.absolute(start);
        // The name begins behind the parent's last slash; for the root folder itself, behind its only one.
        int cut = root.length;
        while (cut > 0 && root[cut - 1] != '/') {
            cut--;
        }
        final int prefix = cut;
        final List<TransferFile> found = new ArrayList<>();
        Files.walkFileTree(start, EnumSet.of(FileVisitOption.FOLLOW_LINKS), Integer.MAX_VALUE, new SimpleFileVisitor<>() {
            @Override
            public FileVisitResult visitFile(final Path path, final BasicFileAttributes attributes) {
                found.add(checked(path, attributes, prefix));
                return FileVisitResult.CONTINUE;
            }

            @Override
            public FileVisitResult visitFileFailed(final Path path, final IOException ex) {
                throw refusal(path, reason(ex), ex);
            }
        });
        found.sort(Comparator.comparing(file -> new String(file.name(), StandardCharsets.ISO_8859_1)));
        for (final TransferFile file : found) {
            final TransferFile other = byName.put(new String(file.name(), StandardCharsets.ISO_8859_1), file);
            if (other != null) {
                throw refusal(file.path(), "it would arrive under the same name as " + other.path(), null);
            }
            files.add(file);
        }
    }

    private static TransferFile checked(final Path path, final BasicFileAttributes attributes, final int prefix) {
        if (attributes.isSymbolicLink()) {
            throw refusal(path, "there is no such file: it is a symbolic link to nothing", null);
        }
        if (!attributes.isRegularFile()) {
            throw refusal(path, "it is neither a file nor a folder", null);
        }
        if (!Files.isReadable(path)) {
            throw refusal(path, "it cannot be read: permission denied", null);
        }
        final byte[] whole = FileNames.absolute(path);
        final ByteArrayOutputStream name = new ByteArrayOutputStream();
        name.write(whole, prefix, whole.length - prefix);
        final String objection = FileNames.objection(name.toByteArray());
        if (objection != null) {
            throw refusal(path, "its name cannot be sent: " + objection, null);
        }
        return new TransferFile(name.toByteArray(), attributes.size(), path);
    }

    private static String reason(final IOException ex) {
        if (ex instanceof FileSystemLoopException) {
            return "it is a symbolic link that leads back to a folder above it";
        }
        if (ex instanceof NoSuchFileException) {
            return "there is no such file";
        }
        if (ex instanceof AccessDeniedException) {
            return "this user may not read it";
        }
        return ex.getMessage() == null ? ex.toString() : ex.getClass().getSimpleName() + ": " + ex.getMessage();
    }

    private static NrtException refusal(final Path path, final String reason, final IOException cause) {
        return new NrtException(NrtStatus.INVALID, "cannot send '" + path + "': " + reason, cause);
    }
}
