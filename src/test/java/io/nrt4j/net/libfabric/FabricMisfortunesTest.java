package io.nrt4j.net.libfabric;

import static io.nrt4j.net.libfabric.FabricPair.irecv;
import static io.nrt4j.net.libfabric.FabricPair.isend;
import static io.nrt4j.net.libfabric.FabricPair.register;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.NrtTensor;
import io.nrt4j.concurrent.NanoClock;
import io.nrt4j.concurrent.StrangerLog;
import io.nrt4j.net.NetTransport;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.net.Socket;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Strangers, full tables, memory that is not there, peers that say what they must not: brought about inside. */
class FabricMisfortunesTest {
    @BeforeAll
    static void libfabricIsThere() {
        FabricPair.assumeLibfabric();
    }

    private static Field field(final Object owner, final String name) throws ReflectiveOperationException {
        final Field field = owner.getClass().getDeclaredField(name);
        field.setAccessible(true);
        return field;
    }

    private static Comm comm(final LibfabricTransport transport, final long handle) {
        return transport.engine().comms().at((int) handle & 0xFFFF);
    }

    /** A sender whose receiver has no room goes on waiting for it. */
    @Test
    void aConnectThatComesToAFullTableIsAcceptedWhenThereIsRoom() throws Exception {
        try (FabricPair pair = new FabricPair("tcp;ofi_rxm")) {
            FabricPair.link(pair.left, pair.right).close();
            final byte[] handle = new byte[NetTransport.HANDLE_BYTES];
            final long listen = pair.right.listen(0, handle);
            final Field table = field(pair.right.engine().comms(), "comms");
            final Object before = fill(pair.right, table);
            final NrtException[] full = new NrtException[1];
            FabricPair.await("a connect that finds no room", () -> {
                assertThat(pair.left.connect(0, handle)).isEqualTo(NetTransport.NOT_YET);
                try {
                    pair.right.accept(listen);
                } catch (final NrtException ex) {
                    full[0] = ex;
                }
                return full[0] != null;
            });
            assertThat(full[0].status()).isEqualTo(NrtStatus.RESOURCE);
            restore(pair.right, table, before);
            final long[] comms = new long[2];
            FabricPair.await("a connection", () -> {
                comms[0] = comms[0] == 0 ? pair.left.connect(0, handle) : comms[0];
                comms[1] = comms[1] == 0 ? pair.right.accept(listen) : comms[1];
                return comms[0] != 0 && comms[1] != 0;
            });
        }
    }

    /** One communicator, of nobody, stands at every index: as many as there may be would take a gigabyte. */
    private static Object fill(final LibfabricTransport transport, final Field table) throws ReflectiveOperationException {
        transport.engine().lock.lock();
        try {
            final Object before = table.get(transport.engine().comms());
            final Comm[] full = new Comm[1 << 16];
            Arrays.fill(full, new SendComm(0, 0, new Peer(null, 0, 0, 0)));
            table.set(transport.engine().comms(), full);
            return before;
        } finally {
            transport.engine().lock.unlock();
        }
    }

    private static void restore(final LibfabricTransport transport, final Field table, final Object before)
        throws ReflectiveOperationException {
        transport.engine().lock.lock();
        try {
            table.set(transport.engine().comms(), before);
        } finally {
            transport.engine().lock.unlock();
        }
    }

    @Test
    void anEndpointThatCannotBeClosedHoldsNobodyUp() throws Exception {
        final LibfabricTransport transport = new LibfabricTransport(FabricPair.config("tcp;ofi_rxm"));
        final Object endpoint = field(transport, "endpoint").get(transport);
        final Field openObjects = field(endpoint, "openObjects");
        final Object open = openObjects.get(endpoint);
        openObjects.set(endpoint, null);
        assertThatThrownBy(transport::close).isInstanceOf(NullPointerException.class);
        assertThat(transport.engine().lock.isLocked()).isFalse();
        final long startNs = System.nanoTime();
        transport.close();
        assertThat(TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - startNs)).as("nobody waits for its end").isLessThan(1000);
        assertThat(Runtime.getRuntime().removeShutdownHook((Thread) field(transport, "shutdownHook").get(transport))).isFalse();
        openObjects.set(endpoint, open);
        final Method closeNow = endpoint.getClass().getDeclaredMethod("closeNow");
        closeNow.setAccessible(true);
        closeNow.invoke(endpoint);
    }

    /** What nobody can take would keep its sender's memory for ever, and say nothing. */
    @ParameterizedTest
    @ValueSource(strings = {"tcp;ofi_rxm", "shm"})
    void aLateMessageThatThereIsNoMemoryForFailsItsPeer(final String provider) {
        try (FabricPair pair = new FabricPair(provider)) {
            final FabricPair.Link link = FabricPair.link(pair.left, pair.right);
            final RecvComm recv = (RecvComm) comm(pair.right, link.recv());
            pair.right.engine().lock.lock();
            try {
                recv.takenBack.add(new long[] {0, 1L << 60});
                recv.takenBack.add(new long[] {1, 1L << 60});
                pair.right.engine().closing().swallow(recv, 2, new byte[] {3});
                assertThat(recv.peer.alive()).isFalse();
                assertThat(recv.peer.deathCause).contains("cannot be taken").contains("no memory");
            } finally {
                pair.right.engine().lock.unlock();
            }
            final Comm send = comm(pair.left, link.send());
            FabricPair.await("the sender to be told", () -> {
                pair.left.progress();
                return !send.peer.alive();
            });
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {0, Wire.DATA, Wire.DEMAND, Wire.TOO_LONG, 15})
    void whatIsNoAnnouncementIsRefusedByASender(final int type) throws Exception {
        try (FabricPair pair = new FabricPair("tcp;ofi_rxm")) {
            final FabricPair.Link link = FabricPair.link(pair.left, pair.right);
            final Comm send = comm(pair.left, link.send());
            final Outbox outbox = (Outbox) field(pair.right.engine(), "outbox").get(pair.right.engine());
            pair.right.engine().lock.lock();
            try {
                assertThat(outbox.sendItem(comm(pair.right, link.recv()), type, 0, 8)).isTrue();
            } finally {
                pair.right.engine().lock.unlock();
            }
            FabricPair.await("the sender to refuse it", () -> {
                pair.left.progress();
                return !send.peer.alive();
            });
            assertThat(send.peer.deathCause).contains("protocol error: item of type " + type);
        }
    }

    private static int freeSends(final Peer peer) {
        int count = 0;
        for (LibraryBuffer buffer = peer.freeSends; buffer != null; buffer = buffer.next) {
            count++;
        }
        return count;
    }

    /** A message that the provider carries at once without riders has none, and they go all the same. */
    @ParameterizedTest
    @ValueSource(strings = {"tcp;ofi_rxm", "shm", "sockets"})
    void ridersDoNotMakeAMessageTooLongToBeCarriedAtOnce(final String provider) throws Exception {
        try (FabricPair pair = new FabricPair(provider); NrtTensor tensor = NrtTensor.allocate(1 << 20)) {
            final FabricPair.Link there = FabricPair.link(pair.left, pair.right);
            final FabricPair.Link back = FabricPair.link(pair.right, pair.left);
            final long from = register(pair.left, there.send(), tensor);
            final long to = register(pair.left, back.recv(), tensor);
            final long registered = register(pair.right, back.send(), tensor);
            final FabricEndpoint endpoint = (FabricEndpoint) field(pair.left, "endpoint").get(pair.left);
            final long length = endpoint.info().injectSize() - Wire.HEADER_BYTES - Wire.ITEM_BYTES;
            final Peer peer = comm(pair.left, there.send()).peer;
            final long receive;
            pair.left.engine().lock.lock(); // so that nobody else polls, which would announce the receive alone
            try {
                final int before = freeSends(peer);
                receive = irecv(back, tensor, 0, 8, to);
                assertThat(peer.announceHead).isNotNull();
                isend(there, tensor, 0, length, from);
                assertThat(peer.announceHead).as("the receive waits for a message of its own").isNotNull();
                assertThat(freeSends(peer)).as("free buffers: a message that is carried at once gives its own back").isEqualTo(before);
            } finally {
                pair.left.engine().lock.unlock();
            }
            final long send = isend(back, tensor, 16, 8, registered);
            assertThat(FabricPair.complete(back, pair.left, receive)).isEqualTo(8);
            assertThat(FabricPair.complete(back, pair.right, send)).isEqualTo(8);
        }
    }

    private static long sleepMs(final LibfabricTransport transport, final ControlPlane plane) {
        transport.engine().lock.lock();
        try {
            return plane.connections().isEmpty() ? -1 : plane.sleepMs();
        } finally {
            transport.engine().lock.unlock();
        }
    }

    @Test
    void aStrangerKeepsNobodyAwake() throws Exception {
        try (LibfabricTransport transport = new LibfabricTransport(FabricPair.config("tcp;ofi_rxm"))) {
            final ControlPlane plane = (ControlPlane) field(transport, "control").get(transport);
            try (Socket silent = new Socket(plane.address().getAddress(), plane.address().getPort())) {
                assertThat(silent.isConnected()).isTrue();
                FabricPair.await("the stranger to be let in", () -> sleepMs(transport, plane) >= 0);
                assertThat(sleepMs(transport, plane)).as("until its time is over").isBetween(2000L, ControlPlane.HANDSHAKE_S * 1000 + 1);
                final FabricPair.Link self = FabricPair.link(transport, transport);
                FabricPair.await("nothing but the peer", () -> sleepMs(transport, plane) == ControlPlane.LONG_SLEEP_MS);
                self.close();
            }
        }
    }

    @Test
    void strangersWriteTheLogOnceASecond() throws Exception {
        final List<String> lines = new ArrayList<>();
        try (LibfabricTransport transport = new LibfabricTransport(FabricPair.config("tcp;ofi_rxm"))) {
            final ControlPlane plane = (ControlPlane) field(transport, "control").get(transport);
            field(plane, "strangers").set(plane, new StrangerLog(NanoClock.SYSTEM, lines::add));
            final long startNs = System.nanoTime();
            for (int i = 0; i < 50; i++) {
                try (Socket stranger = new Socket(plane.address().getAddress(), plane.address().getPort())) {
                    stranger.setSoTimeout((int) FabricPair.LIMIT.toMillis());
                    stranger.getOutputStream().write(ControlFrame.of(ControlFrame.HELLO, 1, 2, "a stranger").encode().array());
                    assertThat(stranger.getInputStream().read()).as("it is refused").isNotNegative();
                }
            }
            final long seconds = TimeUnit.NANOSECONDS.toSeconds(System.nanoTime() - startNs);
            transport.engine().lock.lock(); // under which the lines were written
            try {
                assertThat(lines).hasSizeBetween(1, (int) seconds + 2);
                assertThat(lines.get(0)).contains("another process listens there now");
            } finally {
                transport.engine().lock.unlock();
            }
        }
    }
}
