package io.nrt4j.bench;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;

/** Plain sockets: blocking NIO, direct buffers, no delay. A window is what the socket buffers make of it. */
public final class NioYardstick extends Yardstick {
    private static final int TOKEN_BYTES = 8;

    private final SocketChannel channel;
    private final ByteBuffer buffer = ByteBuffer.allocateDirect(1 << 20);

    private NioYardstick(final SocketChannel channel) throws IOException {
        this.channel = channel;
        channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
    }

    private void write(final int sizeBytes) throws IOException {
        buffer.clear().limit(sizeBytes);
        while (buffer.hasRemaining()) {
            channel.write(buffer);
        }
    }

    private void read(final int sizeBytes) throws IOException {
        buffer.clear().limit(sizeBytes);
        while (buffer.hasRemaining()) {
            if (channel.read(buffer) < 0) {
                throw new IOException("the other end is gone");
            }
        }
    }

    @Override
    void roundTrip(final int sizeBytes) throws IOException {
        write(sizeBytes);
        read(sizeBytes);
    }

    @Override
    void answer(final int sizeBytes) throws IOException {
        read(sizeBytes);
        write(sizeBytes);
    }

    @Override
    void stream(final int sizeBytes, final int window, final int warmUp, final int total, final Runnable warm) throws IOException {
        for (int i = 0; i < total; i++) {
            if (i == warmUp) {
                warm.run();
            }
            write(sizeBytes);
        }
        read(TOKEN_BYTES);
    }

    @Override
    void drain(final int sizeBytes, final int window, final int total) throws IOException {
        for (int i = 0; i < total; i++) {
            read(sizeBytes);
        }
        write(TOKEN_BYTES);
    }

    /**
     * Runs an end.
     *
     * @param args {@code server} or {@code client}, and a port.
     * @throws Exception when it fails.
     */
    public static void main(final String[] args) throws Exception {
        final boolean client = "client".equals(args[0]);
        final int port = Integer.parseInt(args[1]);
        // The first connection tells that the other end is there; the second, which it announces, is measured.
        try (var first = connect(client, port); ServerSocketChannel server = ServerSocketChannel.open()) {
            if (!client) {
                server.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
            }
            final byte[] mine = client ? new byte[4]
                : ByteBuffer.allocate(4).putInt(((InetSocketAddress) server.getLocalAddress()).getPort()).array();
            final int theirs = ByteBuffer.wrap(swap(first, mine)).getInt();
            try (SocketChannel channel = client
                ? SocketChannel.open(new InetSocketAddress(InetAddress.getLoopbackAddress(), theirs)) : server.accept()) {
                new NioYardstick(channel).run(client);
            }
        }
    }
}
