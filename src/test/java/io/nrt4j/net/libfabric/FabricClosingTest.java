package io.nrt4j.net.libfabric;

import static io.nrt4j.net.libfabric.FabricPair.irecv;
import static io.nrt4j.net.libfabric.FabricPair.isend;
import static io.nrt4j.net.libfabric.FabricPair.register;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.NrtTensor;
import io.nrt4j.testing.Stopwatch;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Communicators that are closed while messages are on their way. */
class FabricClosingTest {
    private static final int MIB = 1 << 20;

    @BeforeAll
    static void libfabricIsThere() {
        FabricPair.assumeLibfabric();
    }

    private static int count(final LibfabricTransport transport, final byte kind) {
        final MessageEngine engine = transport.engine();
        engine.lock.lock();
        try {
            return engine.operations(kind);
        } finally {
            engine.lock.unlock();
        }
    }

    /** What was sent ahead of receives that never came is nothing to go through one by one, all around the numbers. */
    @ParameterizedTest
    @ValueSource(strings = {"tcp;ofi_rxm", "shm", "sockets"})
    void aSenderClosesWithMessagesAheadOfTheirReceives(final String provider) {
        try (FabricPair pair = new FabricPair(provider); NrtTensor source = NrtTensor.allocate(100)) {
            final FabricPair.Link link = FabricPair.link(pair.left, pair.right);
            final long from = register(pair.left, link.send(), source);
            final long to = register(pair.right, link.recv(), source);
            for (int i = 0; i < 3; i++) {
                isend(link, source, 0, 8, from);
            }
            pair.left.progress();
            pair.left.closeSend(link.send());
            final Stopwatch watch = Stopwatch.start();
            final NrtException[] closed = new NrtException[1];
            FabricPair.await("the receiver to learn of it", () -> {
                try {
                    pair.right.test(pair.right.irecv(link.recv(), source.address(), 8, to));
                } catch (final NrtException ex) {
                    closed[0] = ex;
                }
                return closed[0] != null && closed[0].getMessage().contains("closed its communicator");
            });
            assertThat(watch.elapsed()).isLessThan(Duration.ofMillis(1500));
            pair.right.closeRecv(link.recv()); // the first receives wait for messages that are on their way: their memory is about to go
        }
    }

    /** Whoever has received and closes at once does not make the sender believe that it was lost. */
    @ParameterizedTest
    @ValueSource(strings = {"tcp;ofi_rxm", "shm", "sockets"})
    void aMessageThatArrivedBeforeTheReceiverClosedIsSent(final String provider) {
        try (FabricPair pair = new FabricPair(provider); NrtTensor source = NrtTensor.allocate(100);
            NrtTensor target = NrtTensor.allocate(100)) {
            for (int round = 0; round < 20; round++) {
                final FabricPair.Link link = FabricPair.link(pair.left, pair.right);
                final long from = register(pair.left, link.send(), source);
                final long to = register(pair.right, link.recv(), target);
                final long send = isend(link, source, 0, 8, from);
                final long receive = irecv(link, target, 0, 8, to);
                FabricPair.await("the message", () -> pair.right.test(receive) == 8);
                pair.right.closeRecv(link.recv());
                FabricPair.await("the sender's completion", () -> pair.left.test(send) == 8);
                pair.left.closeSend(link.send());
            }
        }
    }

    private static void announce(final FabricPair.Link link, final NrtTensor target, final int count, final int length) {
        final long to = register(link.receiver(), link.recv(), target);
        for (int i = 0; i < count; i++) {
            irecv(link, target, 0, length, to);
        }
        FabricPair.await("the announcements", () -> {
            link.sender().progress();
            link.receiver().progress();
            return announced(link) == count;
        });
    }

    /** How many receives the sender knows of for its next sends. */
    private static int announced(final FabricPair.Link link) {
        final MessageEngine engine = ((LibfabricTransport) link.sender()).engine();
        engine.lock.lock();
        try {
            final SendComm comm = (SendComm) engine.comms().open(link.send(), true);
            int known = 0;
            while (comm.announcedKind[comm.transmit + known & Comm.RING_MASK] != 0) {
                known++;
            }
            return known;
        } finally {
            engine.lock.unlock();
        }
    }

    private static void send(final FabricPair.Link link, final NrtTensor source, final int count, final int length) {
        final long from = register(link.sender(), link.send(), source);
        for (int i = 0; i < count; i++) {
            isend(link, source, 0, length, from);
        }
    }

    /** The user frees the memory when a close has returned, whatever the other end does meanwhile. */
    @ParameterizedTest
    @ValueSource(strings = {"tcp;ofi_rxm", "shm"})
    void aCloseWaitsForItsMemoryThoughTheReceiverClosesToo(final String provider) throws Exception {
        try (FabricPair pair = new FabricPair(provider); NrtTensor source = NrtTensor.allocate(MIB);
            NrtTensor target = NrtTensor.allocate(MIB)) {
            final FabricPair.Link link = FabricPair.link(pair.left, pair.right);
            announce(link, target, 4, MIB);
            final AtomicInteger held = new AtomicInteger(-1);
            final Thread closer = new Thread(() -> {
                pair.left.closeSend(link.send());
                held.set(count(pair.left, OpTable.DIRECT_SEND));
            }, "closer");
            pair.right.engine().lock.lock(); // so that no thread of the receiver takes the messages
            try {
                send(link, source, 4, MIB);
                assertThat(count(pair.left, OpTable.DIRECT_SEND)).isEqualTo(4);
                closer.start();
                FabricPair.await("the sender's close", () -> {
                    pair.left.engine().lock.lock();
                    try {
                        return pair.left.engine().comms().findOpen(link.send(), true) == null;
                    } finally {
                        pair.left.engine().lock.unlock();
                    }
                });
                pair.right.closeRecv(link.recv());
            } finally {
                pair.right.engine().lock.unlock();
            }
            FabricPair.await("the end of the close", () -> {
                pair.right.progress();
                return held.get() >= 0;
            });
            closer.join();
            assertThat(held).hasValue(0);
            assertThat(pair.left.engine().describe()).doesNotContain("communicator").contains(" 0 early, 0 direct sends");
        }
    }

    /** Neither the number of communicators nor a peer that moves a little now and then makes a close longer than its caller has time. */
    @ParameterizedTest
    @ValueSource(strings = {"tcp;ofi_rxm", "sockets"})
    void closesThatAreBegunTogetherWaitOnceForASlowPeer(final String provider) {
        try (FabricPair pair = new FabricPair(provider); NrtTensor source = NrtTensor.allocate(MIB);
            NrtTensor target = NrtTensor.allocate(MIB)) {
            final List<FabricPair.Link> links = new ArrayList<>();
            for (int i = 0; i < 4; i++) {
                links.add(FabricPair.link(pair.left, pair.right));
                announce(links.get(i), target, 1, MIB);
            }
            pair.right.engine().lock.lock(); // so that no thread of the receiver takes the messages
            try {
                for (final FabricPair.Link link : links) {
                    send(link, source, 1, MIB);
                }
                assertThat(count(pair.left, OpTable.DIRECT_SEND)).isEqualTo(4);
                final long startNs = System.nanoTime();
                final long deadlineNs = startNs + TimeUnit.MILLISECONDS.toNanos(500);
                for (final FabricPair.Link link : links) {
                    pair.left.beginClose(link.send());
                }
                for (final FabricPair.Link link : links) {
                    final Peer peer = pair.left.engine().comms().at((int) link.send() & 0xFFFF).peer;
                    assertThatThrownBy(() -> pair.left.closeSend(link.send(), deadlineNs)).isInstanceOfSatisfying(NrtException.class,
                        ex -> assertThat(ex.status()).isEqualTo(NrtStatus.TIMEOUT));
                    pair.left.closeSend(link.send(), deadlineNs); // closed all the same
                    peer.received++; // it has moved
                }
                assertThat(TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - startNs)).isBetween(500L, 1900L);
            } finally {
                pair.right.engine().lock.unlock();
            }
            FabricPair.await("the end of the sends", () -> {
                pair.left.progress();
                pair.right.progress();
                return count(pair.left, OpTable.DIRECT_SEND) == 0;
            });
        }
    }

    /** Receives that were matched before the close have their message: nothing is left to be swallowed. */
    @ParameterizedTest
    @ValueSource(strings = {"tcp;ofi_rxm", "shm"})
    void aCloseLeavesNoReceivesBehind(final String provider) throws Exception {
        try (FabricPair pair = new FabricPair(provider); NrtTensor source = NrtTensor.allocate(MIB);
            NrtTensor target = NrtTensor.allocate(MIB)) {
            for (int round = 0; round < 5; round++) {
                final FabricPair.Link link = FabricPair.link(pair.left, pair.right);
                announce(link, target, 4, MIB);
                pair.left.engine().lock.lock(); // so that the messages come to the receiver, but not to their end
                try {
                    send(link, source, 4, MIB);
                    for (int i = 0; i < 2000; i++) {
                        pair.right.progress();
                    }
                } finally {
                    pair.left.engine().lock.unlock();
                }
                final Thread closer = new Thread(() -> pair.right.closeRecv(link.recv()), "closer");
                closer.start();
                FabricPair.await("the receiver's close", () -> {
                    pair.left.progress();
                    return !closer.isAlive();
                });
                pair.left.closeSend(link.send());
            }
            FabricPair.await("an end of all receives", () -> {
                pair.left.progress();
                pair.right.progress();
                return count(pair.right, OpTable.SINK) == 0 && !pair.right.engine().describe().contains("communicator");
            });
        }
    }

    /** A message that was refused, or came ahead as a short one, is none that must be swallowed. */
    @ParameterizedTest
    @CsvSource({"tcp;ofi_rxm,1048576", "tcp;ofi_rxm,10", "shm,1048576", "shm,10"})
    void aCloseSwallowsOnlyLongMessages(final String provider, final int length) {
        try (FabricPair pair = new FabricPair(provider); NrtTensor source = NrtTensor.allocate(MIB);
            NrtTensor target = NrtTensor.allocate(MIB)) {
            final FabricPair.Link link = FabricPair.link(pair.left, pair.right);
            final long from = register(pair.left, link.send(), source);
            final long to = register(pair.right, link.recv(), target);
            pair.right.engine().lock.lock(); // so that no thread of the receiver sees what was sent before the close
            try {
                if (length < MIB) {
                    isend(link, source, 0, length, from);
                }
                irecv(link, target, 0, 70_000, to);
                for (int i = 0; i < 2000; i++) {
                    pair.right.progress(); // announces it; what was sent ahead is matched here
                    if (length < MIB) {
                        break;
                    }
                    pair.left.progress();
                }
                if (length == MIB) {
                    isend(link, source, 0, length, from);
                }
                pair.left.progress();
                pair.right.closeRecv(link.recv());
            } finally {
                pair.right.engine().lock.unlock();
            }
            FabricPair.await("the end of the communicator", () -> {
                pair.left.progress();
                pair.right.progress();
                return !pair.right.engine().describe().contains("communicator");
            });
            assertThat(count(pair.right, OpTable.SINK)).isZero();
            pair.left.closeSend(link.send());
        }
    }
}
