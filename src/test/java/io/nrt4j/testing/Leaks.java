package io.nrt4j.testing;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** What this process holds: threads, file descriptors, heap. */
public final class Leaks {
    private static final Path DESCRIPTORS = Path.of("/proc/self/fd");
    private static final int COLLECTIONS = 3;

    private Leaks() {
    }

    /**
     * The threads that this library has started and that run.
     *
     * @return their names.
     */
    public static Set<String> threads() {
        return Thread.getAllStackTraces().keySet().stream()
            .filter(thread -> thread.isAlive() && thread.getName().startsWith("nrt4j-"))
            .map(Thread::getName).collect(Collectors.toCollection(TreeSet::new));
    }

    /**
     * Open file descriptors of the process.
     *
     * @return how many, this question's own not counted.
     */
    public static int descriptors() {
        return describeDescriptors().size();
    }

    /**
     * Waits until no more descriptors are open than before.
     *
     * @param before number of them.
     * @param limit  longest wait.
     */
    public static void awaitDescriptors(final int before, final Duration limit) {
        Await.until(limit, () -> before + " descriptors before, now " + describeDescriptors(), () -> descriptors() <= before);
    }

    private static TreeMap<String, String> describeDescriptors() {
        final TreeMap<String, String> open = new TreeMap<>();
        try (Stream<Path> links = Files.list(DESCRIPTORS)) {
            for (final Path link : links.toList()) {
                final String target = target(link);
                if (target != null && !target.matches("/proc/[0-9]+/fd")) { // the list's own
                    open.put(link.getFileName().toString(), target);
                }
            }
        } catch (final IOException ex) {
            throw new AssertionError("no " + DESCRIPTORS + " here", ex);
        }
        return open;
    }

    private static String target(final Path link) {
        try {
            return Files.readSymbolicLink(link).toString();
        } catch (final IOException ex) {
            return null; // closed meanwhile
        }
    }

    /**
     * Heap in use after full collections.
     *
     * @return bytes; the least of some.
     */
    public static long heapBytes() {
        long least = Long.MAX_VALUE;
        for (int i = 0; i < COLLECTIONS; i++) {
            System.gc();
            pause();
            least = Math.min(least, Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory());
        }
        return least;
    }

    /** Lets cleaners run, what they free is found by the next collection. */
    private static void pause() {
        try {
            TimeUnit.MILLISECONDS.sleep(20);
        } catch (final InterruptedException ex) {
            Thread.currentThread().interrupt();
        }
    }
}
