package io.nrt4j.net.libfabric;

import io.nrt4j.concurrent.NanoClock;
import io.nrt4j.concurrent.StrangerLog;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.channels.CancelledKeyException;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The daemon thread that owns the control sockets and sleeps in select, so that the data path makes no socket call. While a
 * connection is being made, it also polls the endpoint, and at long intervals otherwise, so that a process that neither posts
 * nor tests still answers.
 *
 * <p>Threads: {@link #wakeUp}, {@link #register}, {@link #close} and {@link #address} are for any thread.
 */
final class ControlThread {
    private static final Logger LOG = LoggerFactory.getLogger(ControlThread.class);
    private static final long ACCEPT_PAUSE_NS = TimeUnit.MILLISECONDS.toNanos(100);
    private static final long CLOSE_MS = 1000;

    private final ControlPlane plane;
    private final MessageEngine engine;
    private final Selector selector;
    private final ServerSocketChannel server;
    private final SelectionKey serverKey;
    private final InetSocketAddress address;
    private final Queue<ControlConnection> registering = new ConcurrentLinkedQueue<>();
    private final Thread thread;
    /** On the control thread. */
    private final StrangerLog troubles = new StrangerLog(NanoClock.SYSTEM, LOG::warn);
    private volatile boolean running = true;
    private boolean acceptPaused;
    private long acceptAgainNs;

    ControlThread(final ControlPlane plane, final MessageEngine engine, final InetAddress at) throws IOException {
        this.plane = plane;
        this.engine = engine;
        selector = Selector.open();
        boolean open = false;
        ServerSocketChannel channel = null;
        try {
            channel = ServerSocketChannel.open();
            channel.bind(new InetSocketAddress(at, 0), 1024);
            channel.configureBlocking(false);
            serverKey = channel.register(selector, SelectionKey.OP_ACCEPT);
            address = new InetSocketAddress(at, ((InetSocketAddress) channel.getLocalAddress()).getPort());
            open = true;
        } finally {
            if (!open) {
                if (channel != null) {
                    channel.close();
                }
                selector.close();
            }
        }
        server = channel;
        thread = new Thread(this::run, "nrt4j-fabric-" + address.getPort());
        thread.setDaemon(true);
    }

    void start() {
        thread.start();
    }

    /** Where control connections are accepted. */
    InetSocketAddress address() {
        return address;
    }

    void wakeUp() {
        if (Thread.currentThread() != thread) {
            selector.wakeup();
        }
    }

    /** Hands an outgoing connection over. */
    void register(final ControlConnection connection) {
        registering.add(connection);
        wakeUp();
    }

    /** Takes an accepted connection; on the control thread. */
    void registerNow(final ControlConnection connection) throws IOException {
        connection.key = connection.channel.register(selector, SelectionKey.OP_READ, connection);
    }

    private void run() {
        String cause = "its control thread failed";
        try {
            while (running) {
                selector.select(timeoutMs());
                step();
            }
            goodbye();
            cause = "the transport was closed";
        } catch (final IOException | RuntimeException ex) {
            cause += ": " + ex;
            LOG.error("the control thread of the libfabric transport ended", ex);
        } finally {
            engine.lock.lock();
            try {
                plane.dropAll(cause);
            } finally {
                engine.lock.unlock();
            }
            closeAll();
        }
    }

    private long timeoutMs() {
        engine.lock.lock();
        try {
            final long sleepMs = plane.sleepMs();
            return acceptPaused && sleepMs == 0 ? ControlPlane.LONG_SLEEP_MS : sleepMs;
        } finally {
            engine.lock.unlock();
        }
    }

    private void step() {
        for (ControlConnection connection = registering.poll(); connection != null; connection = registering.poll()) {
            registerOutgoing(connection);
        }
        for (final SelectionKey key : selector.selectedKeys()) {
            if (key == serverKey) {
                accept();
            } else {
                serve((ControlConnection) key.attachment(), key);
            }
        }
        selector.selectedKeys().clear();
        if (acceptPaused && System.nanoTime() - acceptAgainNs >= 0) {
            acceptPaused = false;
            serverKey.interestOps(SelectionKey.OP_ACCEPT);
        }
        engine.tick();
        engine.lock.lock();
        try {
            plane.onTick();
        } finally {
            engine.lock.unlock();
        }
        for (final ControlConnection connection : plane.connections()) {
            if (!connection.out.isEmpty() && connection.key != null && connection.channel.isConnected()) {
                write(connection);
            }
        }
    }

    private void registerOutgoing(final ControlConnection connection) {
        try {
            connection.key = connection.channel.register(selector, SelectionKey.OP_CONNECT, connection);
        } catch (final IOException ex) {
            broken(connection, "connect: " + ex.getMessage());
        }
    }

    private void accept() {
        try {
            final SocketChannel channel = server.accept();
            if (channel != null) {
                engine.lock.lock();
                try {
                    plane.onAccepted(channel);
                } catch (final IOException ex) {
                    channel.close();
                } finally {
                    engine.lock.unlock();
                }
            }
        } catch (final IOException ex) {
            // Such as "Too many open files": the connection stays in the kernel's queue until there is room again.
            troubles.say("cannot accept a control connection at " + address + ": " + ex.getMessage());
            acceptPaused = true;
            acceptAgainNs = System.nanoTime() + ACCEPT_PAUSE_NS;
            serverKey.interestOps(0);
        }
    }

    private void serve(final ControlConnection connection, final SelectionKey key) {
        try {
            if (!key.isValid()) {
                return;
            }
            if (key.isConnectable() && connection.channel.finishConnect()) {
                engine.lock.lock();
                try {
                    connection.phase = ControlConnection.Phase.HELLO;
                } finally {
                    engine.lock.unlock();
                }
                key.interestOps(SelectionKey.OP_READ);
            }
            if (key.isValid() && key.isReadable()) {
                read(connection);
            }
            if (key.isValid() && key.isWritable()) {
                write(connection);
            }
        } catch (final IOException | CancelledKeyException ex) {
            broken(connection, ex);
        }
    }

    private void read(final ControlConnection connection) throws IOException {
        while (connection.channel.isOpen()) {
            final int count = connection.channel.read(connection.in);
            if (count < 0) {
                ended(connection);
                return;
            }
            if (connection.in.position() >= Integer.BYTES && connection.in.getInt(0) != ControlFrame.MAGIC) {
                broken(connection, "a foreign process answers at " + connection.where);
                return;
            }
            if (connection.in.hasRemaining()) {
                return;
            }
            final ControlFrame frame = ControlFrame.decode(connection.in);
            connection.in.clear();
            engine.lock.lock();
            try {
                if (frame == null) {
                    plane.onBroken(connection, "a process of another version answers at " + connection.where);
                } else if (connection.alive()) {
                    plane.onFrame(connection, frame);
                }
            } finally {
                engine.lock.unlock();
            }
        }
    }

    private void write(final ControlConnection connection) {
        try {
            final boolean all = connection.write();
            if (connection.key.isValid()) {
                connection.key.interestOps(all ? SelectionKey.OP_READ : SelectionKey.OP_READ | SelectionKey.OP_WRITE);
            }
        } catch (final IOException | CancelledKeyException ex) {
            readWhatCame(connection);
            broken(connection, ex);
        }
    }

    /** A peer that has closed its end may have said why: that tells more than the write that failed. */
    private void readWhatCame(final ControlConnection connection) {
        try {
            read(connection);
        } catch (final IOException ex) {
            LOG.trace("{}: nothing more came", connection, ex);
        }
    }

    private void ended(final ControlConnection connection) {
        engine.lock.lock();
        try {
            connection.ended = true;
            plane.onBroken(connection, "the process at " + connection.where + " ended, or closed the control connection");
        } finally {
            engine.lock.unlock();
        }
    }

    /** Also when the data path found the peer unusable, and closed the channel, while it was being served here. */
    private void broken(final ControlConnection connection, final Exception cause) {
        broken(connection, "the control connection with " + connection.where + " broke: " + cause.getMessage());
    }

    private void broken(final ControlConnection connection, final String cause) {
        engine.lock.lock();
        try {
            plane.onBroken(connection, cause);
        } finally {
            engine.lock.unlock();
        }
    }

    /** Writes the last frames, as far as the sockets take them at once. */
    private void goodbye() throws IOException {
        for (final ControlConnection connection : plane.connections()) {
            if (connection.channel.isConnected()) {
                write(connection);
            }
        }
    }

    private void closeAll() {
        try {
            server.close();
            selector.close();
        } catch (final IOException ex) {
            throw new UncheckedIOException(ex);
        }
    }

    /** Ends the thread and waits for it, at most a second. */
    void close() {
        running = false;
        selector.wakeup();
        if (Thread.currentThread() == thread || thread.getState() == Thread.State.NEW) {
            closeAll();
            return;
        }
        try {
            thread.join(CLOSE_MS);
        } catch (final InterruptedException ex) {
            Thread.currentThread().interrupt();
        }
    }
}
