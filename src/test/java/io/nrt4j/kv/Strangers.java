package io.nrt4j.kv;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;

/** What comes along at an open port without being a client of a key-value store. Sockets that it leaves open go to the caller's list. */
public enum Strangers {
    /** Ten thousand connections that are reset at once. */
    RESETS {
        @Override
        public void visit(final InetSocketAddress server, final List<Socket> kept) throws IOException {
            for (int i = 0; i < 10_000; i++) {
                try (Socket socket = KvTesting.connect(server)) {
                    socket.setSoLinger(true, 0);
                }
            }
        }
    },
    /** Twenty connections each that say 0, 1, 1155, 1157 and 2312 bytes of frames, and then nothing. */
    SOME_BYTES {
        @Override
        public void visit(final InetSocketAddress server, final List<Socket> kept) throws IOException {
            final byte[] frame = KvTesting.request(KvFrame.SET, "stranger", "v");
            final byte[] frames = KvTesting.concat(frame, frame);
            for (final int sent : new int[] {0, 1, 1155, 1157, 2312}) {
                for (int i = 0; i < 20; i++) {
                    open(server, kept).getOutputStream().write(frames, 0, sent);
                }
            }
        }
    },
    /** Ten thousand frames with a few wrong bytes. */
    MUTATED_FRAMES {
        @Override
        public void visit(final InetSocketAddress server, final List<Socket> kept) throws IOException {
            final Random random = new Random(20261129);
            for (int i = 0; i < 10_000; i++) {
                final byte[] frame =
                    KvTesting.request(1 + random.nextInt(4), "key" + random.nextInt(100), "x".repeat(random.nextInt(900)));
                for (int change = random.nextInt(4); change >= 0; change--) {
                    final int at = random.nextInt(3) == 0 ? random.nextInt(frame.length) : random.nextInt(160);
                    frame[at] = (byte) random.nextInt(256);
                }
                try (Socket socket = KvTesting.connect(server)) {
                    socket.setSoLinger(true, 0);
                    socket.getOutputStream().write(frame, 0, random.nextInt(8) == 0 ? random.nextInt(frame.length) : frame.length);
                } catch (final IOException ex) {
                    assertThat(ex).hasMessageMatching(CUT);
                }
            }
        }
    },
    /** Other protocols; each is cut. */
    OTHER_PROTOCOLS {
        @Override
        public void visit(final InetSocketAddress server, final List<Socket> kept) throws IOException {
            for (final String said : new String[] {"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "SSH-2.0-x\r\n", "\0".repeat(1156),
                "\u0016\u0003\u0001\u0002\u0000\u0001", "\u0004", "\u00ff"}) {
                final Socket socket = open(server, kept);
                socket.getOutputStream().write(KvTesting.bytes(said));
                KvTesting.awaitCut(socket);
            }
        }
    },
    /** Fifty megabytes of anything, and fifty of frames that are right until far into it; both are cut early. */
    STREAMS {
        @Override
        public void visit(final InetSocketAddress server, final List<Socket> kept) throws IOException {
            for (final byte[] chunk : new byte[][] {KvTesting.bytes("x".repeat(64 << 10)),
                KvTesting.concat(KvTesting.request(KvFrame.SET, "k", "v"), KvTesting.bytes("x"))}) {
                long sent = 0;
                try (Socket socket = KvTesting.connect(server)) {
                    while (sent < 50L << 20) {
                        socket.getOutputStream().write(chunk);
                        sent += chunk.length;
                    }
                } catch (final IOException ex) {
                    assertThat(ex).hasMessageMatching(CUT);
                }
                assertThat(sent).as("it was cut early").isLessThan(50L << 20);
            }
        }
    },
    /** Two hundred that say nothing, and two hundred that say one byte a second. */
    SILENT_AND_SLOW {
        @Override
        public void visit(final InetSocketAddress server, final List<Socket> kept) throws IOException {
            final byte[] frame = KvTesting.request(KvFrame.SET, "k", "v");
            final List<Socket> slow = new ArrayList<>();
            for (int i = 0; i < 200; i++) {
                open(server, kept);
                slow.add(open(server, kept));
            }
            for (int at = 0; at < 4; at++) {
                for (final Socket socket : slow) {
                    write(socket, frame[at]);
                }
                pause(TimeUnit.SECONDS.toMillis(1)); // the pace of the bytes
            }
        }
    },
    /** More silent connections than a server has room for. */
    CROWD {
        @Override
        public void visit(final InetSocketAddress server, final List<Socket> kept) throws IOException {
            for (int i = 0; i < KvOptions.DEFAULT.maxConnections() + 200; i++) {
                open(server, kept);
            }
        }
    };

    /** What a stranger sees that is cut while it speaks. */
    static final String CUT = "(?i).*(reset|broken pipe).*";

    /**
     * Comes along.
     *
     * @param server where.
     * @param kept   gets the sockets that are left open, for the caller to close.
     * @throws IOException when it cannot connect.
     */
    public abstract void visit(InetSocketAddress server, List<Socket> kept) throws IOException;

    private static Socket open(final InetSocketAddress server, final List<Socket> kept) throws IOException {
        final Socket socket = KvTesting.connect(server);
        kept.add(socket);
        return socket;
    }

    /** One byte, to a server that may have cut the connection. */
    static void write(final Socket socket, final byte one) {
        try {
            socket.getOutputStream().write(one);
        } catch (final IOException ex) {
            assertThat(ex).hasMessageMatching(CUT);
        }
    }

    private static void pause(final long millis) {
        try {
            Thread.sleep(millis);
        } catch (final InterruptedException ex) {
            Thread.currentThread().interrupt();
        }
    }
}
