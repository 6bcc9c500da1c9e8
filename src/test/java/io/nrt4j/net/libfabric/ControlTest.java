package io.nrt4j.net.libfabric;

import static io.nrt4j.net.libfabric.FabricPair.complete;
import static io.nrt4j.net.libfabric.FabricPair.failure;
import static io.nrt4j.net.libfabric.FabricPair.irecv;
import static io.nrt4j.net.libfabric.FabricPair.isend;
import static io.nrt4j.net.libfabric.FabricPair.register;
import static org.assertj.core.api.Assertions.assertThat;

import io.nrt4j.NrtTensor;
import io.nrt4j.net.NetTransport;
import java.io.DataInputStream;
import java.io.IOException;
import java.lang.reflect.Field;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Collection;
import java.util.Map;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Control connections: what strangers say, collisions, lost hosts, sends that the provider fails. */
@Timeout(60)
class ControlTest {
    private static final int MIB = 1 << 20;
    private static final int READ_MS = 20_000;

    @BeforeAll
    static void libfabricIsThere() {
        FabricPair.assumeLibfabric();
    }

    private static ControlConnection connectionOf(final LibfabricTransport transport) {
        return transport.engine().control().connections().get(0);
    }

    private static void under(final LibfabricTransport transport, final Runnable what) {
        transport.engine().lock.lock();
        try {
            what.run();
        } finally {
            transport.engine().publishBusy();
            transport.engine().lock.unlock();
        }
    }

    private static Object get(final Object owner, final String name) {
        try {
            final Field field = owner.getClass().getDeclaredField(name);
            field.setAccessible(true);
            return field.get(owner);
        } catch (final ReflectiveOperationException ex) {
            throw new AssertionError(ex);
        }
    }

    private static void setPath(final FabricEndpoint endpoint, final DataPath path) {
        try {
            final Field field = FabricEndpoint.class.getDeclaredField("path");
            field.setAccessible(true);
            field.set(endpoint, path);
        } catch (final ReflectiveOperationException ex) {
            throw new AssertionError(ex);
        }
    }

    /** A peer's frame about a receive that names a send is nothing that anybody must stumble over. */
    @Test
    void anAbortThatNamesASendIsIgnored() {
        try (FabricPair pair = new FabricPair("tcp;ofi_rxm"); NrtTensor source = NrtTensor.allocate(MIB);
            NrtTensor target = NrtTensor.allocate(MIB)) {
            final FabricPair.Link link = FabricPair.link(pair.left, pair.right);
            final FabricPair.Link next = FabricPair.link(pair.left, pair.right);
            final long from = register(pair.left, link.send(), source);
            final long to = register(pair.right, link.recv(), target);
            final long send = isend(link, source, 0, MIB, from);
            under(pair.right, () -> pair.right.engine().control().send(connectionOf(pair.right), ControlFrame.of(ControlFrame.ABORT_RECV,
                pair.right.engine().comms().findOpen(link.recv(), false).remoteId, 0, "forged")));
            next.close(); // goes the same way, so the frame has been read when its communicators are gone
            FabricPair.await("the frames", () -> !pair.left.engine().describe().contains(Long.toHexString(next.send() & 0xFFFF | 0x10000)));
            final long receive = irecv(link, target, 0, MIB, to);
            assertThat(complete(link, pair.right, receive)).isEqualTo(MIB);
            assertThat(complete(link, pair.left, send)).isEqualTo(MIB);
        }
    }

    private static void expectEnd(final DataInputStream in) throws IOException {
        final byte[] frame = new byte[ControlFrame.BYTES];
        try {
            while (true) {
                in.readFully(frame);
            }
        } catch (final SocketTimeoutException ex) {
            throw new AssertionError("the connection was not closed", ex);
        } catch (final IOException ex) {
            return; // as it should be
        }
    }

    /** Each hello is answered with a peer and its buffers: one for a connection. */
    @Test
    void aSecondHelloOnAConnectionEndsIt() throws IOException {
        try (LibfabricTransport transport = new LibfabricTransport(FabricPair.config("tcp;ofi_rxm"))) {
            final byte[] handle = new byte[NetTransport.HANDLE_BYTES];
            transport.listen(0, handle);
            final ListenHandle listen = ListenHandle.read(handle);
            try (Socket socket = new Socket(listen.control().getAddress(), listen.control().getPort())) {
                socket.setSoTimeout(READ_MS);
                final ByteBuffer hello = new ControlFrame(ControlFrame.HELLO, 4711, listen.instance(), 1, 32L << 32 | 8192,
                    new byte[] {1, 2, 3}, "tcp;ofi_rxm " + ByteOrder.nativeOrder()).encode();
                final ByteBuffer hellos = ByteBuffer.allocate(5 * ControlFrame.BYTES);
                for (int i = 0; i < 5; i++) {
                    hellos.put(hello.array());
                }
                socket.getOutputStream().write(hellos.array()); // at once: it may be closed after the second
                expectEnd(new DataInputStream(socket.getInputStream()));
            }
            assertThat(transport.engine().describe()).doesNotContain("peer");
        }
    }

    private static ControlFrame read(final Socket socket) throws IOException {
        final byte[] bytes = new byte[ControlFrame.BYTES];
        new DataInputStream(socket.getInputStream()).readFully(bytes);
        return ControlFrame.decode(ByteBuffer.wrap(bytes));
    }

    /** After a lost collision the peer's own connection comes: another one of ours would end it, with all that it carries. */
    @Test
    void whoeverLostACollisionWaitsForThePeersConnection() throws IOException {
        try (LibfabricTransport transport = new LibfabricTransport(FabricPair.config("tcp;ofi_rxm"));
            ServerSocket peer = new ServerSocket(0, 5, transport.engine().control().address().getAddress())) {
            peer.setSoTimeout(READ_MS);
            final byte[] first = new byte[NetTransport.HANDLE_BYTES];
            final byte[] second = new byte[NetTransport.HANDLE_BYTES];
            final InetAddress address = peer.getInetAddress();
            new ListenHandle(1, 1, new InetSocketAddress(address, peer.getLocalPort())).write(first);
            new ListenHandle(1, 2, new InetSocketAddress(address, peer.getLocalPort())).write(second);
            assertThat(transport.connect(0, first)).isEqualTo(NetTransport.NOT_YET);
            try (Socket socket = peer.accept()) {
                socket.setSoTimeout(READ_MS);
                assertThat(read(socket).type()).isEqualTo(ControlFrame.HELLO);
                socket.getOutputStream().write(ControlFrame.of(ControlFrame.COLLISION, 0, 0, "").encode().array());
                expectEnd(new DataInputStream(socket.getInputStream()));
            }
            assertThat(transport.connect(0, second)).isEqualTo(NetTransport.NOT_YET);
            under(transport, () -> assertThat(transport.engine().control().connections()).as("waits for the peer's").isEmpty());
            transport.abandonConnect(0, first);
            transport.abandonConnect(0, second);
        }
    }

    /** The peer's hello went another way than its answer on our connection, which won, and comes after it. */
    @Test
    void aHelloThatLostItsCollisionAndComesLateEndsNothing() throws IOException {
        try (LibfabricTransport transport = new LibfabricTransport(FabricPair.config("tcp;ofi_rxm"));
            LibfabricTransport other = new LibfabricTransport(FabricPair.config("tcp;ofi_rxm"));
            ServerSocket peer = new ServerSocket(0, 5, transport.engine().control().address().getAddress())) {
            peer.setSoTimeout(READ_MS);
            final long instance = Long.MAX_VALUE; // the higher one, whose connection loses
            final byte[] handle = new byte[NetTransport.HANDLE_BYTES];
            new ListenHandle(instance, 1, new InetSocketAddress(peer.getInetAddress(), peer.getLocalPort())).write(handle);
            final byte[] own = new byte[NetTransport.HANDLE_BYTES];
            transport.listen(0, own);
            assertThat(transport.connect(0, handle)).isEqualTo(NetTransport.NOT_YET);
            try (Socket winner = peer.accept();
                Socket loser = new Socket(peer.getInetAddress(), ListenHandle.read(own).control().getPort())) {
                winner.setSoTimeout(READ_MS);
                loser.setSoTimeout(READ_MS);
                final ControlFrame hello = read(winner);
                winner.getOutputStream().write(new ControlFrame(ControlFrame.HELLO_ACK, instance, hello.a(), 0, 32L << 32 | 8192,
                    other.engine().endpoint().name(), hello.text()).encode().array());
                FabricPair.await("the answer", () -> connectionOf(transport).phase == ControlConnection.Phase.PROBING);
                loser.getOutputStream().write(new ControlFrame(ControlFrame.HELLO, instance, hello.a(), 0, 32L << 32 | 8192,
                    other.engine().endpoint().name(), hello.text()).encode().array());
                assertThat(read(loser).type()).isEqualTo(ControlFrame.COLLISION);
                under(transport, () -> assertThat(connectionOf(transport).alive()).isTrue());
            }
            transport.abandonConnect(0, handle);
        }
    }

    /** The receive of a long message that the sender's provider fails while its communicator closes does not wait for ever. */
    @Test
    void aSendThatFailsWhileItsCommunicatorClosesFailsItsReceive() throws Exception {
        try (FabricPair pair = new FabricPair("tcp;ofi_rxm"); NrtTensor source = NrtTensor.allocate(MIB);
            NrtTensor target = NrtTensor.allocate(MIB)) {
            final FabricPair.Link link = FabricPair.link(pair.left, pair.right);
            final long from = register(pair.left, link.send(), source);
            final long receive = irecv(link, target, 0, MIB, register(pair.right, link.recv(), target));
            final FabricEndpoint at = pair.left.engine().endpoint();
            final DataPath real = at.path();
            final long[] context = new long[1];
            under(pair.left, () -> setPath(at, new PathStub(real) {
                @Override
                public long send(final long buffer, final long length, final long descriptor, final long destination, final long tag,
                    final long operation) {
                    context[0] = operation;
                    return 0;
                }
            }));
            isend(link, source, 0, MIB, from);
            FabricPair.await("the send", () -> {
                pair.left.progress();
                pair.right.progress();
                return context[0] != 0;
            });
            final Thread closer = new Thread(() -> pair.left.closeSend(link.send()), "closer");
            closer.start();
            FabricPair.await("the close", () -> {
                final boolean[] closed = new boolean[1];
                under(pair.left, () -> closed[0] = pair.left.engine().comms().findOpen(link.send(), true) == null);
                return closed[0];
            });
            under(pair.left, () -> ((FabricEndpoint.Completions) get(pair.left.engine(), "incoming"))
                .onError(at, at.ops().of(context[0]), "out of order"));
            closer.join();
            assertThat(failure(link, pair.right, receive)).hasMessageContaining("out of order");
            under(pair.left, () -> setPath(at, real));
        }
    }

    /** A buffer of a dead peer's own endpoint that cannot be posted again, before that is closed, concerns nobody else. */
    @Test
    void aBufferOfADeadPeerBreaksNobody() {
        try (FabricPair pair = new FabricPair("shm"); LibfabricTransport third = new LibfabricTransport(FabricPair.config("shm"));
            NrtTensor memory = NrtTensor.allocate(100)) {
            FabricPair.link(pair.left, pair.right);
            final FabricPair.Link other = FabricPair.link(pair.left, third);
            under(pair.left, () -> {
                final MessageEngine engine = pair.left.engine();
                final Peer peer = connectionOf(pair.left).peer;
                final FabricEndpoint at = peer.endpoint;
                int op = 0;
                while (at.ops().kind[op] != OpTable.LIBRARY_RECV) {
                    op++;
                }
                final DataPath real = at.path();
                setPath(at, new PathStub(real) {
                    @Override
                    public long recv(final long buffer, final long length, final long descriptor, final long tag, final long ignore,
                        final long operation) {
                        return -5;
                    }
                });
                engine.failPeer(peer, "it died");
                ((FabricEndpoint.Completions) get(engine, "incoming")).onError(at, op, "cancelled");
                setPath(at, real);
            });
            final long from = register(pair.left, other.send(), memory);
            final long receive = irecv(other, memory, 0, 8, register(third, other.recv(), memory));
            final long send = isend(other, memory, 8, 8, from);
            assertThat(complete(other, third, receive)).isEqualTo(8);
            assertThat(complete(other, pair.left, send)).isEqualTo(8);
        }
    }

    /** A queue that says that there is an error and does not give it would be asked for ever. */
    @Test
    void aQueueWhoseErrorCannotBeReadFailsTheTransport() {
        try (FabricPair pair = new FabricPair("tcp;ofi_rxm"); NrtTensor memory = NrtTensor.allocate(8)) {
            final FabricPair.Link link = FabricPair.link(pair.left, pair.right);
            final FabricEndpoint at = pair.right.engine().endpoint();
            final DataPath real = at.path();
            final long receive = irecv(link, memory, 0, 8, register(pair.right, link.recv(), memory));
            under(pair.right, () -> setPath(at, new PathStub(real) {
                @Override
                public long cqRead(final long entries, final long count) {
                    return -FiLayout.EAVAIL;
                }

                @Override
                public long cqReadError(final long entry) {
                    return -22;
                }
            }));
            assertThat(failure(link, pair.right, receive)).hasMessageContaining("fi_cq_readerr").hasMessageContaining("22");
            under(pair.right, () -> setPath(at, real));
        }
    }

    /** A peer that opens communicators without end is refused, and those that were there before wait on. */
    @Test
    void aListenersBacklogHasAnEnd() {
        try (FabricPair pair = new FabricPair("tcp;ofi_rxm")) {
            FabricPair.link(pair.left, pair.right);
            final byte[] handle = new byte[NetTransport.HANDLE_BYTES];
            final long listener = pair.right.listen(0, handle);
            final ControlPlane control = pair.right.engine().control();
            final long listenerId = ListenHandle.read(handle).listener();
            under(pair.right, () -> {
                for (int i = 0; i < 5000; i++) { // from communicators that nobody has
                    control.onFrame(connectionOf(pair.right), ControlFrame.of(ControlFrame.COMM_OPEN, listenerId, 1_000_000 + i, ""));
                }
                final Object listening = ((Map<?, ?>) get(get(control, "rendezvous"), "listeners")).get(listenerId);
                assertThat((Collection<?>) get(listening, "backlog")).hasSize(1024);
            });
            pair.right.closeListen(listener);
        }
    }

    /** A provider that has no room for a receive now has it later: nobody's peer ends for that. */
    @Test
    void aLateMessageThatThereIsNoRoomForIsTakenLater() {
        try (FabricPair pair = new FabricPair("tcp;ofi_rxm")) {
            final FabricPair.Link link = FabricPair.link(pair.left, pair.right);
            final RecvComm recv = (RecvComm) pair.right.engine().comms().findOpen(link.recv(), false);
            final MessageEngine engine = pair.right.engine();
            final FabricEndpoint at = engine.endpoint();
            final DataPath real = at.path();
            under(pair.right, () -> {
                setPath(at, new PathStub(real) {
                    @Override
                    public long recv(final long buffer, final long length, final long descriptor, final long tag, final long ignore,
                        final long operation) {
                        return -FiLayout.EAGAIN;
                    }
                });
                recv.takenBack.add(new long[] {0, MIB});
                recv.takenBack.add(new long[] {1, 10});
                engine.closing().swallow(recv, 2, new byte[] {3});
                engine.progressLocked();
                assertThat(engine.closing().waitingSinks()).isEqualTo(2);
                assertThat(recv.peer.alive()).isTrue();
                setPath(at, real);
            });
            assertThat(pair.right.needsProgress()).isTrue();
            FabricPair.await("room", () -> {
                pair.right.progress();
                return !pair.right.needsProgress();
            });
            under(pair.right, () -> assertThat(engine.operations(OpTable.SINK)).isEqualTo(2));
        }
    }

    /** A data path whose calls a test may answer in the provider's place. */
    private static class PathStub implements DataPath {
        private final DataPath real;

        PathStub(final DataPath real) {
            this.real = real;
        }

        @Override
        public long recv(
            final long buffer, final long length, final long descriptor, final long tag, final long ignore, final long context) {
            return real.recv(buffer, length, descriptor, tag, ignore, context);
        }

        @Override
        public long send(final long buffer, final long length, final long descriptor, final long destination, final long tag,
            final long context) {
            return real.send(buffer, length, descriptor, destination, tag, context);
        }

        @Override
        public long inject(final long buffer, final long length, final long destination, final long tag) {
            return real.inject(buffer, length, destination, tag);
        }

        @Override
        public long cqRead(final long entries, final long count) {
            return real.cqRead(entries, count);
        }

        @Override
        public long cqReadError(final long entry) {
            return real.cqReadError(entry);
        }

        @Override
        public long cancel(final long context) {
            return real.cancel(context);
        }

        @Override
        public void free() {
            real.free();
        }
    }
}
