package io.nrt4j.testing;

import com.sun.jna.Memory;
import com.sun.jna.NativeLibrary;
import com.sun.jna.Pointer;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/**
 * The limit of this process's file descriptors, near or reached. It bounds their numbers, not how many there are, so that what is free
 * below it is taken, too.
 */
public final class FileLimit {
    private static final int RLIMIT_NOFILE = 7;
    private static final int RLIMIT_BYTES = 16;
    private static final Path DESCRIPTORS = Path.of("/proc/self/fd");

    private final long before;
    private final List<FileChannel> taken = new ArrayList<>();

    private FileLimit(final long limit) {
        before = set(limit);
    }

    /**
     * Lowers the limit for as long as something runs.
     *
     * @param spare      how many descriptors are left to it.
     * @param what       what runs.
     * @param ourFolders a class of each folder of classes that is in use: a class that is not loaded yet costs a descriptor.
     */
    public static void whileOnly(final int spare, final Runnable what, final Class<?>... ourFolders) {
        for (final Class<?> one : ourFolders) {
            loadAllBeside(one);
        }
        final FileLimit limit = new FileLimit(highest() + 1 + spare);
        try {
            limit.take();
            limit.giveBack(spare);
            what.run();
        } finally {
            set(limit.before);
            limit.giveBack(limit.taken.size());
        }
    }

    private static void loadAllBeside(final Class<?> one) {
        final Path folder = Path.of(one.getProtectionDomain().getCodeSource().getLocation().getPath());
        if (!Files.isDirectory(folder)) {
            return; // an archive, which is open
        }
        try (Stream<Path> files = Files.walk(folder)) {
            for (final Path file : files.map(folder::relativize).filter(file -> file.toString().endsWith(".class")).toList()) {
                final String name = file.toString().replace('/', '.').replaceFirst("\\.class$", "");
                if (!name.endsWith("-info")) {
                    Class.forName(name, false, one.getClassLoader());
                }
            }
        } catch (final IOException | ClassNotFoundException ex) {
            throw new IllegalStateException("cannot load the classes of " + folder, ex);
        }
    }

    private static long highest() {
        try (Stream<Path> files = Files.list(DESCRIPTORS)) {
            return files.mapToLong(file -> Long.parseLong(file.getFileName().toString())).max().orElseThrow();
        } catch (final IOException ex) {
            throw new UncheckedIOException(ex);
        }
    }

    private static long set(final long limit) {
        try (Memory both = new Memory(RLIMIT_BYTES)) {
            call("getrlimit", both);
            final long before = both.getLong(0);
            both.setLong(0, limit);
            call("setrlimit", both);
            return before;
        }
    }

    private static void call(final String function, final Pointer both) {
        if (NativeLibrary.getInstance("c").getFunction(function).invokeInt(new Object[] {RLIMIT_NOFILE, both}) != 0) {
            throw new IllegalStateException(function + " failed");
        }
    }

    private void take() {
        while (true) {
            try {
                taken.add(FileChannel.open(Path.of("/dev/null")));
            } catch (final IOException ex) {
                return;
            }
        }
    }

    private void giveBack(final int count) {
        for (int i = 0; i < count; i++) {
            try {
                taken.remove(taken.size() - 1).close();
            } catch (final IOException ex) {
                throw new UncheckedIOException(ex);
            }
        }
    }
}
