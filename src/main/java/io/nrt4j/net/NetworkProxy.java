package io.nrt4j.net;

import io.nrt4j.NrtException;

/**
 * The far side of the seam between the proxy driver and a collective library: takes a block's descriptor lists and moves its
 * network operations on, one tick a call. It has no thread of its own.
 *
 * <p><b>Streams and blocks.</b> A communicator has up to {@link #MAX_STREAMS} streams. A stream runs one basic block at a time;
 * {@link #start} only makes a block known, {@link #progress} runs it. A block whose run is done is armed again by itself: the
 * next progress of it begins another run.
 *
 * <p><b>Failures</b> are {@link NrtException}s with status NETWORK_PROXY_FAILURE and the first cause.
 *
 * <p><b>Threads.</b> One communicator is used by one thread at a time, the driver's; different communicators by any. No call
 * blocks. {@link #progress} allocates nothing unless it fails.
 *
 * <p>Ports {@code neuronStartNetworkProxy}, {@code neuronNetworkProxyProgress} and {@code neuronStopNetworkProxy}.
 */
public interface NetworkProxy {
    /** Streams of a communicator, counted from 0. */
    int MAX_STREAMS = 4;

    /** Flag of {@link #progress}: nothing moved in this tick. */
    int IDLE = 1;

    /** Flag of {@link #progress}: the block's run is done. Told once for each run. */
    int DONE = 2;

    /**
     * Makes a block known. The arrays and their entries belong to the proxy until the block is stopped or started again. Blocks
     * of a stream are started in the order in which they will run; receives that may be posted early are posted here if every block
     * that was started before has run.
     *
     * @param comm         communicator of the network side.
     * @param stream       0 to 3.
     * @param basicBlock   number of the block, at least 0.
     * @param operations   the block's operations; entries name them by index.
     * @param sources      what is sent; empty, or ending in {@link NetAddrMark#EXEC_COMPLETE}.
     * @param destinations what is received; empty, or ending in {@link NetAddrMark#EXEC_COMPLETE}.
     * @throws NrtException NETWORK_PROXY_FAILURE when the lists are malformed or the block is running.
     */
    void start(
        long comm, int stream, int basicBlock, NetOpsInfo[] operations, NetSrcAddr[] sources, NetDestAddr[] destinations);

    /**
     * Gives up a block that was started for an execution that does not come about. It is forgotten; but if its receives are posted
     * already, they cannot be taken back, and the stream fails with the cause: its communicator is to be freed. A library that has
     * no such call does nothing; its communicator is to be freed in either case.
     *
     * @param comm       communicator of the network side.
     * @param stream     0 to 3.
     * @param basicBlock a block that was started and not progressed since.
     * @param cause      why.
     * @throws NrtException NETWORK_PROXY_FAILURE when it cannot.
     */
    default void abandon(final long comm, final int stream, final int basicBlock, final NrtException cause) {
    }

    /**
     * Moves a block on by one tick.
     *
     * @param comm       communicator of the network side.
     * @param stream     0 to 3.
     * @param basicBlock the block to run; while another one runs, it is noted as pending and neither moves nor is done.
     * @return {@link #IDLE} and {@link #DONE} in any combination; a caller that runs several streams ANDs them.
     * @throws NrtException NETWORK_PROXY_FAILURE when an operation failed; the stream stays failed.
     */
    int progress(long comm, int stream, int basicBlock);

    /**
     * Forgets the stream's blocks that have run and do not run now. Blocks that never ran stay known.
     *
     * @param comm   communicator of the network side.
     * @param stream 0 to 3.
     * @throws NrtException NETWORK_PROXY_FAILURE when it cannot.
     */
    void stop(long comm, int stream);
}
