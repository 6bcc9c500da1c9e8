package io.nrt4j.net.libfabric;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.net.NetTransport;
import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.TimeUnit;

/**
 * Listening, connecting and accepting: how two communicators find each other over the control connection of their processes.
 *
 * <p>Threads: all state under the engine's lock. The methods that the transport calls take it; the {@code on...} methods are called
 * by the control plane under it.
 */
final class Rendezvous {
    /** More connects than any number of LNCs has with one listener: a peer that opens without end is no reason to run out of memory. */
    private static final int MAX_BACKLOG = 1024;

    /** A listening communicator. */
    private static final class Listener {
        private final Queue<Waiting> backlog = new ArrayDeque<>();
    }

    /** A connect that waits to be accepted. */
    private record Waiting(ControlConnection connection, int senderComm) {
    }

    /** A connect under way in this process. */
    private static final class Connect {
        private final ListenHandle handle;
        private final long deadlineNs;
        private ControlConnection connection;
        private SendComm comm;
        private boolean accepted;
        private String failure;
        /** What failed would fail with every other handle of that process, too: it is not the handle that is wrong. */
        private boolean hopeless;

        private Connect(final ListenHandle handle, final long deadlineNs) {
            this.handle = handle;
            this.deadlineNs = deadlineNs;
        }
    }

    private final MessageEngine engine;
    private final ControlPlane plane;
    private final Map<Long, Listener> listeners = new HashMap<>();
    private final Map<Long, Connect> connects = new HashMap<>();
    private long counter;

    Rendezvous(final MessageEngine engine, final ControlPlane plane) {
        this.engine = engine;
        this.plane = plane;
    }

    // ---- What the transport asks; takes the lock.

    long listen(final byte[] handleOut) {
        engine.lock.lock();
        try {
            plane.checkOpen();
            final long id = ++counter;
            listeners.put(id, new Listener());
            new ListenHandle(plane.instance(), id, plane.address()).write(handleOut);
            return id;
        } finally {
            engine.lock.unlock();
        }
    }

    void closeListen(final long id) {
        engine.lock.lock();
        try {
            final Listener listener = listeners.remove(id);
            if (listener != null) {
                for (final Waiting waiting : listener.backlog) {
                    plane.send(waiting.connection(),
                        ControlFrame.of(ControlFrame.COMM_REFUSED, waiting.senderComm(), 0, "the listener was closed"));
                }
            }
        } finally {
            engine.lock.unlock();
        }
    }

    long accept(final long id) {
        engine.lock.lock();
        try {
            final Listener listener = listeners.get(id);
            if (listener == null) {
                throw new NrtException(NrtStatus.INVALID_HANDLE, "accept: " + id + " is no open listen communicator");
            }
            final Waiting waiting = listener.backlog.peek();
            if (waiting == null) {
                return NetTransport.NOT_YET;
            }
            final Comm comm = engine.comms().add(false, waiting.connection().peer);
            listener.backlog.remove(); // where there was no room it waits on, and is told when the listener is closed
            comm.remoteId = waiting.senderComm();
            plane.send(waiting.connection(), ControlFrame.of(ControlFrame.COMM_ACCEPTED, waiting.senderComm(), comm.id, ""));
            return comm.handle;
        } finally {
            engine.lock.unlock();
        }
    }

    long connect(final byte[] handle) {
        engine.lock.lock();
        try {
            plane.checkOpen();
            final long underWay = ListenHandle.connectUnderWay(handle);
            final Connect connect = connects.get(underWay);
            if (connect == null) {
                return begin(handle);
            }
            if (connect.failure == null && connect.connection == null && System.nanoTime() - connect.deadlineNs >= 0) {
                connect.failure = "no connection came up within " + ControlPlane.HANDSHAKE_S + " s";
            }
            if (connect.failure == null && !connect.accepted) {
                return NetTransport.NOT_YET;
            }
            connects.remove(underWay);
            ListenHandle.setConnectUnderWay(handle, 0);
            if (connect.failure != null) {
                forget(connect);
                throw new NrtException(connect.hopeless ? NrtStatus.FAILURE : NrtStatus.CLOSED, "connect to "
                    + connect.handle.control() + (connect.hopeless ? ": " : ": the handle is stale: ") + connect.failure);
            }
            return connect.comm.handle;
        } finally {
            engine.lock.unlock();
        }
    }

    private long begin(final byte[] handle) {
        final Connect connect = new Connect(ListenHandle.read(handle),
            System.nanoTime() + TimeUnit.SECONDS.toNanos(ControlPlane.HANDSHAKE_S));
        connect.connection = awaitsPeersOwn(connect.handle) ? null : plane.connectionTo(connect.handle);
        final long number = ++counter;
        connects.put(number, connect);
        ListenHandle.setConnectUnderWay(handle, number);
        if (connect.connection != null && connect.connection.phase == ControlConnection.Phase.UP) {
            openComm(connect);
        }
        return NetTransport.NOT_YET;
    }

    /**
     * Whether the peer's own connection has won a collision and is yet to come: another one of ours could reach the peer when it has
     * come, and end it together with all communicators that use it already.
     */
    private boolean awaitsPeersOwn(final ListenHandle handle) {
        final long now = System.nanoTime();
        for (final Connect connect : connects.values()) {
            if (connect.connection == null && connect.failure == null && connect.handle.instance() == handle.instance()
                && now - connect.deadlineNs < 0) {
                return true;
            }
        }
        return false;
    }

    void abandon(final byte[] handle) {
        engine.lock.lock();
        try {
            final Connect connect = connects.remove(ListenHandle.connectUnderWay(handle));
            if (connect != null) {
                ListenHandle.setConnectUnderWay(handle, 0);
                if (connect.accepted && connect.failure == null) {
                    connect.comm.closed = true;
                    plane.announceClose(connect.comm);
                } else {
                    if (connect.comm != null && connect.failure == null) {
                        plane.send(connect.connection, ControlFrame.of(ControlFrame.COMM_ABANDONED, connect.comm.id, 0, ""));
                    }
                    forget(connect);
                }
            }
        } finally {
            engine.lock.unlock();
        }
    }

    private void forget(final Connect connect) {
        if (connect.comm != null) {
            engine.closing().remove(connect.comm);
        }
    }

    private void openComm(final Connect connect) {
        connect.comm = (SendComm) engine.comms().add(true, connect.connection.peer);
        plane.send(connect.connection, ControlFrame.of(ControlFrame.COMM_OPEN, connect.handle.listener(), connect.comm.id, ""));
    }

    // ---- What the control plane tells; under the lock.

    /** The data path to a peer is open. */
    void onUp(final ControlConnection connection) {
        for (final Connect connect : connects.values()) {
            if (connect.connection == connection && connect.comm == null && connect.failure == null) {
                openComm(connect);
            }
        }
    }

    /** A connection is over. */
    void onBroken(final ControlConnection connection, final String cause) {
        for (final Connect connect : connects.values()) {
            if (connect.connection == connection && connect.failure == null) {
                connect.failure = cause;
                connect.hopeless = connection.incompatible || connection.peer != null && connection.peer.outOfFiles;
                connect.accepted = false;
            }
        }
        for (final Listener listener : listeners.values()) {
            listener.backlog.removeIf(waiting -> waiting.connection() == connection);
        }
    }

    /** Hands the connects of an own attempt over to the peer's connection, which wins, and may be yet to come (null). */
    void reroute(final ControlConnection loser, final ControlConnection winner) {
        for (final Connect connect : connects.values()) {
            if (connect.connection == loser) {
                connect.connection = winner;
            }
        }
    }

    /** Connects that lost a collision before the winner had come. */
    void adopt(final ControlConnection connection) {
        for (final Connect connect : connects.values()) {
            if (connect.connection == null && connect.handle.instance() == connection.remoteInstance) {
                connect.connection = connection;
            }
        }
    }

    /** A peer wants to send to a listener. */
    void onOpen(final ControlConnection connection, final long listenerId, final int senderComm) {
        final Listener listener = listeners.get(listenerId);
        if (listener == null) {
            plane.send(connection, ControlFrame.of(ControlFrame.COMM_REFUSED, senderComm, 0, "the listener is gone"));
        } else if (listener.backlog.size() >= MAX_BACKLOG) {
            plane.send(connection, ControlFrame.of(ControlFrame.COMM_REFUSED, senderComm, 0, MAX_BACKLOG + " others wait to be accepted"));
        } else {
            listener.backlog.add(new Waiting(connection, senderComm));
        }
    }

    /** A peer has accepted a connect. */
    void onAccepted(final ControlConnection connection, final Comm comm, final int receiver) {
        Connect mine = null;
        for (final Connect connect : connects.values()) {
            if (comm != null && connect.comm == comm) {
                mine = connect;
            }
        }
        if (mine == null) { // given up meanwhile
            plane.send(connection, ControlFrame.of(ControlFrame.SEND_CLOSED, receiver, 0, ""));
        } else {
            comm.remoteId = receiver;
            mine.accepted = true;
        }
    }

    /** A peer has refused a connect. */
    void onRefused(final Comm comm, final String cause) {
        for (final Connect connect : connects.values()) {
            if (comm != null && connect.comm == comm) {
                connect.failure = cause;
            }
        }
    }

    /** A peer has given a connect up. */
    void onAbandoned(final ControlConnection connection, final int senderComm) {
        for (final Listener listener : listeners.values()) {
            listener.backlog.removeIf(waiting -> waiting.connection() == connection && waiting.senderComm() == senderComm);
        }
    }

    /** Everything ends. */
    void clear() {
        listeners.clear();
        connects.clear();
    }
}
