package io.nrt4j.net.libfabric;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.NrtTensor;
import io.nrt4j.net.MemoryInUseException;
import io.nrt4j.net.NetTransport;
import java.util.Arrays;
import java.util.Objects;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A peer that lives on after its control connection broke: nothing of it may reach memory that was given back. */
@Timeout(60)
class DataLinksTest {
    private static final int LENGTH = 128 << 20;

    @BeforeAll
    static void libfabricIsThere() {
        FabricPair.assumeLibfabric();
    }

    /** The only peer of a transport. */
    private static Peer peerOf(final LibfabricTransport transport) {
        return Arrays.stream(transport.engine().peers()).filter(Objects::nonNull).findFirst().orElseThrow();
    }

    private static void fail(final LibfabricTransport transport, final Peer peer) {
        final MessageEngine engine = transport.engine();
        engine.lock.lock();
        try {
            engine.failPeer(peer, "for a test");
        } finally {
            engine.publishBusy();
            engine.lock.unlock();
        }
    }

    private static void awaitLinks(final FabricPair pair) {
        FabricPair.await("both ends know the data path", () -> {
            pair.left.progress();
            pair.right.progress();
            return peerOf(pair.left).link != null && peerOf(pair.right).link != null;
        });
    }

    private static void fill(final NrtTensor tensor, final byte value) {
        final byte[] chunk = new byte[1 << 20];
        Arrays.fill(chunk, value);
        for (long at = 0; at < tensor.sizeBytes(); at += chunk.length) {
            tensor.write(at, chunk);
        }
    }

    private static long differing(final NrtTensor tensor, final byte value) {
        long count = 0;
        for (long at = 0; at < tensor.sizeBytes(); at += 1 << 20) {
            for (final byte each : tensor.read(at, 1 << 20)) {
                count += each == value ? 0 : 1;
            }
        }
        return count;
    }

    @Test
    void bothEndsKnowTheSocketBetweenThem() {
        try (FabricPair pair = new FabricPair("tcp;ofi_rxm")) {
            FabricPair.link(pair.left, pair.right);
            awaitLinks(pair);
            final TcpSocket left = peerOf(pair.left).link;
            final TcpSocket right = peerOf(pair.right).link;
            assertThat(left.local()).isEqualTo(right.remote());
            assertThat(left.remote()).isEqualTo(right.local());
        }
    }

    @Test
    void aFailedReceiveIsNotWrittenToByAPeerThatLivesOn() {
        try (FabricPair pair = new FabricPair("tcp;ofi_rxm"); NrtTensor source = NrtTensor.allocate(LENGTH);
            NrtTensor target = NrtTensor.allocate(LENGTH)) {
            final FabricPair.Link link = FabricPair.link(pair.left, pair.right);
            awaitLinks(pair);
            fill(source, (byte) 0xAA);
            final long receive = FabricPair.irecv(link, target, 0, LENGTH, FabricPair.register(pair.right, link.recv(), target));
            final long send = FabricPair.isend(link, source, 0, LENGTH, FabricPair.register(pair.left, link.send(), source));
            FabricPair.await("a part of the message", () -> {
                pair.left.progress();
                pair.right.progress();
                return target.read(LENGTH / 16, 1)[0] == (byte) 0xAA;
            });
            assertThat(pair.right.engine().operations(OpTable.DIRECT_RECV)).isOne();
            final long startNs = System.nanoTime();
            final Peer dead = peerOf(pair.right);
            fail(pair.right, dead);
            final NrtException failure = FabricPair.failure(link, pair.right, receive);
            assertThat(failure).isNotInstanceOf(MemoryInUseException.class).hasMessageContaining("for a test");
            assertThat(System.nanoTime() - startNs).isLessThan(2_000_000_000L);
            fill(target, (byte) 0x55);
            assertThat(FabricPair.failure(link, pair.left, send)).isNotInstanceOf(MemoryInUseException.class);
            // The same endpoints talk to each other again, over a connection of its own.
            final FabricPair.Link next = FabricPair.link(pair.left, pair.right);
            try (NrtTensor small = NrtTensor.allocate(100_000)) {
                final long in = FabricPair.irecv(next, small, 0, 100_000, FabricPair.register(pair.right, next.recv(), small));
                final long out = FabricPair.isend(next, source, 0, 100_000, FabricPair.register(pair.left, next.send(), source));
                assertThat(FabricPair.complete(next, pair.right, in)).isEqualTo(100_000);
                assertThat(FabricPair.complete(next, pair.left, out)).isEqualTo(100_000);
                assertThat(small.read(99_999, 1)[0]).isEqualTo((byte) 0xAA);
            }
            assertThat(dead.severed).isTrue();
            assertThat(dead.gone).isTrue();
            assertThat(differing(target, (byte) 0x55)).isZero();
        }
    }

    /** Two transports of a process that talk to the same third one cannot tell their sockets apart: nothing of the other is cut. */
    @Test
    void whatMayBeAnothersIsNotCut() {
        try (FabricPair pair = new FabricPair("tcp;ofi_rxm");
            LibfabricTransport third = new LibfabricTransport(FabricPair.config("tcp;ofi_rxm"));
            NrtTensor source = NrtTensor.allocate(LENGTH); NrtTensor target = NrtTensor.allocate(LENGTH)) {
            final FabricPair.Link link = FabricPair.link(pair.left, pair.right);
            final Peer left = peerOf(pair.right);
            final FabricPair.Link other = FabricPair.link(third, pair.right);
            final long receive = FabricPair.irecv(link, target, 0, LENGTH, FabricPair.register(pair.right, link.recv(), target));
            final long in = FabricPair.irecv(other, target, 0, LENGTH, FabricPair.register(pair.right, other.recv(), target));
            fail(pair.right, left);
            assertThat(FabricPair.failure(link, pair.right, receive)).hasMessageContaining("for a test");
            final long out = FabricPair.isend(other, source, 0, LENGTH, FabricPair.register(third, other.send(), source));
            assertThat(FabricPair.complete(other, pair.right, in)).isEqualTo(LENGTH);
            assertThat(FabricPair.complete(other, third, out)).isEqualTo(LENGTH);
        }
    }

    /** Addresses alone make no TCP sockets: nothing is looked for, and the end of the peer's process is what counts. */
    @Test
    void aPeerWithoutSocketsIsCutByTheEndOfItsProcess() {
        try (FabricPair pair = new FabricPair("udp;ofi_rxd")) {
            FabricPair.link(pair.left, pair.right);
            final Peer peer = peerOf(pair.left);
            assertThat(peer.dataAddress).isNull();
            pair.right.close();
            FabricPair.await("its goodbye", () -> {
                pair.left.progress();
                return !peer.alive();
            });
            assertThat(pair.left.engine().links().severed(peer)).isTrue();
        }
    }

    /** The provider keeps the memory of what it has, whatever became of the peer. */
    @Test
    void memoryThatCannotBeTakenBackIsSaidToBeInUse() {
        try (FabricPair pair = new FabricPair("tcp;ofi_rxm"); NrtTensor source = NrtTensor.allocate(LENGTH);
            NrtTensor target = NrtTensor.allocate(LENGTH)) {
            final FabricPair.Link link = FabricPair.link(pair.left, pair.right);
            awaitLinks(pair);
            final long registration = FabricPair.register(pair.right, link.recv(), target);
            final long receive = FabricPair.irecv(link, target, 0, LENGTH, registration);
            FabricPair.isend(link, source, 0, LENGTH, FabricPair.register(pair.left, link.send(), source));
            fill(source, (byte) 0xAA);
            FabricPair.await("a part of the message", () -> {
                pair.left.progress();
                pair.right.progress();
                return target.read(LENGTH / 16, 1)[0] == (byte) 0xAA;
            });
            final Peer dead = peerOf(pair.right);
            dead.dataAddress = null; // as with a provider that has no TCP sockets
            NrtException failure = null;
            long answer = NetTransport.PENDING;
            pair.left.engine().lock.lock(); // its process hangs
            try {
                fail(pair.right, dead);
                final long deadlineNs = System.nanoTime() + FabricPair.LIMIT.toNanos();
                while (failure == null && System.nanoTime() - deadlineNs < 0) {
                    answer = pair.right.test(receive);
                }
            } catch (final NrtException ex) {
                failure = ex;
            } finally {
                pair.left.engine().lock.unlock();
            }
            assertThat(answer).isEqualTo(NetTransport.PENDING);
            assertThat(failure).isInstanceOf(MemoryInUseException.class).hasMessageContaining("for a test");
            assertThatThrownBy(() -> pair.right.closeRecv(link.recv())).as("the communicator's memory is not all free")
                .isInstanceOfSatisfying(NrtException.class, ex -> assertThat(ex.status()).isEqualTo(NrtStatus.TIMEOUT));
        }
    }
}
