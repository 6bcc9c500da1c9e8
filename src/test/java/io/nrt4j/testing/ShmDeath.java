package io.nrt4j.testing;

import org.junit.jupiter.api.Assumptions;

/**
 * The one case that libfabric's shm provider does not survive every time: a process that is killed while it holds the lock of its shared
 * region leaves the survivor spinning on it, inside the native call, for ever. Tests that kill a peer over shm therefore run only
 * when they are asked for, with {@code -Dnrt4j.test.shmDeath=true}, and are skipped visibly otherwise.
 */
public final class ShmDeath {
    private ShmDeath() {
    }

    /**
     * Skips the calling test if it would kill a peer over shm without having been asked to.
     *
     * @param provider name of the libfabric provider.
     */
    public static void assumeSurvivable(final String provider) {
        Assumptions.assumeTrue(!provider.equals("shm") || Boolean.getBoolean("nrt4j.test.shmDeath"),
            "over shm a killed peer can leave the survivor spinning in native code: -Dnrt4j.test.shmDeath=true runs it");
    }
}
