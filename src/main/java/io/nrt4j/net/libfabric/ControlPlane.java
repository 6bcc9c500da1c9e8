package io.nrt4j.net.libfabric;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.concurrent.NanoClock;
import io.nrt4j.concurrent.StrangerLog;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.UnknownHostException;
import java.nio.channels.SocketChannel;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Control connections: one to each peer process, whatever the number of communicators. It says hello, carries what
 * {@link Rendezvous} has to say, closes communicators, and is the liveness channel: when it breaks, the requests of that peer's
 * communicators fail.
 *
 * <p>When two processes open a connection to each other at the same time, the one from the smaller instance number stays, also when the
 * other's hello comes late.
 * Threads: all state under the engine's lock; the sockets belong to {@link ControlThread}, which calls the {@code on...}
 * methods under that lock.
 */
final class ControlPlane {
    private static final Logger LOG = LoggerFactory.getLogger(ControlPlane.class);
    /** How long a connection may take to come up, and a connect may be without one. */
    static final long HANDSHAKE_S = 10;

    /** Connections that have not said hello, each of which has seconds for it. */
    private static final int MAX_STRANGERS = 1024;
    private static final long GOODBYE_NS = TimeUnit.MILLISECONDS.toNanos(500);
    private static final long GOODBYE_PAUSE_NS = 50_000;
    private static final long SHORT_SLEEP_MS = 1;
    /** So that a process that neither posts nor tests still answers its peers. */
    static final long LONG_SLEEP_MS = 20;

    private final MessageEngine engine;
    private final String compatibility;
    private final long instance = ThreadLocalRandom.current().nextLong(1, Long.MAX_VALUE);
    private final ControlThread thread;
    private final Rendezvous rendezvous;
    private final Map<Long, ControlConnection> byInstance = new HashMap<>();
    /** Changed under the lock; the control thread goes through it without one, and without making a copy for each look. */
    private final List<ControlConnection> connections = new CopyOnWriteArrayList<>();
    /** Whoever may connect to the control port may write to the log only so often. */
    private final StrangerLog strangers = new StrangerLog(NanoClock.SYSTEM, LOG::warn);
    private boolean closed;
    /** Why the control thread has ended by itself; null while it has not. */
    private String brokenCause;

    ControlPlane(final MessageEngine engine, final InetAddress address) throws IOException {
        this.engine = engine;
        compatibility = engine.endpoint().info().provider() + " " + java.nio.ByteOrder.nativeOrder();
        thread = new ControlThread(this, engine, address);
        rendezvous = new Rendezvous(engine, this);
    }

    void start() {
        thread.start();
    }

    /** Communicators that are being connected. */
    Rendezvous rendezvous() {
        return rendezvous;
    }

    long instance() {
        return instance;
    }

    /** Where control connections are accepted. */
    InetSocketAddress address() {
        return thread.address();
    }

    /** The connection to the process of a handle, which may have to come up yet. Under the lock. */
    ControlConnection connectionTo(final ListenHandle handle) {
        final ControlConnection connection = byInstance.get(handle.instance());
        return connection == null ? open(handle) : connection;
    }

    private ControlConnection open(final ListenHandle handle) {
        try {
            final SocketChannel channel = SocketChannel.open();
            boolean open = false;
            try {
                final ControlConnection connection = new ControlConnection(channel, true, handle.control().toString(),
                    System.nanoTime() + TimeUnit.SECONDS.toNanos(HANDSHAKE_S));
                channel.bind(new InetSocketAddress(thread.address().getAddress(), 0));
                channel.connect(handle.control());
                connection.remoteInstance = handle.instance();
                connection.peer = engine.openPeer();
                send(connection, hello(ControlFrame.HELLO, connection));
                byInstance.put(handle.instance(), connection);
                connections.add(connection);
                thread.register(connection);
                open = true;
                return connection;
            } finally {
                if (!open) {
                    channel.close();
                }
            }
        } catch (final IOException ex) {
            throw new NrtException(ex instanceof java.net.ConnectException ? NrtStatus.CLOSED : NrtStatus.FAILURE,
                "connect to " + handle.control() + ": " + ex.getMessage(), ex);
        }
    }

    private ControlFrame hello(final int type, final ControlConnection connection) {
        final Peer peer = connection.peer;
        return new ControlFrame(type, instance, connection.remoteInstance, (long) peer.index << 32 | peer.key,
            (long) peer.window << 32 | engine.eagerLimit(), peer.endpoint.name(), compatibility);
    }

    /** Tells the other end that a communicator is closed, and forgets it when nothing is left to be said. Under the lock. */
    void announceClose(final Comm comm) {
        comm.closeSaid = true;
        final ControlConnection connection = connectionOf(comm.peer);
        if (connection == null || !comm.peer.alive()) {
            engine.closing().remove(comm);
        } else if (comm instanceof SendComm send) {
            if (comm.remoteClosed) {
                engine.closing().remove(comm);
            } else {
                send(connection, ControlFrame.of(ControlFrame.SEND_CLOSED, comm.remoteId, send.transmit, ""));
            }
        } else {
            send(connection,
                new ControlFrame(ControlFrame.RECV_CLOSED, comm.remoteId, comm.id, comm.next, 0, CommClosing.received(comm), ""));
        }
    }

    /** Tells a receiver that a post will not come. Under the lock. */
    void abortReceive(final SendComm comm, final int number, final String cause) {
        final ControlConnection connection = connectionOf(comm.peer);
        if (connection != null) {
            send(connection, ControlFrame.of(ControlFrame.ABORT_RECV, comm.remoteId, number, cause));
        }
    }

    private ControlConnection connectionOf(final Peer peer) {
        for (final ControlConnection connection : connections) {
            if (connection.peer == peer) {
                return connection;
            }
        }
        return null;
    }

    void checkOpen() {
        if (closed) {
            throw new NrtException(NrtStatus.CLOSED, "the libfabric transport is closed");
        }
        if (brokenCause != null) {
            throw new NrtException(NrtStatus.FAILURE, "the libfabric transport has no control connections any more: " + brokenCause);
        }
    }

    void send(final ControlConnection connection, final ControlFrame frame) {
        if (connection.alive()) {
            connection.out.add(frame.encode());
            thread.wakeUp();
        }
    }

    /** Says goodbye and ends the thread. Takes the lock. */
    void close() {
        engine.lock.lock();
        try {
            closed = true;
            for (final ControlConnection connection : connections) {
                if (connection.phase == ControlConnection.Phase.UP) {
                    send(connection, ControlFrame.of(ControlFrame.BYE, connection.peer.sent, connection.peer.directSent, ""));
                    connection.peer.mute = true;
                }
            }
            // A peer that gets our goodbye before our last messages would take them for lost.
            final long deadlineNs = System.nanoTime() + GOODBYE_NS;
            while (saidGoodbye() && System.nanoTime() - deadlineNs < 0) {
                engine.progressLocked();
                engine.lock.unlock();
                LockSupport.parkNanos(GOODBYE_PAUSE_NS);
                engine.lock.lock();
            }
        } finally {
            engine.lock.unlock();
        }
        thread.close();
    }

    /** Whether a peer has not answered the goodbye yet. */
    private boolean saidGoodbye() {
        for (final ControlConnection connection : connections) {
            if (connection.phase == ControlConnection.Phase.UP && !connection.bye) {
                return true;
            }
        }
        return false;
    }

    // ---- What the control thread tells; under the lock.

    List<ControlConnection> connections() {
        return connections;
    }

    /**
     * How long the control thread may sleep. Only a data path that is being opened, or a goodbye that waits for messages, needs the
     * endpoint polled all the time. Who has not said hello yet, be it for ever, is looked at when its time is over.
     *
     * @return milliseconds; 0 is for ever.
     */
    long sleepMs() {
        final long now = System.nanoTime();
        boolean peers = false;
        long strangersNs = Long.MAX_VALUE;
        for (final ControlConnection connection : connections) {
            if (connection.phase == ControlConnection.Phase.PROBING || connection.bye) {
                return SHORT_SLEEP_MS;
            }
            if (connection.peer == null) {
                strangersNs = Math.min(strangersNs, connection.deadlineNs - now);
            } else {
                peers = true;
            }
        }
        final long strangersMs = strangersNs == Long.MAX_VALUE ? 0 : Math.max(1, TimeUnit.NANOSECONDS.toMillis(strangersNs) + 1);
        return !peers ? strangersMs : strangersMs == 0 ? LONG_SLEEP_MS : Math.min(LONG_SLEEP_MS, strangersMs);
    }

    void onAccepted(final SocketChannel channel) throws IOException {
        if (connections.stream().filter(connection -> connection.peer == null).count() >= MAX_STRANGERS) {
            strangers.say("refused a control connection from " + channel.getRemoteAddress() + ": " + MAX_STRANGERS
                + " others have not said hello yet");
            channel.close();
            return;
        }
        final ControlConnection connection = new ControlConnection(channel, false, String.valueOf(channel.getRemoteAddress()),
            System.nanoTime() + TimeUnit.SECONDS.toNanos(HANDSHAKE_S));
        connections.add(connection);
        thread.registerNow(connection);
    }

    /** Looks at time limits, and at connections whose data path has been heard. */
    void onTick() {
        final long now = System.nanoTime();
        List<TcpSocket> sockets = null; // looked up once for all that are new
        if (engine.links().hasUnmatched()) {
            sockets = TcpSocket.connected();
            engine.links().matchSources(sockets);
        }
        for (final ControlConnection connection : connections) {
            if (connection.phase == ControlConnection.Phase.PROBING && connection.peer.heard) {
                sockets = sockets == null ? TcpSocket.connected() : sockets;
                onUp(connection, sockets);
            } else if (connection.bye) {
                if (connection.peer.received - connection.byeMessages >= 0 && connection.peer.directReceived - connection.byeDirect >= 0
                    || now - connection.deadlineNs >= 0) {
                    connection.sayLast(ControlFrame.of(ControlFrame.BYE_ACK, 0, 0, ""));
                    onBroken(connection, "the peer at " + connection.where + " closed its transport");
                }
            } else if (connection.phase == ControlConnection.Phase.UP && connection.hostIsLost(now)) {
                onBroken(connection, "the host of " + connection.where + " has acknowledged nothing for " + ControlConnection.LOST_HOST_S
                    + " s");
            } else if (connection.phase != ControlConnection.Phase.UP && now - connection.deadlineNs >= 0) {
                onBroken(connection, switch (connection.phase) {
                    case CONNECTING -> "no answer from ";
                    case PROBING -> "nothing came through libfabric from ";
                    default -> "no hello from ";
                } + connection.where + " within " + HANDSHAKE_S + " s");
            }
        }
    }

    private void onUp(final ControlConnection connection, final List<TcpSocket> sockets) {
        connection.phase = ControlConnection.Phase.UP;
        LOG.debug("control connection {} is up", connection);
        connection.watch(sockets);
        final InetSocketAddress source = engine.links().onUp(connection.peer, sockets);
        if (source != null) {
            send(connection, new ControlFrame(ControlFrame.DATA_FROM, source.getPort(), 0, 0, 0, source.getAddress().getAddress(), ""));
        }
        rendezvous.onUp(connection);
    }

    private void onSource(final ControlConnection connection, final ControlFrame frame) {
        try {
            engine.links().onSource(connection.peer, new InetSocketAddress(InetAddress.getByAddress(frame.name()), (int) frame.a()));
        } catch (final UnknownHostException | IllegalArgumentException ex) {
            onBroken(connection, "a wrong address came from " + connection.where + ": " + ex.getMessage());
        }
    }

    /** The connection is over, whoever ended it. */
    void onBroken(final ControlConnection connection, final String cause) {
        if (!connection.alive()) {
            return;
        }
        connection.ended |= connection.bye || engine.links().needEndOfProcess() && connection.isAtItsEnd();
        if (!connection.ended && !closed && connection.phase.compareTo(ControlConnection.Phase.PROBING) >= 0) {
            connection.sayLast(ControlFrame.of(ControlFrame.BYE, 0, 0, cause)); // or the peer would take it for the end of this process
        }
        connection.phase = ControlConnection.Phase.DEAD;
        connection.closeQuietly();
        connections.remove(connection);
        byInstance.remove(connection.remoteInstance, connection);
        rendezvous.onBroken(connection, cause);
        if (connection.peer != null) {
            connection.peer.ended = connection.ended;
        }
        if (connection.peer != null && connection.peer.alive()) {
            engine.failPeer(connection.peer, cause);
            engine.settle();
        }
    }

    /** The data path found a peer unusable. */
    void onPeerFailed(final Peer peer, final String cause) {
        final ControlConnection connection = connectionOf(peer);
        if (connection != null) {
            LOG.warn("peer {} failed: {}", connection.where, cause);
            onBroken(connection, cause);
            thread.wakeUp();
        }
    }

    void onFrame(final ControlConnection connection, final ControlFrame frame) {
        if (frame.type() == ControlFrame.HELLO && !connection.outgoing && !connection.answered) {
            connection.answered = true;
            onHello(connection, frame);
        } else if (connection.outgoing && connection.phase == ControlConnection.Phase.HELLO) {
            onHelloAnswer(connection, frame);
        } else if (connection.peer == null || connection.phase.compareTo(ControlConnection.Phase.PROBING) < 0) {
            onBroken(connection, "unexpected frame " + frame.type() + " from " + connection.where);
        } else {
            onCommFrame(connection, frame);
        }
    }

    private void onHello(final ControlConnection connection, final ControlFrame frame) {
        String refusal = null;
        final boolean incompatible = !frame.text().equals(compatibility);
        if (frame.b() != instance) {
            refusal = "another process listens there now";
        } else if (incompatible) {
            refusal = "it uses " + compatibility + ", not " + frame.text();
        }
        if (refusal == null && frame.a() != instance) {
            final ControlConnection other = byInstance.get(frame.a());
            if (other != null && other.phase.compareTo(ControlConnection.Phase.PROBING) < 0) {
                if (instance < frame.a()) {
                    send(connection, ControlFrame.of(ControlFrame.COLLISION, 0, 0, ""));
                    return; // the other side closes it
                }
                rendezvous.reroute(other, connection);
                onBroken(other, "the peer's own connection is used");
            } else if (other != null && mayBeLateHello(other, frame.a())) {
                send(connection, ControlFrame.of(ControlFrame.COLLISION, 0, 0, ""));
                return; // the other side closes it, or has
            } else if (other != null) {
                onBroken(other, "the peer opened a new connection");
            }
        }
        try {
            if (refusal == null) {
                connection.remoteInstance = frame.a();
                connection.peer = engine.openPeer();
                engine.introduce(connection.peer, frame.name(), (int) (frame.c() >>> 32), (int) frame.c(), (int) (frame.d() >>> 32),
                    (int) frame.d());
                connection.phase = ControlConnection.Phase.PROBING;
                send(connection, hello(ControlFrame.HELLO_ACK, connection));
                if (frame.a() != instance) {
                    byInstance.put(frame.a(), connection);
                    rendezvous.adopt(connection);
                }
                return;
            }
        } catch (final NrtException ex) {
            refusal = ex.getMessage();
        }
        strangers.say("refused a control connection " + connection + ": " + refusal);
        send(connection, ControlFrame.of(ControlFrame.REFUSED, frame.b() == instance && incompatible ? 1 : 0, 0, refusal));
    }

    /**
     * Whether a peer's hello may be one that lost a collision: it was said before the peer took our connection, which won, and comes after
     * the peer's answer on that, since they went different ways.
     */
    private boolean mayBeLateHello(final ControlConnection winner, final long remoteInstance) {
        return winner.outgoing && instance < remoteInstance && !winner.bye && System.nanoTime() - winner.deadlineNs < 0;
    }

    private void onHelloAnswer(final ControlConnection connection, final ControlFrame frame) {
        switch (frame.type()) {
            case ControlFrame.HELLO_ACK -> {
                if (frame.a() != connection.remoteInstance || !frame.text().equals(compatibility)) {
                    onBroken(connection, "the hello of " + connection.where + " does not fit its handle");
                    return;
                }
                try {
                    engine.introduce(connection.peer, frame.name(), (int) (frame.c() >>> 32), (int) frame.c(), (int) (frame.d() >>> 32),
                        (int) frame.d());
                    connection.phase = ControlConnection.Phase.PROBING;
                } catch (final NrtException ex) {
                    onBroken(connection, ex.getMessage());
                }
            }
            case ControlFrame.COLLISION -> {
                rendezvous.reroute(connection, null);
                onBroken(connection, "the peer's own connection is used");
                final ControlConnection winner = byInstance.get(connection.remoteInstance);
                if (winner != null) {
                    rendezvous.adopt(winner);
                }
            }
            case ControlFrame.REFUSED -> {
                connection.incompatible = frame.a() != 0;
                onBroken(connection, frame.text());
            }
            default -> onBroken(connection, frame.type() == ControlFrame.BYE ? frame.text()
                : "unexpected answer " + frame.type() + " from " + connection.where);
        }
    }

    private void onCommFrame(final ControlConnection connection, final ControlFrame frame) {
        final Comm comm = engine.comms().find((int) frame.a(), connection.peer);
        switch (frame.type()) {
            case ControlFrame.COMM_OPEN -> rendezvous.onOpen(connection, frame.a(), (int) frame.b());
            case ControlFrame.COMM_ACCEPTED -> rendezvous.onAccepted(connection, comm, (int) frame.b());
            case ControlFrame.COMM_REFUSED -> rendezvous.onRefused(comm, frame.text());
            case ControlFrame.COMM_ABANDONED -> rendezvous.onAbandoned(connection, (int) frame.a());
            case ControlFrame.BYE -> {
                if (frame.text().isEmpty()) {
                    connection.bye = true;
                    connection.byeMessages = (int) frame.a();
                    connection.byeDirect = (int) frame.b();
                    connection.deadlineNs = System.nanoTime() + GOODBYE_NS;
                } else {
                    onBroken(connection, "the peer at " + connection.where + " gave the connection up: " + frame.text());
                }
            }
            case ControlFrame.BYE_ACK -> {
                connection.ended = true;
                onBroken(connection, "the transport was closed");
            }
            case ControlFrame.DATA_FROM -> onSource(connection, frame);
            default -> onClosing(connection, comm, frame);
        }
    }

    private void onClosing(final ControlConnection connection, final Comm comm, final ControlFrame frame) {
        switch (frame.type()) {
            case ControlFrame.SEND_CLOSED -> {
                if (comm instanceof RecvComm recv) {
                    engine.closing().onSenderClosed(recv, (int) frame.b());
                }
            }
            case ControlFrame.RECV_CLOSED -> {
                final int transmitted = comm instanceof SendComm send ? send.transmit : 0;
                send(connection, new ControlFrame(ControlFrame.RECV_CLOSED_ACK, frame.b(), transmitted, 0, 0,
                    CommClosing.sentDirect(comm), ""));
                if (comm != null) {
                    comm.remoteClosed = true;
                    engine.closing().onReceiverClosed(comm, (int) frame.c(), frame.name());
                    engine.closing().forgetEarly(comm);
                    if (comm.closeSaid) {
                        engine.closing().remove(comm);
                    }
                }
            }
            case ControlFrame.RECV_CLOSED_ACK -> {
                if (comm instanceof RecvComm recv && comm.closed) {
                    engine.closing().swallow(recv, (int) frame.b(), frame.name());
                    engine.closing().remove(comm);
                }
            }
            case ControlFrame.ABORT_RECV -> {
                final int slot = comm instanceof RecvComm ? comm.slotOf[(int) frame.b() & Comm.RING_MASK] : Comm.NONE;
                if (slot != Comm.NONE && comm.number[slot] == (int) frame.b()) {
                    engine.outcomes().fail(comm, slot, NrtStatus.FAILURE, "the sender failed: " + frame.text());
                }
            }
            default -> onBroken(connection, "unknown frame " + frame.type() + " from " + connection.where);
        }
    }

    /** Everything ends; under the lock, when the thread has ended. */
    void dropAll(final String cause) {
        brokenCause = cause;
        if (closed) {
            engine.links().end();
        }
        for (final ControlConnection connection : connections) {
            onBroken(connection, cause);
        }
        rendezvous.clear();
    }
}
