package io.nrt4j.testing;

import org.jetbrains.lincheck.datastructures.ModelCheckingOptions;

/**
 * Runs a Lincheck test in model-checking mode: all interleavings of small scenarios up to a bound, each against the sequential
 * specification, instead of samples. A deadlock is found, too.
 *
 * <p>Model checking assumes that memory is sequentially consistent: the order of plain accesses is for the stress tests in
 * {@code jcstress/}.
 */
public final class ModelChecking {
    private static final int SCENARIOS = 10;
    private static final int INTERLEAVINGS = 400;

    private ModelChecking() {
    }

    /**
     * Checks an object's operations.
     *
     * @param threads       of a scenario.
     * @param test          class with the operations, all public.
     * @param specification class with the same operations, for one thread.
     * @throws AssertionError with the interleaving that shows it, if some outcome is not one of a sequential order.
     */
    public static void check(final int threads, final Class<?> test, final Class<?> specification) {
        new ModelCheckingOptions().threads(threads).actorsPerThread(2).actorsBefore(1).actorsAfter(1).iterations(SCENARIOS)
            .invocationsPerIteration(INTERLEAVINGS).minimizeFailedScenario(true).sequentialSpecification(specification).check(test);
    }
}
