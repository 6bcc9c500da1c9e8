package io.nrt4j.net.libfabric;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.net.NetTransport;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
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
final class MessageEngine implements FabricEndpoint.Completions {
    private static final Logger LOG = LoggerFactory.getLogger(MessageEngine.class);
    /** How long the requests of a broken communicator wait for the provider to give their memory up. */
    private static final long HOLD_NS = TimeUnit.MILLISECONDS.toNanos(500);
    private static final int POSTS_PER_POLL = 16;
    private static final int PEER_OPS = 1 << 12;

    final ReentrantLock lock = new ReentrantLock();

    private final FabricEndpoint endpoint;
    /** Whether each peer has an endpoint of its own. */
    private final boolean perPeer;
    private final Outbox outbox;
    private final Sending sending;
    private final Receiving receiving;
    private final int eagerLimit;
    private final LibraryBuffers buffers;
    private final long flushDelayNs;
    private ControlPlane control;
    private final CommTable comms = new CommTable();
    private Peer[] peers = new Peer[8];
    private Peer workHead;
    /** Endpoints of dead peers, closed when no call into them is under way. */
    private final List<FabricEndpoint> retired = new ArrayList<>();
    private int active;
    private int posts;
    private String brokenCause;
    /** Polls of the queue, by anybody. Under the lock. */
    private int polls;
    /** {@link #polls} as the last {@link #tick} left it. Under the lock. */
    private int pollsAtTick;
    /** The poll under way has seen the end of a long message. */
    private boolean longDone;
    /** Written under the lock (released lazily), read by any thread: whether {@link #progress} has something to move on. */
    private final AtomicInteger busy = new AtomicInteger();

    MessageEngine(final FabricEndpoint endpoint, final EndpointTuning tuning) {
        this.endpoint = endpoint;
        perPeer = tuning.endpointPerPeer();
        eagerLimit = tuning.eagerLimit();
        flushDelayNs = tuning.flushDelayNs();
        final int bufferBytes = Wire.HEADER_BYTES + Wire.ITEM_BYTES * (Outbox.MAX_RIDERS + 1) + Math.max(eagerLimit, 1024);
        buffers = new LibraryBuffers(this, endpoint, bufferBytes, perPeer);
        outbox = new Outbox(this, endpoint, bufferBytes, perPeer);
        sending = new Sending(this, endpoint, outbox);
        receiving = new Receiving(this, endpoint);
    }

    void attach(final ControlPlane controlPlane) {
        control = controlPlane;
    }

    CommTable comms() {
        return comms;
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
                if (comm.state[slot] == Comm.HELD && comm.brokenCause != null && System.nanoTime() - comm.giveUpAtNs >= 0) {
                    orphan(comm, slot);
                }
            }
            if (comm.state[slot] < Comm.DONE) {
                return NetTransport.PENDING;
            }
            final String cause = comm.cause[slot];
            final NrtStatus status = comm.causeStatus[slot];
            final long moved = comm.moved[slot];
            comm.freeSlot(slot);
            if (cause != null) {
                throw new NrtException(status, comm.direction() + " on communicator " + Integer.toHexString(comm.id) + ": " + cause);
            }
            return moved;
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
            return brokenCause == null ? progressLocked() : 0;
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
            int done = 0;
            if (polls == pollsAtTick && brokenCause == null) {
                done = progressLocked();
            }
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

    private void publishBusy() {
        settle();
        busy.lazySet(active + (workHead == null ? 0 : 1));
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
        longDone = false;
        int done;
        try {
            done = perPeer ? pollPeers() : endpoint.poll(this);
        } catch (final NrtException ex) {
            breakDown(ex.getMessage());
            return 1;
        }
        buffers.repostWaiting(done == 0);
        if (receiving.hasDemands()) {
            done += receiving.serveDemands();
        }
        if (workHead != null) {
            done += serveWork(done == 0 || longDone);
        }
        return done;
    }

    private int pollPeers() {
        int done = 0;
        for (final Peer peer : peers) {
            if (peer != null) {
                try {
                    done += peer.endpoint.poll(this);
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
        if (peer.stuck != null && !outbox.retryStuck(peer)) {
            return 0;
        }
        SendComm comm = peer.pollReady();
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
        if (peer.alive() && (peer.probeDue || peer.unreturned() >= peer.window / 2
            || idle && peer.announceHead != null && (peer.urgent || System.nanoTime() - peer.flushAtNs >= 0))) {
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

    // ---- Completions.

    @Override
    public void onCompletion(final FabricEndpoint at, final int op, final long lengthBytes, final long tag) {
        final OpTable ops = at.ops();
        final Object owner = ops.owner[op];
        switch (ops.kind[op]) {
            case OpTable.LIBRARY_RECV -> {
                if (tag == Wire.LIBRARY_TAG) {
                    onMessage((LibraryBuffer) owner);
                } else {
                    onBareMessage((LibraryBuffer) owner, tag, (int) lengthBytes);
                }
            }
            case OpTable.LIBRARY_SEND -> buffers.sent((LibraryBuffer) owner);
            default -> onDirect(at, op, lengthBytes, null);
        }
    }

    @Override
    public void onError(final FabricEndpoint at, final int op, final String text) {
        final OpTable ops = at.ops();
        final Object owner = ops.owner[op];
        switch (ops.kind[op]) {
            case OpTable.LIBRARY_RECV -> {
                LOG.warn("libfabric's {} failed a receive of a library message: {}", endpoint.info().provider(), text);
                buffers.repost((LibraryBuffer) owner);
            }
            case OpTable.LIBRARY_SEND -> {
                final LibraryBuffer buffer = (LibraryBuffer) owner;
                failPeer(buffer.peer, "fi_tsend of a library message failed: " + text);
                buffers.sent(buffer);
            }
            case OpTable.DIRECT_SEND -> onDirect(at, op, 0, "fi_tsend failed: " + text);
            default -> onDirect(at, op, 0, "fi_trecv failed: " + text);
        }
    }

    private void onDirect(final FabricEndpoint at, final int op, final long length, final String cause) {
        final OpTable ops = at.ops();
        final Object owner = ops.owner[op];
        final int slot = ops.slot[op];
        final boolean send = ops.kind[op] == OpTable.DIRECT_SEND;
        longDone = true;
        ops.release(op);
        if (owner instanceof RecvComm comm) {
            receiving.onDirectDone(comm, slot, length, cause);
        } else if (owner instanceof SendComm comm) {
            sending.onDirectDone(comm, slot, cause);
        } else if (!send) {
            at.directReceives--;
        }
    }

    private void onMessage(final LibraryBuffer buffer) {
        final java.nio.ByteBuffer bytes = buffer.bytes;
        final int index = bytes.getInt(Wire.INDEX);
        final Peer peer = index >= 0 && index < peers.length ? peers[index] : null;
        if (peer == null || peer.key != bytes.getInt(Wire.KEY) || !peer.alive()) {
            buffers.repost(buffer); // a late message of a peer that is gone
            return;
        }
        buffer.peer = peer;
        peer.heard = true;
        peer.received++;
        final int returned = bytes.getInt(Wire.RETURNED);
        if (returned - peer.returned > 0) {
            peer.returned = returned;
        }
        final int items = bytes.getInt(Wire.ITEMS);
        boolean kept = false;
        for (int i = 0; i < items && peer.alive(); i++) {
            final int at = Wire.HEADER_BYTES + i * Wire.ITEM_BYTES;
            kept |= onItem(peer, buffer, at, bytes.getInt(at), bytes.getInt(at + Wire.ITEM_POST), bytes.getLong(at + Wire.ITEM_VALUE));
        }
        if (!kept) {
            giveBack(buffer);
        }
    }

    /** A short message without a header, on the endpoint that its peer has for itself. */
    private void onBareMessage(final LibraryBuffer buffer, final long tag, final int length) {
        final Peer peer = peerOf(buffer.endpoint);
        if (peer == null) {
            buffers.repost(buffer);
            return;
        }
        buffer.peer = peer;
        peer.heard = true;
        peer.received++;
        if (!(comms.find(Wire.bareId(tag), peer) instanceof RecvComm recv)
            || !receiving.onData(recv, (int) tag, buffer, 0, length)) {
            giveBack(buffer);
        }
    }

    private Peer peerOf(final FabricEndpoint own) {
        for (final Peer peer : peers) {
            if (peer != null && peer.endpoint == own) {
                return peer;
            }
        }
        return null;
    }

    /** Answers true if the buffer is kept. */
    private boolean onItem(
        final Peer peer, final LibraryBuffer buffer, final int at, final int typeAndId, final int number, final long value) {
        final int type = typeAndId >>> Wire.ID_BITS;
        final int id = typeAndId & Wire.ID_MASK;
        final Comm comm = comms.find(id, peer);
        if (comm == null) {
            return false; // the communicator has been closed
        }
        final long length = value & Wire.LENGTH_MASK;
        if (comm instanceof SendComm send) {
            sending.onAnnounced(send, type, number, (int) (value >>> Wire.COUNT_SHIFT) + 1, length);
            return false;
        }
        final RecvComm recv = (RecvComm) comm;
        switch (type) {
            case Wire.DATA -> {
                return receiving.onData(recv, number, buffer, at + Wire.ITEM_BYTES, (int) length);
            }
            case Wire.DEMAND -> receiving.onDemand(recv, number);
            case Wire.TOO_LONG -> receiving.onTooLong(recv, number, length);
            default -> failPeer(peer, "protocol error: item of type " + type);
        }
        return false;
    }

    /** A message has been consumed: its buffer receives again soon, and its credit goes back then. */
    void giveBack(final LibraryBuffer buffer) {
        buffers.repostLater(buffer);
    }

    /** A consumed message's buffer receives again. */
    void onReposted(final Peer peer) {
        peer.consumed++;
        if (peer.alive() && peer.unreturned() >= peer.window / 2) {
            addWork(peer);
        }
    }

    // ---- Outcomes.

    void begin() {
        active++;
    }

    void complete(final Comm comm, final int slot, final long moved) {
        comm.moved[slot] = moved;
        decide(comm, slot);
    }

    void fail(final Comm comm, final int slot, final NrtStatus status, final String cause) {
        comm.cause[slot] = cause;
        comm.causeStatus[slot] = status;
        decide(comm, slot);
    }

    /** The outcome is known; the request is answered once the provider has given the memory up. */
    private void decide(final Comm comm, final int slot) {
        comm.retire(comm.number[slot]);
        if (comm.op[slot] == OpTable.NONE) {
            finish(comm, slot);
            return;
        }
        comm.state[slot] = Comm.HELD;
        if (comm instanceof RecvComm) {
            final FabricEndpoint at = comm.peer.endpoint;
            at.path().cancel(at.ops().context(comm.op[slot]));
        }
    }

    /** The request may be answered. */
    void finish(final Comm comm, final int slot) {
        comm.state[slot] = comm.cause[slot] == null ? Comm.DONE : Comm.FAILED;
        active--;
    }

    /**
     * Answers a held request without the provider. The operation, its registration and its context stay until the provider
     * gives them up or the endpoint is closed.
     */
    private void orphan(final Comm comm, final int slot) {
        comm.peer.endpoint.ops().owner[comm.op[slot]] = null;
        comm.op[slot] = OpTable.NONE;
        if (comm instanceof SendComm) {
            comm.peer.directSends--;
        }
        finish(comm, slot);
    }

    /** Fails what is pending from a post on; later posts throw. */
    void failComm(final Comm comm, final int from, final NrtStatus status, final String cause) {
        if (comm.brokenCause == null) {
            comm.brokenCause = cause;
            comm.brokenStatus = status;
        }
        comm.giveUpAtNs = System.nanoTime() + HOLD_NS;
        for (int number = from; number != comm.next; number++) {
            final int slot = comm.slotOf[number & Comm.RING_MASK];
            if (slot != Comm.NONE) {
                fail(comm, slot, status, cause);
            }
        }
    }

    /** The peer is gone, or nothing can be sent to it: its communicators' requests fail, and nobody else's. */
    void failPeer(final Peer peer, final String cause) {
        if (!peer.alive()) {
            return;
        }
        peer.deathCause = cause;
        peer.readyHead = null;
        peer.readyTail = null;
        peer.announceHead = null;
        peer.announceTail = null;
        peers[peer.index] = null;
        buffers.takeBack(peer);
        for (final Comm comm : comms.all()) {
            if (comm != null && comm.peer == peer) {
                failComm(comm, comm.oldest, NrtStatus.CLOSED, cause);
                dropEarly(comm);
                if (comm.closed) {
                    remove(comm);
                }
            }
        }
        if (perPeer) {
            retire(peer);
        }
        control.onPeerFailed(peer, cause);
    }

    /** Closes a dead peer's own endpoint: the provider has none of its memory any more. */
    private void retire(final Peer peer) {
        for (final Comm comm : comms.all()) {
            if (comm != null && comm.peer == peer) {
                for (int slot = 0; slot < Comm.SLOTS; slot++) {
                    if (comm.op[slot] != OpTable.NONE) {
                        orphan(comm, slot);
                    }
                }
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

    private void dropEarly(final Comm comm) {
        if (comm instanceof RecvComm recv) {
            for (int i = 0; i < Comm.RING; i++) {
                if (recv.early[i] != null) {
                    giveBack(recv.early[i]);
                    recv.early[i] = null;
                }
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
        final Peer peer = new Peer(at, index, ThreadLocalRandom.current().nextInt(1, Integer.MAX_VALUE), buffers.window());
        buffers.equip(peer);
        peers[index] = peer;
        return peer;
    }

    /** The peer's hello came: its endpoint can be sent to. The first message shows that the way is open. */
    void introduce(final Peer peer, final byte[] name, final int remoteIndex, final int remoteKey, final int remoteWindow,
        final int remoteEagerLimit) {
        peer.address = peer.endpoint.insert(name);
        peer.remoteIndex = remoteIndex;
        peer.remoteKey = remoteKey;
        peer.remoteWindow = remoteWindow;
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

    /** Gives all requests up and asks the provider for their memory. */
    void beginClose(final Comm comm) {
        comm.closed = true;
        if (comm instanceof RecvComm recv) {
            for (int slot = 0; slot < Comm.SLOTS; slot++) {
                if (recv.op[slot] != OpTable.NONE) {
                    recv.takenBack.add(new long[] {recv.number[slot], recv.length[slot]});
                }
            }
        }
        failComm(comm, comm.oldest, NrtStatus.CLOSED, "the communicator was closed");
        dropEarly(comm);
    }

    /** Whether the provider still has memory of a communicator. */
    boolean holdsMemory(final Comm comm) {
        for (final int op : comm.op) {
            if (op != OpTable.NONE) {
                return true;
            }
        }
        return false;
    }

    /** Forgets a closed communicator; operations that the provider did not give up stay behind without it. */
    void remove(final Comm comm) {
        for (int slot = 0; slot < Comm.SLOTS; slot++) {
            if (comm.op[slot] != OpTable.NONE) {
                orphan(comm, slot);
            }
        }
        if (comm instanceof SendComm send) {
            for (final boolean early : send.sentEarly) {
                comm.peer.early -= early ? 1 : 0;
            }
        }
        comms.remove(comm);
    }

    /** The sender has closed; it had transmitted so many posts. */
    void onSenderClosed(final RecvComm comm, final int transmitted) {
        final int from = transmitted - comm.oldest > 0 ? transmitted : comm.oldest;
        failComm(comm, from, NrtStatus.CLOSED, "the sender closed its communicator");
    }

    /** The receiver has closed and knows how far the sender had come: what was sent to it is swallowed. */
    void swallow(final RecvComm comm, final int transmitted) {
        for (final long[] post : comm.takenBack) {
            if ((int) post[0] - transmitted < 0) {
                receiving.postSink(comm, (int) post[0], post[1]);
            }
        }
        comm.takenBack.clear();
    }

    /** The endpoint is about to be closed: nothing is posted or polled any more. */
    void shutDown() {
        brokenCause = "the transport was closed";
        for (final Peer peer : peers.clone()) {
            if (peer != null) {
                failPeer(peer, brokenCause);
            }
        }
        settle();
        comms.clear();
        active = 0;
        workHead = null;
        publishBusy();
    }

    /** State of every peer and communicator, for people. Any thread, takes the lock. */
    String describe() {
        lock.lock();
        try {
            final StringBuilder text = new StringBuilder(brokenCause == null ? "" : "broken: " + brokenCause + "; ");
            text.append(active).append(" requests, ").append(receiving).append(buffers);
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
