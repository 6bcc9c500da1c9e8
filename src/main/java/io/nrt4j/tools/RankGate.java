package io.nrt4j.tools;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import java.time.Duration;
import java.util.concurrent.Phaser;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * Where the ranks of a process wait for one another. When one has failed it ends for all, those included that come later: nobody waits
 * for who will not come.
 *
 * <p>Threads: any; the state is the phaser's.
 */
final class RankGate {
    private final Phaser phaser;
    private final Duration limit;

    /**
     * Makes a gate.
     *
     * @param ranks number of ranks that pass it together.
     * @param limit longest wait.
     */
    RankGate(final int ranks, final Duration limit) {
        phaser = new Phaser(ranks);
        this.limit = limit;
    }

    /**
     * Waits until all ranks have come.
     *
     * @throws NrtException CLOSED when a rank has failed or this thread is interrupted, which it stays; TIMEOUT after the limit.
     */
    void await() {
        try {
            if (phaser.awaitAdvanceInterruptibly(phaser.arrive(), limit.toMillis(), TimeUnit.MILLISECONDS) < 0) {
                throw new NrtException(NrtStatus.CLOSED, "another rank has failed");
            }
        } catch (final InterruptedException ex) {
            Thread.currentThread().interrupt();
            throw new NrtException(NrtStatus.CLOSED, "interrupted while waiting for the other ranks", ex);
        } catch (final TimeoutException ex) {
            throw new NrtException(NrtStatus.TIMEOUT, "the other ranks did not come within " + limit.toMillis() + " ms", ex);
        }
    }

    /** A rank has failed. */
    void fail() {
        phaser.forceTermination();
    }

    /** @throws NrtException CLOSED when a rank has failed. */
    void check() {
        if (phaser.isTerminated()) {
            throw new NrtException(NrtStatus.CLOSED, "another rank has failed");
        }
    }
}
