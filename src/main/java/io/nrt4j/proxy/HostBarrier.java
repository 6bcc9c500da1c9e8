package io.nrt4j.proxy;

import io.nrt4j.NrtException;

/**
 * One rank's side of a barrier between the ranks of a communicator, in two halves that never block: the ranks report to the leader,
 * then the leader lets them go. Each half is called again until it answers true.
 *
 * <pre>
 *   rank    arrive: report to the leader              depart: the leader's word has come
 *   leader  arrive: all have reported (semaphores)    depart: all have been told
 * </pre>
 *
 * <p>Threads: one at a time, the worker's. {@link #close} by any, once the worker does not use the barrier any more. Allocates
 * nothing unless it fails.
 *
 * <p>Ports {@code enc_barrier} 0x12f660, which blocks.
 */
public interface HostBarrier extends AutoCloseable {
    /**
     * Whether this rank is the one that the others report to.
     *
     * @return true on one rank.
     */
    boolean isLeader();

    /**
     * First half of a round.
     *
     * @param round counts from 0, by one.
     * @return true when this rank has reported; for the leader, when all have.
     * @throws NrtException when a rank is gone.
     */
    boolean arrive(long round);

    /**
     * Second half of a round.
     *
     * @param round as for {@link #arrive}.
     * @return true when this rank may go on.
     * @throws NrtException when a rank is gone.
     */
    boolean depart(long round);

    /** Leaves: ranks that still wait for this one fail. Idempotent. */
    @Override
    void close();
}
