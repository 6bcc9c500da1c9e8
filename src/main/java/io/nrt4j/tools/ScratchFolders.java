package io.nrt4j.tools;

import java.io.IOException;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Folders that must not outlive the process: whoever makes one deletes it, and what is left when the process is interrupted or told to
 * end is deleted then. Only a kill leaves them behind.
 *
 * <p>Threads: any; {@code OPEN} is a concurrent set.
 */
final class ScratchFolders {
    private static final Set<Path> OPEN = ConcurrentHashMap.newKeySet();

    static {
        Runtime.getRuntime().addShutdownHook(new Thread(() -> OPEN.forEach(ScratchFolders::deleteQuietly), "nrt4j-scratch"));
    }

    private ScratchFolders() {
    }

    /** Makes one in a folder, or in the temporary directory if that is null. */
    static Path create(final Path parent, final String prefix) throws IOException {
        final Path made = parent == null ? Files.createTempDirectory(prefix) : Files.createTempDirectory(parent, prefix);
        OPEN.add(made);
        return made;
    }

    /** Deletes one with all that is in it. */
    static void delete(final Path folder) throws IOException {
        Files.walkFileTree(folder, new SimpleFileVisitor<>() {
            @Override
            public FileVisitResult visitFile(final Path path, final BasicFileAttributes attributes) throws IOException {
                Files.deleteIfExists(path);
                return FileVisitResult.CONTINUE;
            }

            @Override
            public FileVisitResult postVisitDirectory(final Path path, final IOException ex) throws IOException {
                Files.deleteIfExists(path);
                return FileVisitResult.CONTINUE;
            }
        });
        OPEN.remove(folder);
    }

    /** Where a folder that stays is no reason to fail. */
    static void deleteQuietly(final Path folder) {
        try {
            delete(folder);
        } catch (final IOException ex) {
            OPEN.remove(folder); // tried once: it stays
        }
    }
}
