package io.nrt4j.net.loopback;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.sun.management.OperatingSystemMXBean;
import com.sun.management.ThreadMXBean;
import io.nrt4j.NrtConfig;
import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.NrtTensor;
import io.nrt4j.Placement;
import io.nrt4j.net.NetTransport;
import io.nrt4j.net.NetTransports;
import io.nrt4j.testing.Spin;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What only the loopback transport promises. */
class LoopbackTransportTest {
    private static final int MIB = 1 << 20;
    private static final long DEADLINE_NS = TimeUnit.SECONDS.toNanos(120);

    private final LoopbackTransport near = new LoopbackTransport();
    private final LoopbackTransport far = new LoopbackTransport();
    private final List<NrtTensor> tensors = new ArrayList<>();
    private final ExecutorService threads = Executors.newCachedThreadPool();

    /** A connected pair, with a tensor registered at each end. */
    private record Line(LoopbackTransport from, long send, NrtTensor source, long sourceMr,
        LoopbackTransport to, long recv, NrtTensor target, long targetMr) {

        long send(final long offset, final long lengthBytes) {
            return from.isend(send, source.address() + offset, lengthBytes, sourceMr);
        }

        long receive(final long offset, final long lengthBytes) {
            return to.irecv(recv, target.address() + offset, lengthBytes, targetMr);
        }
    }

    @AfterEach
    void closeAll() {
        threads.shutdownNow();
        near.close();
        far.close();
        assertThat(List.of(near.openComms(), near.openListeners(), near.openRegistrations(), near.pendingConnects(),
            far.openComms(), far.openListeners(), far.openRegistrations(), far.pendingConnects())).containsOnly(0);
        tensors.forEach(NrtTensor::close);
    }

    private NrtTensor tensor(final long sizeBytes) {
        final NrtTensor tensor = NrtTensor.allocate(sizeBytes);
        tensors.add(tensor);
        return tensor;
    }

    private Line line(final LoopbackTransport from, final LoopbackTransport to, final long sizeBytes) {
        final byte[] handle = new byte[NetTransport.HANDLE_BYTES];
        final long listen = to.listen(1, handle);
        assertThat(from.connect(0, handle)).isEqualTo(NetTransport.NOT_YET);
        final long recv = to.accept(listen);
        final long send = from.connect(0, handle);
        to.closeListen(listen);
        final NrtTensor source = tensor(sizeBytes);
        final NrtTensor target = tensor(sizeBytes);
        return new Line(from, send, source, from.regMr(send, source.address(), sizeBytes, Placement.HOST),
            to, recv, target, to.regMr(recv, target.address(), sizeBytes, Placement.HOST));
    }

    private static long finish(final NetTransport transport, final long request) {
        final long start = System.nanoTime();
        int rounds = 0;
        long size = transport.test(request);
        while (size == NetTransport.PENDING) {
            if (System.nanoTime() - start > DEADLINE_NS) {
                throw new AssertionError("a request is pending for 120 s on " + transport);
            }
            Spin.pause(rounds++);
            size = transport.test(request);
        }
        return size;
    }

    @Test
    void isFoundByNameAndSaysWhatItIs() {
        final NrtConfig config = NrtConfig.builder(Map.of(), Map.of()).build();
        assertThat(NetTransports.byName("loopback")).isInstanceOf(LoopbackTransportProvider.class);
        assertThat(NetTransports.byName("loopback").unavailabilityCause(config)).isNull();
        assertThat(NetTransports.byName("loopback").describe(config)).isNotBlank();
        assertThatThrownBy(() -> NetTransports.byName("pigeon")).isInstanceOf(NrtException.class)
            .hasMessageContaining("pigeon").hasMessageContaining("loopback");
    }

    @Test
    void countsWhatIsOpen() {
        final byte[] handle = new byte[NetTransport.HANDLE_BYTES];
        final long listen = far.listen(0, handle);
        assertThat(far.openListeners()).isEqualTo(1);
        near.connect(0, handle);
        assertThat(near.pendingConnects()).isEqualTo(1);
        near.abandonConnect(0, handle);
        assertThat(near.pendingConnects()).isZero();
        far.closeListen(listen);
        assertThat(far.openListeners()).isZero();
        final Line line = line(near, far, 100);
        assertThat(near.openComms()).isEqualTo(1);
        assertThat(near.openRegistrations()).isEqualTo(1);
        near.closeSend(line.send());
        assertThat(near.openComms()).isZero();
        assertThat(near.openRegistrations()).isZero();
        assertThat(far.openComms()).isEqualTo(1);
    }

    @Test
    void acceptsInTheOrderOfTheConnects() {
        final byte[] handle = new byte[NetTransport.HANDLE_BYTES];
        final long listen = far.listen(0, handle);
        final List<byte[]> handles = new ArrayList<>();
        for (int i = 0; i < 5; i++) {
            handles.add(handle.clone());
            assertThat(near.connect(i, handles.get(i))).isEqualTo(NetTransport.NOT_YET);
        }
        near.abandonConnect(1, handles.remove(1));
        final NrtTensor memory = tensor(8);
        for (final byte[] next : handles) {
            assertThat(near.connect(0, next)).as("connect before accept").isEqualTo(NetTransport.NOT_YET);
            final long recv = far.accept(listen);
            final long send = near.connect(0, next);
            assertThat(send).isNotEqualTo(NetTransport.NOT_YET);
            final long receive = far.irecv(recv, memory.address(), 8, far.regMr(recv, memory.address(), 8, Placement.HOST));
            near.isend(send, memory.address(), 8, near.regMr(send, memory.address(), 8, Placement.HOST));
            assertThat(far.test(receive)).isEqualTo(8);
        }
        assertThat(far.accept(listen)).isEqualTo(NetTransport.NOT_YET);
    }

    @Test
    void anotherVersionIsRefused() {
        final byte[] handle = new byte[NetTransport.HANDLE_BYTES];
        far.listen(0, handle);
        handle[8] = 0;
        assertThatThrownBy(() -> near.connect(0, handle)).isInstanceOf(NrtException.class)
            .hasMessageContaining("version 0").hasMessageContaining("version 1");
    }

    @Test
    void aConnectThatWasAcceptedAndThenAbandonedClosesThePeer() {
        final byte[] handle = new byte[NetTransport.HANDLE_BYTES];
        final long listen = far.listen(0, handle);
        near.connect(0, handle);
        final long recv = far.accept(listen);
        near.abandonConnect(0, handle);
        assertThat(near.openComms()).isZero();
        final NrtTensor memory = tensor(8);
        final long registration = far.regMr(recv, memory.address(), 8, Placement.HOST);
        assertThatThrownBy(() -> far.irecv(recv, memory.address(), 8, registration))
            .isInstanceOf(NrtException.class).hasMessageContaining("peer");
    }

    @Test
    void aClosedTransportIsNeitherAcceptedNorAccepts() {
        final byte[] handle = new byte[NetTransport.HANDLE_BYTES];
        final long listen = far.listen(0, handle);
        final LoopbackTransport third = new LoopbackTransport();
        third.connect(0, handle.clone());
        third.close();
        assertThat(far.accept(listen)).isEqualTo(NetTransport.NOT_YET);
        assertThatThrownBy(() -> third.connect(0, handle.clone())).isInstanceOf(NrtException.class)
            .extracting(ex -> ((NrtException) ex).status()).isEqualTo(NrtStatus.CLOSED);
        assertThatThrownBy(() -> third.listen(0, handle.clone())).isInstanceOf(NrtException.class)
            .extracting(ex -> ((NrtException) ex).status()).isEqualTo(NrtStatus.CLOSED);
    }

    @Test
    void shortMessagesAreCopiedByThePostAndLongOnesAreNot() {
        final Line line = line(near, far, 4 * MIB);
        final long receive = line.receive(0, MIB);
        final long send = line.send(0, MIB);
        assertThat(near.needsProgress()).isFalse();
        assertThat(far.test(receive)).isEqualTo(MIB);
        assertThat(near.test(send)).isEqualTo(MIB);

        line.source().write(3 * MIB, new byte[] {42});
        final long longSend = line.send(0, 3 * MIB + 1);
        final long longReceive = line.receive(0, 3 * MIB + 1);
        final long behind = line.receive(0, 1);
        final long sentBehind = line.send(1, 1);
        assertThat(near.needsProgress()).isTrue();
        assertThat(far.needsProgress()).isTrue();
        assertThat(line.target().read(3 * MIB, 1)).containsExactly(0);
        // Three of the four slices, each by another call; what was posted behind does not overtake.
        assertThat(near.progress()).isEqualTo(1);
        assertThat(far.test(behind)).isEqualTo(NetTransport.PENDING);
        assertThat(near.test(longSend)).isEqualTo(NetTransport.PENDING);
        assertThat(line.target().read(3 * MIB, 1)).containsExactly(0);
        assertThat(finish(near, longSend)).isEqualTo(3 * MIB + 1);
        assertThat(far.test(longReceive)).isEqualTo(3 * MIB + 1);
        assertThat(finish(far, behind)).isEqualTo(1);
        assertThat(finish(near, sentBehind)).isEqualTo(1);
        assertThat(line.target().read(3 * MIB, 1)).containsExactly(42);
        assertThat(near.needsProgress()).isFalse();
        assertThat(far.progress()).isZero();
    }

    @Test
    void progressAloneFinishesALongCopy() {
        final Line line = line(near, near, 10 * MIB);
        final long send = line.send(0, 10 * MIB);
        final long receive = line.receive(0, 10 * MIB);
        int ticks = 0;
        while (near.needsProgress()) {
            assertThat(near.progress()).isEqualTo(1);
            assertThat(++ticks).isLessThanOrEqualTo(10);
        }
        assertThat(ticks).isEqualTo(10);
        assertThat(near.test(receive)).isEqualTo(10 * MIB);
        assertThat(near.test(send)).isEqualTo(10 * MIB);
    }

    @Test
    void deregisteringUnderALongCopyFailsBothEndsAndFreesTheMemory() {
        final Line line = line(near, far, 8 * MIB);
        final long send = line.send(0, 8 * MIB);
        final long receive = line.receive(0, 8 * MIB);
        assertThat(near.progress()).isEqualTo(1);
        near.deregMr(line.send(), line.sourceMr());
        line.source().close();
        assertThatThrownBy(() -> finish(far, receive)).isInstanceOf(NrtException.class).hasMessageContaining("deregistered");
        assertThatThrownBy(() -> finish(near, send)).isInstanceOf(NrtException.class).hasMessageContaining("deregistered");
    }

    @Test
    void failuresNameCallCommunicatorAndRange() {
        final Line line = line(near, far, 100);
        assertThatThrownBy(() -> line.send(50, 51)).isInstanceOf(NrtException.class)
            .hasMessageContaining("isend").hasMessageContaining(Long.toHexString(line.send()))
            .hasMessageContaining(Long.toHexString(line.source().address() + 50) + "+51")
            .extracting(ex -> ((NrtException) ex).status()).isEqualTo(NrtStatus.INVALID);
        assertThatThrownBy(() -> near.irecv(line.send(), line.source().address(), 1, line.sourceMr()))
            .isInstanceOf(NrtException.class).hasMessageContaining("irecv").hasMessageContaining("send communicator");
        assertThatThrownBy(() -> near.closeRecv(line.send())).isInstanceOf(NrtException.class);
        assertThatThrownBy(() -> far.isend(line.send(), line.source().address(), 1, line.sourceMr()))
            .as("a communicator of another transport").isInstanceOf(NrtException.class);
    }

    @Test
    void handlesOfAClosedCommunicatorNeverMeanItsSuccessor() {
        final Line old = line(near, far, 100);
        final long oldRequest = old.receive(0, 10);
        near.closeSend(old.send());
        far.closeRecv(old.recv());
        final Line fresh = line(near, far, 100);
        final long request = fresh.receive(0, 10);
        assertThat(request).isNotEqualTo(oldRequest);
        assertThatThrownBy(() -> far.test(oldRequest)).isInstanceOf(NrtException.class);
        assertThatThrownBy(() -> far.irecv(old.recv(), old.target().address(), 1, old.targetMr())).isInstanceOf(NrtException.class);
        assertThatThrownBy(() -> far.deregMr(fresh.recv(), old.targetMr())).isInstanceOf(NrtException.class);
        far.closeRecv(old.recv());
        assertThat(far.test(request)).as("after a second close of the predecessor").isEqualTo(NetTransport.PENDING);
    }

    @Test
    void postingAndTestingAllocatesNothing() {
        final ThreadMXBean threadBean = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        final Line line = line(near, far, 4096);
        final NrtTensor scratch = tensor(4);
        final long scratchMr = far.regMr(line.recv(), scratch.address(), 4, Placement.HOST);
        cycles(line, scratch, scratchMr, 50_000);
        final int count = 100_000;
        final long before = threadBean.getThreadAllocatedBytes(Thread.currentThread().getId());
        cycles(line, scratch, scratchMr, count);
        final long bytes = threadBean.getThreadAllocatedBytes(Thread.currentThread().getId()) - before;
        assertThat((double) bytes / count).as("bytes allocated per cycle").isLessThan(1.0);
    }

    private void cycles(final Line line, final NrtTensor scratch, final long scratchMr, final int count) {
        for (int i = 0; i < count; i++) {
            final long receive = line.receive(8, 8);
            final long send = line.send(0, 8);
            final long pending = line.receive(16, 8);
            final long flush = far.iflush(line.recv(), scratch.address(), 4, scratchMr);
            if (near.test(send) != 8 || far.test(receive) != 8 || far.test(flush) != 4
                || far.test(pending) != NetTransport.PENDING || near.progress() != 0) {
                throw new AssertionError("cycle " + i);
            }
            if (near.test(line.send(0, 8)) != 8 || far.test(pending) != 8) {
                throw new AssertionError("second half of cycle " + i);
            }
        }
    }

    @Test
    @Tag("slow")
    @Timeout(value = 5, unit = TimeUnit.MINUTES) // touching fresh memory is slow on a busy machine
    void messagesBeyond2GiB() {
        final long sizeBytes = (5L << 29) + 12_345; // 2.5 GiB
        final OperatingSystemMXBean system = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        assumeTrue(system.getFreeMemorySize() > 6L << 30, "less than 6 GiB of memory is free");
        final Line line = line(near, far, sizeBytes);
        final int shift = 1000; // the ends cross the segments of their views at different bytes of the message
        final int step = 60 * MIB + 8;
        for (long at = 0; at + 8 <= sizeBytes - shift; at += step) {
            line.source().view(at, 8).putLong(0, at ^ 0x5DEECE66DL);
        }
        for (long edge = 1L << 30; edge < sizeBytes; edge += 1L << 30) {
            line.source().write(edge - 2 * shift, pattern((int) (edge >>> 30), 4 * shift));
        }
        line.source().write(sizeBytes - shift - 1, new byte[] {99});
        final long lengthBytes = sizeBytes - shift - 5;
        final long receive = line.receive(shift + 5, lengthBytes);
        final long send = line.send(5, lengthBytes);
        assertThat(finish(far, receive)).isEqualTo(lengthBytes);
        assertThat(finish(near, send)).isEqualTo(lengthBytes);
        for (long at = step; at + 8 <= sizeBytes - shift; at += step) {
            assertThat(line.target().view(at + shift, 8).getLong(0)).as("at %d", at).isEqualTo(at ^ 0x5DEECE66DL);
        }
        for (long edge = 1L << 30; edge < sizeBytes; edge += 1L << 30) {
            assertThat(line.target().read(edge - shift, 4 * shift)).as("around %d", edge)
                .isEqualTo(pattern((int) (edge >>> 30), 4 * shift));
        }
        assertThat(line.target().read(sizeBytes - 1, 1)).containsExactly(99);
        assertThat(line.target().read(0, shift + 5)).containsOnly(0);
    }

    @Test
    void closingUnderALongCopyEndsTheNeedForProgress() {
        for (final boolean senderCloses : new boolean[] {true, false}) {
            final Line line = line(near, far, 8 * MIB);
            line.send(0, 8 * MIB);
            line.receive(0, 8 * MIB);
            assertThat(far.progress()).isEqualTo(1);
            assertThat(near.needsProgress()).isTrue();
            if (senderCloses) {
                near.closeSend(line.send());
            } else {
                far.closeRecv(line.recv());
            }
            assertThat(List.of(near.needsProgress(), far.needsProgress())).containsOnly(false);
            assertThat(near.progress()).isZero();
        }
    }

    @Test
    void twoThreadsAtBothEndsOfFourChannels() throws Exception {
        final int channels = 4;
        final int messages = 100_000;
        final Line[] lines = new Line[channels];
        for (int c = 0; c < channels; c++) {
            lines[c] = line(near, far, 64 * 4096);
        }
        final Future<?> sending = threads.submit(asTask(() -> hammer(lines, messages, true)));
        final Future<?> receiving = threads.submit(asTask(() -> hammer(lines, messages, false)));
        sending.get(5, TimeUnit.MINUTES); // nothing moves: that is found out before
        receiving.get(5, TimeUnit.MINUTES);
    }

    private static Callable<Void> asTask(final Runnable task) {
        return () -> {
            task.run();
            return null;
        };
    }

    /** Streams checksummed messages of 16 to 4096 bytes over all lines, a window of 64 on each. */
    private static void hammer(final Line[] lines, final int messages, final boolean sending) {
        final int window = 64;
        final long[][] requests = new long[lines.length][window];
        final int[] posted = new int[lines.length];
        final int[] finished = new int[lines.length];
        final ByteBuffer[] views = new ByteBuffer[lines.length];
        for (int c = 0; c < lines.length; c++) {
            views[c] = (sending ? lines[c].source() : lines[c].target()).view(0, window * 4096).order(ByteOrder.LITTLE_ENDIAN);
        }
        int open = lines.length;
        int idle = 0;
        long lastMoveNs = System.nanoTime();
        while (open > 0) {
            final long movedBeforeNs = lastMoveNs;
            for (int c = 0; c < lines.length; c++) {
                final int slot = posted[c] % window;
                if (posted[c] < messages && posted[c] - finished[c] < window) {
                    if (sending) {
                        write(views[c], slot * 4096, c, posted[c]);
                    }
                    final long request = sending
                        ? lines[c].send(slot * 4096L, lengthOf(c, posted[c])) : lines[c].receive(slot * 4096L, 4096);
                    if (request != NetTransport.NOT_YET) {
                        requests[c][slot] = request;
                        posted[c]++;
                        lastMoveNs = System.nanoTime();
                    }
                }
                if (finished[c] < posted[c]) {
                    final int at = finished[c] % window;
                    final long size = (sending ? lines[c].from() : lines[c].to()).test(requests[c][at]);
                    if (size != NetTransport.PENDING) {
                        if (!sending) {
                            check(views[c], at * 4096, c, finished[c], size);
                        }
                        finished[c]++;
                        open -= finished[c] == messages ? 1 : 0;
                        lastMoveNs = System.nanoTime();
                    }
                }
            }
            if (System.nanoTime() - lastMoveNs > DEADLINE_NS) {
                throw new AssertionError("nothing moves: posted " + Arrays.toString(posted));
            }
            idle = movedBeforeNs == lastMoveNs ? idle + 1 : 0;
            if (idle > 0) {
                Spin.pause(idle);
            }
        }
    }

    private static int lengthOf(final int channel, final int message) {
        return 16 + 8 * ((message * 31 + channel * 7) % 511);
    }

    private static void write(final ByteBuffer view, final int offset, final int channel, final int message) {
        final int lengthBytes = lengthOf(channel, message);
        long sum = 0;
        for (int i = 8; i < lengthBytes; i += 8) {
            final long word = ((long) channel << 48 | (long) message << 16 | i) * 0x9E3779B97F4A7C15L;
            view.putLong(offset + i, word);
            sum += word;
        }
        view.putLong(offset, sum ^ message);
    }

    private static void check(final ByteBuffer view, final int offset, final int channel, final int message, final long size) {
        if (size != lengthOf(channel, message)) {
            throw new AssertionError("message " + message + " of channel " + channel + " has " + size + " bytes");
        }
        long sum = 0;
        for (int i = 8; i < size; i += 8) {
            sum += view.getLong(offset + i);
        }
        final long first = ((long) channel << 48 | (long) message << 16 | 8) * 0x9E3779B97F4A7C15L;
        if ((sum ^ message) != view.getLong(offset) || view.getLong(offset + 8) != first) {
            throw new AssertionError("message " + message + " of channel " + channel + " arrived damaged");
        }
    }

    @Test
    void twoTestersFinishLongCopiesTogether() throws Exception {
        final int size = 24 * MIB;
        final Line line = line(near, far, size);
        for (int round = 0; round < 10; round++) {
            final byte[] bytes = pattern(round, size);
            line.source().write(0, bytes);
            final long send = line.send(0, size);
            final long receive = line.receive(0, size);
            final Future<Long> sent = threads.submit(() -> finish(near, send));
            final Future<Long> received = threads.submit(() -> finish(far, receive));
            assertThat(sent.get(120, TimeUnit.SECONDS)).isEqualTo(size);
            assertThat(received.get(120, TimeUnit.SECONDS)).isEqualTo(size);
            assertThat(line.target().read(0, size)).isEqualTo(bytes);
        }
    }

    @Test
    void closingUnderTheTestersEndsThem() throws Exception {
        for (int round = 0; round < 20; round++) {
            final Line line = line(near, far, 16 * MIB);
            final long send = line.send(0, 16 * MIB);
            line.receive(0, 16 * MIB);
            final Future<String> sent = threads.submit(() -> {
                try {
                    return "sent " + finish(near, send);
                } catch (final NrtException ex) {
                    return ex.getMessage();
                }
            });
            if (round % 2 == 0) {
                far.progress();
            }
            far.closeRecv(line.recv());
            line.target().close(); // a sanitizer's or the allocator's chance to see whoever still writes there
            assertThat(sent.get(120, TimeUnit.SECONDS)).containsAnyOf("sent 16777216", "the peer");
            near.closeSend(line.send());
        }
    }

    private static byte[] pattern(final int seed, final int lengthBytes) {
        final byte[] bytes = new byte[lengthBytes];
        new Random(seed).nextBytes(bytes);
        return bytes;
    }
}
