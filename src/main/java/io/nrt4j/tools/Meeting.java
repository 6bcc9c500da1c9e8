package io.nrt4j.tools;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** Where the ranks of a job leave their listen handles for one another. Any thread. */
interface Meeting {
    /** Leaves a note, whole or not at all. */
    void leave(String name, byte[] note);

    /** Finds a note; null if it is not there yet. */
    byte[] find(String name);

    /** Between the threads of one process. */
    static Meeting inMemory() {
        final Map<String, byte[]> notes = new ConcurrentHashMap<>();
        return new Meeting() {
            @Override
            public void leave(final String name, final byte[] note) {
                notes.put(name, note.clone());
            }

            @Override
            public byte[] find(final String name) {
                return notes.get(name);
            }
        };
    }

    /** Between processes that see one folder, which must be new for each job. */
    static Meeting inFolder(final Path folder) {
        return new Meeting() {
            @Override
            public void leave(final String name, final byte[] note) {
                try {
                    Files.createDirectories(folder);
                    final Path unfinished = Files.createTempFile(folder, name, ".part");
                    Files.write(unfinished, note);
                    Files.move(unfinished, folder.resolve(name), StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
                } catch (final IOException ex) {
                    throw new UncheckedIOException("cannot leave a note in " + folder, ex);
                }
            }

            @Override
            public byte[] find(final String name) {
                try {
                    return Files.readAllBytes(folder.resolve(name));
                } catch (final NoSuchFileException ex) {
                    return null;
                } catch (final IOException ex) {
                    throw new UncheckedIOException("cannot read a note in " + folder, ex);
                }
            }
        };
    }
}
