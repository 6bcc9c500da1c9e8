package io.nrt4j.sendrecv;

import io.nrt4j.NrtTensor;
import io.nrt4j.concurrent.LockedStack;
import io.nrt4j.concurrent.SpscRing;
import io.nrt4j.net.NetTransport;
import java.net.InetAddress;
import java.time.Duration;
import java.util.concurrent.locks.ReentrantLock;

/**
 * One direction between two LNCs: connect state, a fixed pool of 128 requests, the stash ring, the registrations.
 *
 * <p>Threads: {@code netComm} and {@code mrCache} are written by the service thread before it sets {@code status} to
 * CONNECTED, and read by whoever saw that (the volatile orders them). {@code connectState} belongs to the service thread, and to
 * the closer once that thread has ended. {@code failure} is written before {@code status} becomes
 * CONNECTION_ERROR. {@code dead} is written by the closer and read by the poster under {@code stashedProducerMutex}, and read
 * by anybody as a volatile. The pool and the ring order themselves.
 *
 * <p>Ports {@code nrt_async_sendrecv_comm}.
 */
final class Communicator {
    /** Requests in flight, hence slots of pool and ring. */
    static final int MAX_PENDING_REQUESTS = 128;

    private final LncContext context;
    private final CommType type;
    private final InetAddress peerAddress;
    private final PeerKey peer;
    private final long startNs;
    private final String exhaustedText;

    private final RequestSlot[] slots = new RequestSlot[MAX_PENDING_REQUESTS];
    private final LockedStack<RequestSlot> freelist = new LockedStack<>(MAX_PENDING_REQUESTS);
    private final SpscRing<RequestSlot> stash = new SpscRing<>(MAX_PENDING_REQUESTS);
    private final ReentrantLock stashedProducerMutex = new ReentrantLock();

    private ConnectState connectState = new ConnectState();
    private long netComm = NetTransport.NOT_YET;
    private MrCache mrCache;

    private volatile CommStatus status = CommStatus.START_INIT;
    private volatile CommFailure failure;
    private volatile boolean dead;

    Communicator(
        final LncContext context, final CommType type, final InetAddress peerAddress, final int peerLnc, final long startNs) {
        this.context = context;
        this.type = type;
        this.peerAddress = peerAddress;
        this.peer = new PeerKey(peerAddress.getHostAddress(), peerLnc);
        this.startNs = startNs;
        exhaustedText = type.word() + " on " + this + ": Maximum number of pending requests " + MAX_PENDING_REQUESTS + " reached";
        for (int i = MAX_PENDING_REQUESTS - 1; i >= 0; i--) {
            slots[i] = new RequestSlot(this, i);
            freelist.push(slots[i]);
        }
    }

    LncContext context() {
        return context;
    }

    CommType type() {
        return type;
    }

    InetAddress peerAddress() {
        return peerAddress;
    }

    PeerKey peer() {
        return peer;
    }

    long startNs() {
        return startNs;
    }

    /** Made once, so that a refused post allocates nothing. */
    String exhaustedText() {
        return exhaustedText;
    }

    CommStatus status() {
        return status;
    }

    /** Connect machine only: see {@link ConnectMachine}. */
    void setStatus(final CommStatus next) {
        status = next;
    }

    CommFailure failure() {
        return failure;
    }

    void setFailure(final CommFailure why) {
        failure = why;
    }

    /** Its LNC is closed. */
    boolean isDead() {
        return dead || context.isClosed();
    }

    LockedStack<RequestSlot> freelist() {
        return freelist;
    }

    SpscRing<RequestSlot> stash() {
        return stash;
    }

    long netComm() {
        return netComm;
    }

    MrCache mrCache() {
        return mrCache;
    }

    /** Service thread, until the communicator is connected; null afterwards. */
    ConnectState connectState() {
        return connectState;
    }

    /** Connect machine: the transport has connected. The status follows, and publishes this. */
    void setNetComm(final long comm) {
        netComm = comm;
        mrCache = new MrCache(context.transport(), comm);
        connectState = null;
    }

    /**
     * Poster: hands a stashed slot to the service thread.
     *
     * @return false if the communicator is dead.
     */
    boolean pushStashed(final RequestSlot slot) {
        stashedProducerMutex.lock();
        try {
            if (dead) {
                return false;
            }
            if (!stash.offer(slot)) {
                throw new IllegalStateException("stash ring of " + this + " is full with " + stash.size() + " requests");
            }
            return true;
        } finally {
            stashedProducerMutex.unlock();
        }
    }

    /** Requests that the application has not seen the end of. */
    int requestsInFlight() {
        return MAX_PENDING_REQUESTS - freelist.size();
    }

    /** Closer: no slot enters the stash any more. */
    void kill() {
        stashedProducerMutex.lock();
        try {
            dead = true;
        } finally {
            stashedProducerMutex.unlock();
        }
    }

    /**
     * Closer, when neither the service thread nor the transport touches a slot any more: ends every request and gives its
     * tensor back.
     *
     * @param memoryIsOurs whether the transport touches their memory no longer; else their tensors are kept for ever.
     * @return number of requests that were in flight.
     */
    int reclaimSlots(final boolean memoryIsOurs) {
        int reclaimed = 0;
        for (final RequestSlot slot : slots) {
            final long seen = slot.stateWord();
            if (RequestSlot.statusOf(seen) != RequestStatus.FREE && slot.finish(seen)) {
                final NrtTensor tensor = slot.clear();
                if (memoryIsOurs) {
                    tensor.storage().release();
                } else {
                    tensor.storage().keepForever();
                }
                reclaimed++;
            }
        }
        return reclaimed;
    }

    Duration elapsed(final long nowNs) {
        return Duration.ofNanos(nowNs - startNs);
    }

    @Override
    public String toString() {
        return type.word() + " communicator of lnc " + context.lnc() + " with " + peer.ip() + " lnc " + peer.lnc();
    }
}
