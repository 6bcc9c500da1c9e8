package io.nrt4j.net.libfabric;

import java.io.IOException;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.SocketChannel;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import jdk.net.ExtendedSocketOptions;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A control connection to one peer process: hello and connecting first, liveness afterwards. While a process is stopped, its
 * kernel goes on answering keep-alives; when its host is lost, they end the connection after 15 s.
 *
 * <p>Threads: {@code in} and {@code key} belong to the control thread, which reads and writes the channel; {@code out} is filled by any
 * thread; all else is read and written under the engine's lock. Whoever holds that lock may end the connection: then the control
 * thread finds the channel closed, and the key cancelled, at any moment.
 */
final class ControlConnection {
    /** How far it has come. */
    enum Phase { CONNECTING, HELLO, PROBING, UP, DEAD }

    private static final Logger LOG = LoggerFactory.getLogger(ControlConnection.class);
    private static final int KEEP_ALIVE_IDLE_S = 5;
    private static final int KEEP_ALIVE_INTERVAL_S = 2;
    private static final int KEEP_ALIVE_COUNT = 5;
    /** The same bound for bytes that nobody acknowledges, as long as which no keep-alives are sent. */
    static final int UNACKNOWLEDGED_MS = 1000 * (KEEP_ALIVE_IDLE_S + KEEP_ALIVE_INTERVAL_S * KEEP_ALIVE_COUNT);

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

    /** The hellos are exchanged: the data path must be heard next. Under the engine's lock. */
    void probe() {
        phase = Phase.PROBING;
        try {
            UserTimeout.set(channel, UNACKNOWLEDGED_MS);
        } catch (final IOException ex) {
            LOG.debug("{}: a host that is lost while a frame is on its way to it may go unnoticed for minutes", this, ex);
        }
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
