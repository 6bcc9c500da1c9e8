package io.nrt4j.net.libfabric;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.net.NetTransport;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.ReentrantLock;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The message protocol over one endpoint: peers, communicators, requests, and the dispatch of completions.
 *
 * <p>Threads: the methods that begin with the lock's taking are for any thread and say so; all others run under
 * {@link #lock}. It is never held across a call into user code, and no wait happens under it.
 */
final class MessageEngine {
    private static final Logger LOG = LoggerFactory.getLogger(MessageEngine.class);
    private static final int POSTS_PER_POLL = 16;
    private static final int PEER_OPS = 1 << 12;

    final ReentrantLock lock = new ReentrantLock();

    private final FabricEndpoint endpoint;
    /** Whether each peer has an endpoint of its own. */
    private final boolean perPeer;
    private final Outbox outbox;
    private final Sending sending;
    private final Receiving receiving;
    private final Incoming incoming;
    private final DataLinks links;
    private final Outcomes outcomes;
    private final CommClosing closing;
    private final int eagerLimit;
    private final LibraryBuffers buffers;
    private final long flushDelayNs;
    private ControlPlane control;
    private final CommTable comms = new CommTable();
    private Peer[] peers = new Peer[8];
    private Peer workHead;
    /** Endpoints of dead peers, closed when no call into them is under way. */
    private final List<FabricEndpoint> retired = new ArrayList<>();
    private int posts;
    private String brokenCause;
    /** Polls of the queue, by anybody. Under the lock. */
    private int polls;
    /** {@link #polls} as the last {@link #tick} left it. Under the lock. */
    private int pollsAtTick;
    /** Written under the lock (released lazily), read by any thread: whether {@link #progress} has something to move on. */
    private final AtomicInteger busy = new AtomicInteger();

    MessageEngine(final FabricEndpoint endpoint, final EndpointTuning tuning) {
        this.endpoint = endpoint;
        perPeer = tuning.endpointPerPeer();
        links = new DataLinks(this, endpoint, perPeer);
        outcomes = new Outcomes(links);
        eagerLimit = tuning.eagerLimit();
        flushDelayNs = tuning.flushDelayNs();
        final int bufferBytes = Wire.HEADER_BYTES + Wire.ITEM_BYTES * (Outbox.MAX_RIDERS + 1) + Math.max(eagerLimit, 1024);
        buffers = new LibraryBuffers(this, endpoint, bufferBytes, perPeer);
        outbox = new Outbox(this, endpoint, bufferBytes, perPeer);
        sending = new Sending(this, endpoint, outbox, outcomes);
        receiving = new Receiving(this, endpoint, buffers, outcomes);
        closing = new CommClosing(comms, buffers, receiving, outcomes);
        incoming = new Incoming(this, buffers, sending, receiving);
    }

    void attach(final ControlPlane controlPlane) {
        control = controlPlane;
    }

    CommTable comms() {
        return comms;
    }

    Outcomes outcomes() {
        return outcomes;
    }

    DataLinks links() {
        return links;
    }

    /** By index, with gaps. */
    Peer[] peers() {
        return peers;
    }

    CommClosing closing() {
        return closing;
    }

    FabricEndpoint endpoint() {
        return endpoint;
    }

    ControlPlane control() {
        return control;
    }

    int eagerLimit() {
        return eagerLimit;
    }

    long flushDelayNs() {
        return flushDelayNs;
    }

    int postedBuffers() {
        return buffers.posted();
    }

    /** Operations of a kind that the provider has, on all endpoints; for tests. */
    int operations(final byte kind) {
        return !perPeer ? endpoint.ops().count(kind)
            : Arrays.stream(peers).filter(Objects::nonNull).mapToInt(peer -> peer.endpoint.ops().count(kind)).sum();
    }

    // ---- The data path: any thread, takes the lock.

    /** Posts a send or receive; answers a request, or NOT_YET. */
    long post(final boolean send, final long commHandle, final long address, final long length, final Registration registration) {
        lock.lock();
        try {
            final Comm comm = comms.open(commHandle, send);
            comm.checkPost();
            if ((++posts & POSTS_PER_POLL - 1) == 0) {
                progressLocked();
            }
            int slot = postSlot(comm, send, address, length, registration);
            if (slot == Comm.NONE) {
                progressLocked();
                comm.checkPost();
                slot = postSlot(comm, send, address, length, registration);
            }
            return slot == Comm.NONE ? NetTransport.NOT_YET : request(comm, slot);
        } finally {
            publishBusy();
            lock.unlock();
        }
    }

    private int postSlot(
        final Comm comm, final boolean send, final long address, final long length, final Registration registration) {
        return send ? sending.post((SendComm) comm, address, length, registration)
            : receiving.post((RecvComm) comm, address, length, registration);
    }

    /** A fence: a completed receive is visible to the processor, so it is done at once. */
    long postFence(final long commHandle) {
        lock.lock();
        try {
            final Comm comm = comms.open(commHandle, false);
            comm.checkPost();
            final int slot = comm.takeDoneSlot();
            return slot == Comm.NONE ? NetTransport.NOT_YET : request(comm, slot);
        } finally {
            lock.unlock();
        }
    }

    /** Answers bytes, or PENDING; throws what the request failed with. */
    long test(final long request) {
        lock.lock();
        try {
            final int slot = (int) (request >>> 16 & 0xFFFF) - 1;
            final Comm comm = comms.at((int) (request & 0xFFFF));
            if (comm == null || slot < 0 || slot >= Comm.SLOTS || comm.generation[slot] != (int) (request >>> 32)
                || comm.state[slot] == Comm.FREE) {
                throw new NrtException(NrtStatus.INVALID_HANDLE, "test: 0x" + Long.toHexString(request) + " is no request in flight");
            }
            if (comm.state[slot] < Comm.DONE) {
                progressLocked();
                if (comm.state[slot] == Comm.HELD && outcomes.isOverdue(comm, slot, System.nanoTime())) {
                    outcomes.orphan(comm, slot);
                }
            }
            if (comm.state[slot] < Comm.DONE) {
                return NetTransport.PENDING;
            }
            return comm.answer(slot);
        } finally {
            publishBusy();
            lock.unlock();
        }
    }

    /** Moves everything on, unless another thread is doing so. */
    int progress() {
        if (!lock.tryLock()) {
            return 0;
        }
        try {
            return progressLocked();
        } finally {
            publishBusy();
            lock.unlock();
        }
    }

    /**
     * The same for a thread that only steps in where nobody else polls: while applications do, a service thread that polls too
     * would only take the lock, and the copying, from a thread that has a processor already.
     */
    int tick() {
        if (!lock.tryLock()) {
            return 0;
        }
        try {
            final int done = polls == pollsAtTick ? progressLocked() : 0;
            outcomes.giveUp(comms.all());
            links.tick();
            pollsAtTick = polls;
            return done;
        } finally {
            publishBusy();
            lock.unlock();
        }
    }

    boolean needsProgress() {
        return busy.get() != 0;
    }

    /** Before the lock is given back, by whoever may have ended something: what is retired is closed, and the rest is counted. */
    void publishBusy() {
        settle();
        busy.lazySet(outcomes.active() + (workHead == null ? 0 : 1) + closing.waitingSinks());
    }

    private static long request(final Comm comm, final int slot) {
        return (long) comm.generation[slot] << 32 | (long) (slot + 1) << 16 | comm.id & 0xFFFF;
    }

    // ---- Progress.

    /** Drains the queue and sends what waits. */
    int progressLocked() {
        if (brokenCause != null) {
            return 0;
        }
        polls++;
        int done;
        try {
            done = perPeer ? pollPeers() : endpoint.poll(incoming);
        } catch (final NrtException ex) {
            breakDown(ex.getMessage());
            return 1;
        }
        buffers.repostWaiting(done == 0);
        closing.postSinks();
        if (receiving.hasDemands()) {
            done += receiving.serveDemands();
        }
        if (workHead != null) {
            done += serveWork(done == 0);
        }
        return done;
    }

    private int pollPeers() {
        int done = 0;
        for (final Peer peer : peers) {
            if (peer != null) {
                try {
                    done += peer.endpoint.poll(incoming);
                } catch (final NrtException ex) {
                    failPeer(peer, ex.getMessage());
                }
            }
        }
        return done;
    }

    private int serveWork(final boolean idle) {
        int done = 0;
        Peer peer = workHead;
        workHead = null;
        while (peer != null) {
            final Peer following = peer.nextWork;
            peer.nextWork = null;
            peer.inWork = false;
            if (peer.alive()) {
                done += serve(peer, idle);
                if (peer.alive() && peer.hasWork()) {
                    addWork(peer);
                }
            }
            peer = following;
        }
        return done;
    }

    private int serve(final Peer peer, final boolean idle) {
        int done = 0;
        if (peer.waits() || peer.stuck != null && !outbox.retryStuck(peer)) {
            return 0;
        }
        SendComm comm = peer.mute ? null : peer.pollReady();
        while (comm != null) {
            final int before = comm.transmit;
            final boolean allDone = sending.transmit(comm);
            done += comm.transmit - before;
            if (!allDone) {
                if (peer.alive()) {
                    peer.addReady(comm);
                }
                break;
            }
            comm = peer.pollReady();
        }
        if (peer.alive() && !peer.mute && (peer.probeDue || peer.creditsDue()
            || peer.overdue || idle && peer.announceHead != null && (peer.urgent || System.nanoTime() - peer.flushAtNs >= 0))) {
            done += outbox.flush(peer) ? 1 : 0;
        }
        return done;
    }

    void addWork(final Peer peer) {
        if (!peer.inWork) {
            peer.inWork = true;
            peer.nextWork = workHead;
            workHead = peer;
        }
    }

    /** A consumed message's buffer receives again. */
    void onReposted(final Peer peer) {
        peer.consumed++;
        if (peer.alive() && peer.creditsDue()) {
            addWork(peer);
        }
    }

    /** The peer at an index that a message names; null when there is none. */
    Peer peerAt(final int index) {
        return index >= 0 && index < peers.length ? peers[index] : null;
    }

    /** The peer with an endpoint of its own; null when it is gone. */
    Peer peerOf(final FabricEndpoint own) {
        for (final Peer peer : peers) {
            if (peer != null && peer.endpoint == own) {
                return peer;
            }
        }
        return null;
    }

    // ---- Ends.

    /** The peer is gone, or nothing can be sent to it: its communicators' requests fail, and nobody else's. */
    void failPeer(final Peer peer, final String cause) {
        if (!peer.alive()) {
            return;
        }
        peer.die(cause);
        peers[peer.index] = null;
        buffers.takeBack(peer);
        for (final Comm comm : comms.all()) {
            if (comm != null && comm.peer == peer) {
                outcomes.failComm(comm, comm.oldest, NrtStatus.CLOSED, cause);
                closing.dropEarly(comm);
                if (comm.closeSaid) {
                    closing.remove(comm);
                }
            }
        }
        if (perPeer) {
            retire(peer);
        }
        control.onPeerFailed(peer, cause); // it is told why, before it sees the connection go
        links.cut(peer);
    }

    /** Closes a dead peer's own endpoint: the provider has none of its memory any more. */
    private void retire(final Peer peer) {
        for (final Comm comm : comms.all()) {
            if (comm != null && comm.peer == peer) {
                outcomes.orphanAll(comm);
            }
        }
        retired.add(peer.endpoint);
    }

    /** Closes the endpoints of dead peers, before anybody is told that their requests failed, and outside of any call into them. */
    void settle() {
        for (int i = retired.size() - 1; i >= 0; i--) {
            retired.remove(i).close();
        }
    }

    /** The endpoint is unusable: everything on it fails. */
    void breakDown(final String cause) {
        LOG.error("the libfabric endpoint is broken: {}", cause);
        brokenCause = cause;
        for (final Peer peer : peers.clone()) {
            if (peer != null) {
                failPeer(peer, cause);
            }
        }
    }

    // ---- Peers and communicators; set-up, may allocate.

    /** Makes a peer with its buffers, before anything is promised to it. */
    Peer openPeer() {
        if (brokenCause != null) {
            throw new NrtException(NrtStatus.FAILURE, "the libfabric endpoint is broken: " + brokenCause);
        }
        int index = 0;
        while (index < peers.length && peers[index] != null) {
            index++;
        }
        if (index == peers.length) {
            peers = Arrays.copyOf(peers, index * 2);
        }
        final FabricEndpoint at = perPeer ? endpoint.another(PEER_OPS) : endpoint;
        try {
            final Peer peer = new Peer(at, index, ThreadLocalRandom.current().nextInt(1, Integer.MAX_VALUE), buffers.window());
            buffers.equip(peer);
            peers[index] = peer;
            return peer;
        } finally {
            if (perPeer && peers[index] == null) {
                at.close();
            }
        }
    }

    /** The peer's hello came: its endpoint can be sent to. The first message shows that the way is open. */
    void introduce(final Peer peer, final byte[] name, final int remoteIndex, final int remoteKey, final int remoteWindow,
        final int remoteEagerLimit) {
        peer.address = peer.endpoint.insert(name);
        links.introduce(peer, name);
        peer.remoteIndex = remoteIndex;
        peer.remoteKey = remoteKey;
        peer.grant(remoteWindow);
        peer.eagerLimit = Math.min(eagerLimit, remoteEagerLimit);
        peer.probeDue = true;
        addWork(peer);
        publishBusy();
    }

    /** Refuses a communicator that is not open. Any thread, takes the lock. */
    void checkOpen(final long handle) {
        lock.lock();
        try {
            if (comms.findOpen(handle, true) == null && comms.findOpen(handle, false) == null) {
                throw new NrtException(NrtStatus.INVALID_HANDLE, "0x" + Long.toHexString(handle) + " is no open communicator");
            }
        } finally {
            lock.unlock();
        }
    }

    /** After {@link #shutDown}: polls for the end of receives, and answers whether the provider has some still. */
    boolean drainReceives() {
        return endpoint.drain(incoming);
    }

    /** The endpoint is about to be closed: nothing is posted or polled any more. */
    void shutDown() {
        brokenCause = "the transport was closed";
        links.end();
        for (final Peer peer : peers.clone()) {
            if (peer != null) {
                failPeer(peer, brokenCause);
            }
        }
        settle();
        endpoint.ops().cancelReceives(endpoint.path());
        comms.clear();
        outcomes.reset();
        closing.forgetSinks();
        workHead = null;
        publishBusy();
    }

    /** State of every peer and communicator, for people. Any thread, takes the lock. */
    String describe() {
        lock.lock();
        try {
            final StringBuilder text = new StringBuilder(brokenCause == null ? "" : "broken: " + brokenCause + "; ");
            text.append(outcomes.active()).append(" requests, ").append(receiving).append(buffers);
            for (final Peer peer : peers) {
                text.append(peer == null ? "" : "; " + peer);
            }
            for (final Comm comm : comms.all()) {
                text.append(comm == null ? "" : "; " + comm);
            }
            return text.toString();
        } finally {
            lock.unlock();
        }
    }
}
