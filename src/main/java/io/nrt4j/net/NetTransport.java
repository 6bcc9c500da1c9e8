package io.nrt4j.net;

import io.nrt4j.NrtException;
import io.nrt4j.Placement;

/**
 * What the engine asks of a network: the NCCL net plug-in's contract, with native handles as {@code long}.
 *
 * <p><b>Try again is a value.</b> {@link #connect}, {@link #accept}, {@link #isend}, {@link #irecv} and {@link #iflush} answer
 * {@link #NOT_YET} when there is nothing to report or no room; the caller calls again later, with the same arguments.
 * {@link #test} answers {@link #PENDING}. Failures are {@link NrtException}s that name call, communicator and cause.
 *
 * <p><b>Order.</b> Per communicator, the n-th send of one end matches the n-th receive of the other, in the order in which
 * the calls that answered a request were made. A message longer than its receive fails at both ends, writes nothing beyond the
 * posted length, and leaves the communicator usable; a shorter one completes the receive with its real size. Length 0 is legal.
 *
 * <p><b>Memory.</b> Every post names a registration that covers its range, or fails. The range must stay in place until the
 * request is tested complete or failed, or the communicator's close returned; for ever, where either says that it is still in use.
 *
 * <p><b>Threads.</b> The data path of one communicator (isend, irecv, iflush, test) is called under the caller's lock of its
 * LNC, so by one thread at a time; different LNCs call at the same time. The control path (listen, connect, accept, close) of a
 * communicator is called by one thread at a time, without that lock, at the same time as other communicators' data paths.
 * {@link #regMr} and {@link #deregMr} may be called by any thread. An implementation must not call back and must not block.
 *
 * <p><b>Allocation.</b> isend, irecv, iflush, test and {@link #progress()} allocate nothing unless they fail.
 *
 * <p>Ports the {@code ncclNet*} wrappers of libnrt (0x1c3xxx), which forward to {@code neuronNet*} of libnccom.
 */
public interface NetTransport extends AutoCloseable {
    /** Size of a listen handle. */
    int HANDLE_BYTES = 128;

    /** No communicator yet, or no room for a request now: call again. Never a valid handle. */
    long NOT_YET = 0;

    /** How long a close waits for the memory of requests, unless its caller says: 2 s. */
    long CLOSE_WAIT_NS = 2_000_000_000L;

    /** Answer of {@link #test} while a request is in flight. */
    long PENDING = -1;

    /**
     * Name by which a configuration asks for it.
     *
     * @return such as {@code loopback}.
     */
    String name();

    /**
     * Longest message that one request can carry.
     *
     * @return bytes.
     */
    long maxMessageBytes();

    /**
     * The interface that an LNC should use.
     *
     * @param lnc 0 to 127.
     * @return what {@link #listen} and {@link #connect} take as {@code nic}.
     */
    default int nicOf(final int lnc) {
        return lnc;
    }

    /**
     * Listens for one or more peers.
     *
     * @param nic       from {@link #nicOf}.
     * @param handleOut filled with the {@link #HANDLE_BYTES} bytes that a peer needs to connect.
     * @return listen communicator.
     * @throws NrtException when it cannot listen.
     */
    long listen(int nic, byte[] handleOut);

    /**
     * Connects to a listener. It answers a communicator only when the listener has accepted it or is certain to.
     *
     * @param nic    from {@link #nicOf}.
     * @param handle the listener's handle; the transport may keep its progress inside, so the same array must be handed in
     *               until it answers or {@link #abandonConnect} was called.
     * @return send communicator, or {@link #NOT_YET}.
     * @throws NrtException status CLOSED when the listener is gone or refuses (the handle is stale), another status otherwise.
     */
    long connect(int nic, byte[] handle);

    /**
     * Gives up a connect that answered {@link #NOT_YET}, and frees what it holds.
     *
     * @param nic    as for the connect.
     * @param handle as for the connect.
     */
    void abandonConnect(int nic, byte[] handle);

    /**
     * Accepts the next peer.
     *
     * @param listenComm from {@link #listen}.
     * @return receive communicator, or {@link #NOT_YET}.
     * @throws NrtException when the listener is broken.
     */
    long accept(long listenComm);

    /**
     * Registers memory for a communicator's transfers.
     *
     * @param comm      send or receive communicator.
     * @param address   first byte.
     * @param sizeBytes at least 1.
     * @param placement where the memory is.
     * @return registration, never 0.
     * @throws NrtException when the memory cannot be registered.
     */
    long regMr(long comm, long address, long sizeBytes, Placement placement);

    /**
     * Ends a registration. No request may be in flight on it.
     *
     * @param comm         communicator that it was made for.
     * @param registration from {@link #regMr}.
     */
    void deregMr(long comm, long registration);

    /**
     * Posts a send.
     *
     * @param comm         send communicator.
     * @param address      first byte.
     * @param lengthBytes  0 to {@link #maxMessageBytes()}.
     * @param registration covers the range.
     * @return request, or {@link #NOT_YET} when there is no room.
     * @throws NrtException when the range is not registered, or the communicator is broken.
     */
    long isend(long comm, long address, long lengthBytes, long registration);

    /**
     * Posts a receive.
     *
     * @param comm         receive communicator.
     * @param address      first byte.
     * @param lengthBytes  most bytes to accept, 0 to {@link #maxMessageBytes()}.
     * @param registration covers the range.
     * @return request, or {@link #NOT_YET} when there is no room.
     * @throws NrtException when the range is not registered, or the communicator is broken.
     */
    long irecv(long comm, long address, long lengthBytes, long registration);

    /**
     * Posts a fence: once it tests complete, the data of receives that tested complete before is visible in memory.
     *
     * @param comm         receive communicator.
     * @param address      scratch memory.
     * @param lengthBytes  its size.
     * @param registration covers it.
     * @return request, or {@link #NOT_YET} when there is no room.
     * @throws NrtException when the communicator is broken.
     */
    long iflush(long comm, long address, long lengthBytes, long registration);

    /**
     * Asks whether a request is done. A request that answered a size or threw is given up and must not be tested again.
     *
     * @param request from isend, irecv or iflush.
     * @return bytes moved, at least 0; or {@link #PENDING}.
     * @throws NrtException when the transfer failed; a {@link MemoryInUseException} when its memory may be touched all the same until the
     *     transport is closed, since its network could not be made to let go of it.
     */
    long test(long request);

    /**
     * Moves on whatever is in flight, without blocking and whoever posted it. Any thread.
     *
     * @return how much was done.
     */
    default int progress() {
        return 0;
    }

    /**
     * Whether something is in flight that only {@link #progress()} moves on while nobody tests. Any thread.
     *
     * @return true keeps the service threads ticking.
     */
    default boolean needsProgress() {
        return false;
    }

    /**
     * Begins the close of a send or receive communicator without waiting for anything: its requests are given up, and nothing is posted or
     * tested on it any more. {@link #closeSend} or {@link #closeRecv} must follow. Whoever closes many begins them all first: what
     * their closes wait for then comes to pass at the same time. Idempotent; there may be nothing to do.
     *
     * @param comm send or receive communicator.
     */
    default void beginClose(final long comm) {
        // Nothing is waited for unless an implementation says so.
    }

    /**
     * Closes a send communicator, begun or not. Its requests are given up and its registrations end: their memory is not
     * touched after this returned. Idempotent.
     *
     * @param comm       send communicator.
     * @param deadlineNs reading of {@link System#nanoTime()} until which it may wait for the memory of requests.
     * @throws NrtException TIMEOUT when the peer stands still, or is too slow, and the memory of requests cannot be taken back until the
     *     deadline: the communicator is closed, but that memory may be touched until the transport is closed.
     */
    void closeSend(long comm, long deadlineNs);

    /**
     * Closes a receive communicator, begun or not. Its requests are given up and its registrations end: their memory is not
     * touched after this returned. Idempotent.
     *
     * @param comm       receive communicator.
     * @param deadlineNs as for {@link #closeSend(long, long)}.
     * @throws NrtException TIMEOUT as {@link #closeSend(long, long)}.
     */
    void closeRecv(long comm, long deadlineNs);

    /**
     * Closes a send communicator within {@link #CLOSE_WAIT_NS}.
     *
     * @param comm send communicator.
     * @throws NrtException TIMEOUT as {@link #closeSend(long, long)}.
     */
    default void closeSend(final long comm) {
        closeSend(comm, System.nanoTime() + CLOSE_WAIT_NS);
    }

    /**
     * Closes a receive communicator within {@link #CLOSE_WAIT_NS}.
     *
     * @param comm receive communicator.
     * @throws NrtException TIMEOUT as {@link #closeSend(long, long)}.
     */
    default void closeRecv(final long comm) {
        closeRecv(comm, System.nanoTime() + CLOSE_WAIT_NS);
    }

    /**
     * Closes a listen communicator; a connect that it has not accepted fails as stale. Idempotent.
     *
     * @param listenComm listen communicator.
     */
    void closeListen(long listenComm);

    /** Closes the transport and all that is left open in it. Idempotent. */
    @Override
    void close();
}
