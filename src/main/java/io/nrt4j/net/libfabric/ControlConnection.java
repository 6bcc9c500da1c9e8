package io.nrt4j.net.libfabric;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.SocketChannel;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import jdk.net.ExtendedSocketOptions;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A control connection to one peer process: hello and connecting first, liveness afterwards. While a process is stopped, its
 * kernel goes on acknowledging; when its host is lost, that ends, and so does the connection: after {@link #LOST_HOST_S} by keep-alives,
 * which the kernel sends only while nothing else is unacknowledged, and at most {@link #LOST_HOST_S} plus two looks after the last
 * acknowledgement where a frame is. ({@code TCP_USER_TIMEOUT} would also end the connection to a process that is stopped for as long with a
 * full receive buffer.)
 *
 * <p>Threads: {@code in} and {@code key} belong to the control thread, which reads and writes the channel; {@code out} is filled by any
 * thread; all else is read and written under the engine's lock. Whoever holds that lock may end the connection: then the control
 * thread finds the channel closed, and the key cancelled, at any moment.
 */
final class ControlConnection {
    /** How far it has come. */
    enum Phase { CONNECTING, HELLO, PROBING, UP, DEAD }

    private static final Logger LOG = LoggerFactory.getLogger(ControlConnection.class);
    /** How long a host may be silent; another value is for tests. */
    static final int LOST_HOST_S = Integer.getInteger("nrt4j.libfabric.lostHostSeconds", 15);

    private static final int KEEP_ALIVE_IDLE_S = Math.max(1, LOST_HOST_S / 3);
    private static final int KEEP_ALIVE_INTERVAL_S = Math.max(1, LOST_HOST_S * 2 / 15);
    private static final int KEEP_ALIVE_COUNT = Math.max(1, (LOST_HOST_S - KEEP_ALIVE_IDLE_S) / KEEP_ALIVE_INTERVAL_S);
    private static final long LOOK_NS = TimeUnit.SECONDS.toNanos(1);

    final SocketChannel channel;
    final boolean outgoing;
    final String where;
    final ByteBuffer in = ByteBuffer.allocate(ControlFrame.BYTES);
    final Queue<ByteBuffer> out = new ConcurrentLinkedQueue<>();
    SelectionKey key;
    Phase phase;
    long deadlineNs;
    long remoteInstance;
    Peer peer;
    /** The peer, which opened it, has said hello, and had its answer: another hello would take a second peer's buffers. */
    boolean answered;
    /** The two processes cannot talk to each other, as over different providers, whatever the handle. */
    boolean incompatible;
    /** The peer closes; it had sent so many messages, which may still be on their way until the deadline. */
    boolean bye;
    int byeMessages;
    int byeDirect;
    /** The peer's process has ended, or has closed its transport. */
    boolean ended;
    /** Its descriptor, found when it came up; null where it was not. */
    private TcpSocket socket;
    private long lookAtNs;
    /** The last look found the host silent for too long. */
    private boolean silent;

    ControlConnection(final SocketChannel channel, final boolean outgoing, final String where, final long deadlineNs)
        throws IOException {
        this.channel = channel;
        this.outgoing = outgoing;
        this.where = where;
        this.deadlineNs = deadlineNs;
        phase = outgoing ? Phase.CONNECTING : Phase.HELLO;
        channel.configureBlocking(false);
        channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
        channel.setOption(StandardSocketOptions.SO_KEEPALIVE, true);
        if (channel.supportedOptions().contains(ExtendedSocketOptions.TCP_KEEPIDLE)) {
            channel.setOption(ExtendedSocketOptions.TCP_KEEPIDLE, KEEP_ALIVE_IDLE_S);
            channel.setOption(ExtendedSocketOptions.TCP_KEEPINTERVAL, KEEP_ALIVE_INTERVAL_S);
            channel.setOption(ExtendedSocketOptions.TCP_KEEPCOUNT, KEEP_ALIVE_COUNT);
        }
    }

    boolean alive() {
        return phase != Phase.DEAD;
    }

    /** It is up: from now on its host must go on acknowledging. */
    void watch(final List<TcpSocket> sockets) {
        try {
            socket = TcpSocket.between(sockets, (InetSocketAddress) channel.getLocalAddress(),
                (InetSocketAddress) channel.getRemoteAddress());
        } catch (final IOException ex) {
            LOG.debug("{}: it is closed already", this, ex);
        }
        lookAtNs = System.nanoTime();
    }

    /**
     * Whether the host is lost, looked at now and then. Two looks must agree: a probe of a full receive buffer may come a minute after the
     * one before, and be on its way at this moment.
     */
    boolean hostIsLost(final long now) {
        if (socket == null || now - lookAtNs < 0) {
            return false;
        }
        lookAtNs = now + LOOK_NS;
        final boolean before = silent;
        silent = socket.unacknowledgedMs() >= TimeUnit.SECONDS.toMillis(LOST_HOST_S);
        return silent && before;
    }

    /** Writes what waits, as far as the socket takes it; true if nothing is left. */
    boolean write() throws IOException {
        ByteBuffer frame = out.peek();
        while (frame != null) {
            channel.write(frame);
            if (frame.hasRemaining()) {
                return false;
            }
            out.poll();
            frame = out.peek();
        }
        return true;
    }

    /** Tries to write a last frame before the connection is closed. */
    void sayLast(final ControlFrame frame) {
        if (alive() && channel.isConnected() && out.isEmpty()) {
            try {
                channel.write(frame.encode());
            } catch (final IOException ex) {
                LOG.trace("{}: a last frame could not be written; it is being closed anyway", this, ex);
            }
        }
    }

    /** Whether the other end has closed it. What else has arrived is lost: the connection is over. */
    boolean isAtItsEnd() {
        final ByteBuffer rest = ByteBuffer.allocate(ControlFrame.BYTES);
        try {
            int count = channel.isConnected() ? channel.read(rest) : 0;
            while (count > 0) {
                rest.clear();
                count = channel.read(rest);
            }
            return count < 0;
        } catch (final IOException ex) {
            LOG.trace("{}: it broke, whatever became of the other process", this, ex);
            return false;
        }
    }

    void closeQuietly() {
        try {
            channel.close();
        } catch (final IOException ex) {
            LOG.debug("{}: closing it failed", this, ex);
        }
    }

    @Override
    public String toString() {
        return (outgoing ? "to " : "from ") + where + " (" + phase + ")";
    }
}
