package io.nrt4j.net.loopback;

import java.util.ArrayDeque;
import java.util.Map;
import java.util.Queue;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;

/**
 * A listen communicator, with the connects that it has not accepted yet, in their order.
 *
 * <p>Threads: everything, the state of its connects included, is guarded by the listener's monitor. Under it, the monitors of
 * transports and tables are taken, never the other way round.
 */
final class LoopbackListener extends HandleTable.Entry {
    /** All open listeners of this JVM: that is how transports find one another. */
    private static final Map<UUID, LoopbackListener> OPEN = new ConcurrentHashMap<>();

    /** A connect: waiting, then either joined or not. */
    static final class Connect {
        private final LoopbackListener listener;
        private final LoopbackTransport from;
        private final int nic;
        private boolean stale;
        private LoopbackEnd joined;

        private Connect(final LoopbackListener listener, final LoopbackTransport from, final int nic) {
            this.listener = listener;
            this.from = from;
            this.nic = nic;
        }

        /** The send end, once the listener has accepted it; null before. */
        LoopbackEnd joined() {
            synchronized (listener) {
                return joined;
            }
        }

        /** Whether the listener was closed before it accepted it. */
        boolean isStale() {
            synchronized (listener) {
                // The two questions are asked one after the other: what was joined in between is not stale.
                return stale && joined == null;
            }
        }

        /** Takes it out of the listener's queue; the send end if it was accepted before. */
        LoopbackEnd withdraw() {
            synchronized (listener) {
                listener.waiting.remove(this);
                return joined;
            }
        }
    }

    private final UUID id = UUID.randomUUID();
    private final LoopbackTransport transport;
    private final int nic;
    private final Queue<Connect> waiting = new ArrayDeque<>();
    private boolean closed;

    LoopbackListener(final LoopbackTransport transport, final int nic) {
        this.transport = transport;
        this.nic = nic;
    }

    /** The open listener with this id, or null. */
    static LoopbackListener find(final UUID id) {
        return OPEN.get(id);
    }

    /** Makes it known to the JVM. */
    UUID open() {
        OPEN.put(id, this);
        return id;
    }

    /** Queues a connect; null if the listener is closed. */
    synchronized Connect enqueue(final LoopbackTransport from, final int fromNic) {
        if (closed) {
            return null;
        }
        final Connect connect = new Connect(this, from, fromNic);
        waiting.add(connect);
        return connect;
    }

    /** Joins the connect that has waited longest; the receive end, or null if none waits. */
    synchronized LoopbackEnd accept() {
        for (Connect connect = waiting.poll(); connect != null; connect = waiting.poll()) {
            final LoopbackChannel channel = new LoopbackChannel();
            final LoopbackEnd sender = new LoopbackEnd(connect.from, channel, true, connect.nic);
            final LoopbackEnd receiver = new LoopbackEnd(transport, channel, false, nic);
            channel.join(sender, receiver);
            connect.stale = true; // unless it is joined below
            if (!connect.from.adopt(sender)) {
                continue; // its transport was closed meanwhile
            }
            boolean adopted = false;
            try {
                adopted = transport.adopt(receiver);
            } finally {
                if (!adopted) {
                    connect.from.drop(sender);
                }
            }
            if (!adopted) {
                return null;
            }
            connect.joined = sender;
            return receiver;
        }
        return null;
    }

    /** Fails what it has not accepted. Idempotent. */
    synchronized void close() {
        closed = true;
        OPEN.remove(id);
        for (final Connect connect : waiting) {
            connect.stale = true;
        }
        waiting.clear();
    }
}
