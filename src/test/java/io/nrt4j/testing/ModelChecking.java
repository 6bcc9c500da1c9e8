package io.nrt4j.testing;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;
import org.jetbrains.lincheck.datastructures.ModelCheckingOptions;

/**
 * Runs a Lincheck test in model-checking mode: interleavings of small scenarios of two threads, up to a bound, each against the sequential
 * specification, instead of samples. A deadlock is found, too.
 *
 * <p>Model checking assumes that memory is sequentially consistent: the order of plain accesses is for the stress tests in
 * {@code jcstress/}.
 */
public final class ModelChecking {

    private ModelChecking() {
    }

    /**
     * Checks an object's operations.
     *
     * @param scenarios     how many, random but the same ones in every run.
     * @param interleavings most of each.
     * @param test          class with the operations, all public.
     * @param specification class with the same operations, for one thread.
     * @throws AssertionError with the interleaving that shows it, if some outcome is not one of a sequential order.
     */
    public static void check(
        final int scenarios, final int interleavings, final Class<?> test, final Class<?> specification) {
        try {
            new ModelCheckingOptions().threads(2).actorsPerThread(2).actorsBefore(1).actorsAfter(1).iterations(scenarios)
                .invocationsPerIteration(interleavings).minimizeFailedScenario(true).sequentialSpecification(specification).check(test);
        } finally {
            deleteBootstrapJarOnExit();
        }
    }

    /** Lincheck leaves a jar of its own in the temporary directory, open until the JVM ends: it shall go with it. */
    private static void deleteBootstrapJarOnExit() {
        try (Stream<Path> open = Files.list(Path.of("/proc/self/fd"))) {
            open.forEach(descriptor -> {
                try {
                    final Path file = Files.readSymbolicLink(descriptor);
                    if (file.getFileName() != null && file.getFileName().toString().startsWith("lincheck-bootstrap")) {
                        file.toFile().deleteOnExit();
                    }
                } catch (final IOException ex) {
                    // Closed meanwhile.
                }
            });
        } catch (final IOException ex) {
            // Not Linux: the jar stays.
        }
    }
}
