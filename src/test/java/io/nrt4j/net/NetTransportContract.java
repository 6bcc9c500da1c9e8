package io.nrt4j.net;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.nrt4j.NrtConfig;
import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.NrtTensor;
import io.nrt4j.Placement;
import io.nrt4j.testing.Spin;
import io.nrt4j.testing.Stopwatch;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/**
 * What every transport must do. A subclass says how to make one; nothing here assumes that anything completes at once: each wait
 * polls both ends until a deadline.
 */
public abstract class NetTransportContract {
    private static final int MIB = 1 << 20;
    private static final byte GUARD = (byte) 0xA5;

    /** Transport of the sending side, unless a test turns it round. */
    protected NetTransport near;
    /** Transport of the receiving side. */
    protected NetTransport far;

    private final List<NetTransport> transports = new ArrayList<>();
    private final List<NrtTensor> tensors = new ArrayList<>();

    /** A connected pair of communicators. */
    protected record Pair(NetTransport from, long send, NetTransport to, long recv) {
        /** Closes both ends. */
        public void close() {
            from.closeSend(send);
            to.closeRecv(recv);
        }
    }

    /** A tensor that is registered, whole or in part, for one end of a pair. */
    protected record Memory(NetTransport transport, long comm, boolean sending, NrtTensor tensor, long registration) {
        /** Posts once; may answer NOT_YET. */
        public long tryPost(final long offset, final long lengthBytes) {
            return sending
                ? transport.isend(comm, tensor.address() + offset, lengthBytes, registration)
                : transport.irecv(comm, tensor.address() + offset, lengthBytes, registration);
        }

        /** Ends the registration. */
        public void deregister() {
            transport.deregMr(comm, registration);
        }
    }

    /** For subclasses. */
    protected NetTransportContract() {
    }

    /** Makes a transport with this configuration; the suite closes it. */
    protected abstract NetTransport newTransport(NrtConfig config);

    /** Configuration of the transports. */
    protected NrtConfig config() {
        return NrtConfig.builder(Map.of(), Map.of()).build();
    }

    /** How long a wait may take before the test fails. */
    protected Duration patience() {
        return Duration.ofSeconds(60);
    }

    /** Whether a handle of a request that was tested done is recognised as such. */
    protected boolean recognisesFinishedRequests() {
        return true;
    }

    @BeforeEach
    void openTransports() {
        near = open();
        far = open();
    }

    @AfterEach
    void closeTransports() {
        transports.forEach(NetTransport::close);
        tensors.forEach(NrtTensor::close);
    }

    // ---- helpers, also for subclasses

    /** Opens a transport that is closed after the test. */
    protected final NetTransport open() {
        final NetTransport transport = newTransport(config());
        transports.add(transport);
        return transport;
    }

    /** Allocates a tensor that is closed after the test. */
    protected final NrtTensor tensor(final long sizeBytes) {
        final NrtTensor tensor = NrtTensor.allocate(sizeBytes);
        tensors.add(tensor);
        return tensor;
    }

    /** Waits until the condition holds, moving all transports on. */
    protected final void await(final String what, final BooleanSupplier condition) {
        final Stopwatch watch = Stopwatch.start();
        int rounds = 0;
        while (!condition.getAsBoolean()) {
            transports.forEach(NetTransport::progress);
            if (watch.isOver(patience())) {
                throw new AssertionError("waited " + patience().toMillis() + " ms for " + what + "; " + transports);
            }
            Spin.pause(rounds++);
        }
    }

    /** Connects near to far. */
    protected final Pair connect() {
        return connect(near, far);
    }

    /** Connects two transports. */
    protected final Pair connect(final NetTransport from, final NetTransport to) {
        final byte[] handle = new byte[NetTransport.HANDLE_BYTES];
        final long listen = to.listen(to.nicOf(1), handle);
        final Pair pair = connect(from, handle, to, listen);
        to.closeListen(listen);
        return pair;
    }

    /** Connects to an open listener. */
    protected final Pair connect(final NetTransport from, final byte[] handle, final NetTransport to, final long listen) {
        final long[] comms = new long[2];
        await("a connection", () -> {
            comms[0] = comms[0] == NetTransport.NOT_YET ? from.connect(from.nicOf(0), handle) : comms[0];
            comms[1] = comms[1] == NetTransport.NOT_YET ? to.accept(listen) : comms[1];
            return comms[0] != NetTransport.NOT_YET && comms[1] != NetTransport.NOT_YET;
        });
        return new Pair(from, comms[0], to, comms[1]);
    }

    /** Registers a whole tensor for the send end. */
    protected final Memory source(final Pair pair, final NrtTensor tensor) {
        return new Memory(pair.from(), pair.send(), true, tensor,
            pair.from().regMr(pair.send(), tensor.address(), tensor.sizeBytes(), Placement.HOST));
    }

    /** Registers a whole tensor for the receive end. */
    protected final Memory target(final Pair pair, final NrtTensor tensor) {
        return new Memory(pair.to(), pair.recv(), false, tensor,
            pair.to().regMr(pair.recv(), tensor.address(), tensor.sizeBytes(), Placement.HOST));
    }

    /** Posts, waiting for room. */
    protected final long post(final Memory memory, final long offset, final long lengthBytes) {
        final long[] request = new long[1];
        await("room for a post", () -> {
            request[0] = memory.tryPost(offset, lengthBytes);
            return request[0] != NetTransport.NOT_YET;
        });
        return request[0];
    }

    /** Waits for a request. */
    protected final long finish(final NetTransport transport, final long request) {
        final long[] size = new long[1];
        await("a request", () -> {
            size[0] = transport.test(request);
            return size[0] != NetTransport.PENDING;
        });
        return size[0];
    }

    /** Waits for a request that must fail. */
    protected final NrtException finishBadly(final NetTransport transport, final long request) {
        final NrtException ex = catchThrowableOfType(NrtException.class, () -> finish(transport, request));
        assertThat(ex).as("failure of a request").isNotNull();
        return ex;
    }

    /** Sends a few bytes over a pair and checks that they arrive. */
    protected final void assertWorks(final Pair pair, final int seed) {
        final byte[] bytes = pattern(seed, 1000);
        final NrtTensor sent = tensor(bytes.length);
        sent.write(0, bytes);
        final NrtTensor received = tensor(bytes.length);
        final Memory source = source(pair, sent);
        final Memory target = target(pair, received);
        final long receive = post(target, 0, bytes.length);
        final long send = post(source, 0, bytes.length);
        assertThat(finish(pair.to(), receive)).isEqualTo(bytes.length);
        assertThat(finish(pair.from(), send)).isEqualTo(bytes.length);
        assertThat(received.read(0, bytes.length)).isEqualTo(bytes);
        source.deregister();
        target.deregister();
    }

    /** Bytes that tell one message from another. */
    protected static byte[] pattern(final int seed, final int lengthBytes) {
        final byte[] bytes = new byte[lengthBytes];
        new Random(seed).nextBytes(bytes);
        return bytes;
    }

    private static void fill(final NrtTensor tensor, final byte value) {
        final byte[] bytes = new byte[Math.toIntExact(tensor.sizeBytes())];
        Arrays.fill(bytes, value);
        tensor.write(0, bytes);
    }

    private static void assertAll(final NrtTensor tensor, final long offset, final int lengthBytes, final byte value) {
        final byte[] expected = new byte[lengthBytes];
        Arrays.fill(expected, value);
        assertThat(tensor.read(offset, lengthBytes)).isEqualTo(expected);
    }

    private static NrtException refusal(final Runnable call) {
        final NrtException ex = catchThrowableOfType(NrtException.class, call::run);
        assertThat(ex).as("a refusal").isNotNull();
        assertThat(ex.getMessage()).isNotBlank();
        return ex;
    }

    // ---- connecting

    @Test
    void aHandleIs128BytesAndForeignBytesAreRefused() {
        final byte[] handle = new byte[NetTransport.HANDLE_BYTES];
        final long listen = far.listen(far.nicOf(0), handle);
        assertThat(listen).isNotEqualTo(NetTransport.NOT_YET);
        assertThat(handle).isNotEqualTo(new byte[NetTransport.HANDLE_BYTES]);
        refusal(() -> near.connect(near.nicOf(0), new byte[NetTransport.HANDLE_BYTES]));
        refusal(() -> near.connect(near.nicOf(0), pattern(7, NetTransport.HANDLE_BYTES)));
        refusal(() -> near.connect(near.nicOf(0), Arrays.copyOf(handle, NetTransport.HANDLE_BYTES - 1)));
        assertWorks(connect(near, handle, far, listen), 1);
    }

    @Test
    void connectsWhicheverSideComesFirst() {
        final byte[] first = new byte[NetTransport.HANDLE_BYTES];
        final long listenFirst = far.listen(far.nicOf(0), first);
        for (int i = 0; i < 100; i++) {
            assertThat(far.accept(listenFirst)).isEqualTo(NetTransport.NOT_YET);
        }
        assertWorks(connect(near, first, far, listenFirst), 1);

        final byte[] second = new byte[NetTransport.HANDLE_BYTES];
        final long listenSecond = far.listen(far.nicOf(0), second);
        long send = NetTransport.NOT_YET;
        for (int i = 0; i < 100 && send == NetTransport.NOT_YET; i++) {
            send = near.connect(near.nicOf(0), second);
            near.progress();
        }
        final long[] comms = {send, NetTransport.NOT_YET};
        await("the accept", () -> {
            comms[1] = comms[1] == NetTransport.NOT_YET ? far.accept(listenSecond) : comms[1];
            comms[0] = comms[0] == NetTransport.NOT_YET ? near.connect(near.nicOf(0), second) : comms[0];
            return comms[0] != NetTransport.NOT_YET && comms[1] != NetTransport.NOT_YET;
        });
        assertWorks(new Pair(near, comms[0], far, comms[1]), 2);
    }

    @Test
    void oneListenerTakesSeveralPeersInOrder() {
        final byte[] handle = new byte[NetTransport.HANDLE_BYTES];
        final long listen = far.listen(far.nicOf(0), handle);
        final List<Pair> pairs = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            pairs.add(connect(i == 1 ? open() : near, handle.clone(), far, listen));
        }
        far.closeListen(listen);
        for (int i = 0; i < pairs.size(); i++) {
            assertWorks(pairs.get(i), i);
        }
    }

    @Test
    void aStaleHandleIsClosed() {
        final byte[] handle = new byte[NetTransport.HANDLE_BYTES];
        final long listen = far.listen(far.nicOf(0), handle);
        final byte[] begun = handle.clone();
        final long early = near.connect(near.nicOf(0), begun);
        far.closeListen(listen);
        if (early == NetTransport.NOT_YET) {
            assertStale(begun);
        }
        assertStale(handle);
    }

    private void assertStale(final byte[] handle) {
        final NrtException ex = catchThrowableOfType(NrtException.class,
            () -> await("the refusal", () -> near.connect(near.nicOf(0), handle) != NetTransport.NOT_YET));
        assertThat(ex).as("a stale handle was connected").isNotNull();
        assertThat(ex.status()).isEqualTo(NrtStatus.CLOSED);
        assertThat(ex).hasMessageContaining("stale");
    }

    @Test
    void anAbandonedConnectIsNeverAccepted() {
        final byte[] handle = new byte[NetTransport.HANDLE_BYTES];
        final long listen = far.listen(far.nicOf(0), handle);
        final byte[] abandoned = handle.clone();
        assumeTrue(near.connect(near.nicOf(0), abandoned) == NetTransport.NOT_YET, "connects at once");
        near.abandonConnect(near.nicOf(0), abandoned);
        assertWorks(connect(near, handle, far, listen), 3);
        assertThat(far.accept(listen)).isEqualTo(NetTransport.NOT_YET);
    }

    // ---- order and sizes

    @Test
    void keepsTheOrderOfMixedSizesAlsoWhenSendsComeFirst() {
        final int count = 200;
        final Random random = new Random(42);
        final int[] sizes = new int[count];
        final int[] room = new int[count];
        final long[] at = new long[count + 1];
        for (int i = 0; i < count; i++) {
            sizes[i] = i % 25 == 0 ? 0 : i % 11 == 0 ? random.nextInt(8 * MIB + 1) : random.nextInt(64 << 10);
            sizes[i] = i == 33 ? 8 * MIB : sizes[i];
            room[i] = sizes[i] + random.nextInt(100);
            at[i + 1] = at[i] + room[i];
        }
        final Pair pair = connect();
        final NrtTensor sent = tensor(at[count] + 1);
        sent.write(0, pattern(1, Math.toIntExact(at[count])));
        final NrtTensor received = tensor(at[count] + 1);
        fill(received, GUARD);
        final Memory source = source(pair, sent);
        final Memory target = target(pair, received);
        final long[] sends = new long[count];
        final long[] receives = new long[count];
        int posted = 0;
        for (int i = 0; i < 40; i++) { // before any receive, as far as there is room
            sends[posted] = source.tryPost(at[posted], sizes[posted]);
            posted += sends[posted] == NetTransport.NOT_YET ? 0 : 1;
        }
        assertThat(posted).as("sends posted before any receive").isPositive();
        streamRest(source, target, sizes, room, at, sends, receives, posted);
        for (int i = 0; i < count; i++) {
            assertThat(received.read(at[i], sizes[i])).as("message %d of %d bytes", i, sizes[i]).isEqualTo(sent.read(at[i], sizes[i]));
            assertAll(received, at[i] + sizes[i], room[i] - sizes[i], GUARD);
        }
    }

    private void streamRest(
        final Memory source, final Memory target, final int[] sizes, final int[] room, final long[] at,
        final long[] sends, final long[] receives, final int sent) {
        final int count = sizes.length;
        final int[] next = {sent, 0, 0, 0}; // to send, to receive, send to finish, receive to finish
        await("200 messages", () -> {
            if (next[0] < count) {
                sends[next[0]] = source.tryPost(at[next[0]], sizes[next[0]]);
                next[0] += sends[next[0]] == NetTransport.NOT_YET ? 0 : 1;
            }
            if (next[1] < count) {
                receives[next[1]] = target.tryPost(at[next[1]], room[next[1]]);
                next[1] += receives[next[1]] == NetTransport.NOT_YET ? 0 : 1;
            }
            if (next[2] < next[0]) {
                final long size = source.transport().test(sends[next[2]]);
                if (size != NetTransport.PENDING) {
                    assertThat(size).isEqualTo(sizes[next[2]++]);
                }
            }
            if (next[3] < next[1]) {
                final long size = target.transport().test(receives[next[3]]);
                if (size != NetTransport.PENDING) {
                    assertThat(size).as("size of message %d", next[3]).isEqualTo(sizes[next[3]++]);
                }
            }
            return next[3] == count && next[2] == count;
        });
    }

    @Test
    void aShorterMessageCompletesWithItsRealSize() {
        for (final int lengthBytes : new int[] {0, 1, 4095, 3 * MIB}) {
            final Pair pair = connect();
            final NrtTensor sent = tensor(4 * MIB);
            sent.write(0, pattern(5, lengthBytes));
            final NrtTensor received = tensor(4 * MIB);
            fill(received, GUARD);
            final long receive = post(target(pair, received), 0, 4 * MIB);
            final long send = post(source(pair, sent), 0, lengthBytes);
            assertThat(finish(far, receive)).isEqualTo(lengthBytes);
            assertThat(finish(near, send)).isEqualTo(lengthBytes);
            assertThat(received.read(0, lengthBytes)).isEqualTo(pattern(5, lengthBytes));
            assertAll(received, lengthBytes, 4 * MIB - lengthBytes, GUARD);
        }
    }

    @Test
    void aLongerMessageFailsAtBothEndsAndTheCommunicatorGoesOn() {
        final Pair pair = connect();
        final NrtTensor sent = tensor(8 * MIB);
        final NrtTensor received = tensor(8 * MIB);
        fill(received, GUARD);
        final Memory source = source(pair, sent);
        final Memory target = target(pair, received);
        for (final int[] lengths : new int[][] {{1, 0}, {101, 100}, {5000, 4096}, {65537, 65536}, {8 * MIB, MIB}, {8 * MIB, 10}}) {
            final boolean sendFirst = lengths[1] % 2 == 0;
            final long early = sendFirst ? post(source, 0, lengths[0]) : 0;
            final long receive = post(target, 0, lengths[1]);
            final long send = sendFirst ? early : post(source, 0, lengths[0]);
            for (final NrtException ex : List.of(finishBadly(far, receive), finishBadly(near, send))) {
                assertThat(ex.status()).isEqualTo(NrtStatus.FAILURE);
                assertThat(ex).hasMessageContaining("" + lengths[0]).hasMessageContaining("" + lengths[1]);
            }
            assertAll(received, 0, 8 * MIB, GUARD);
            assertWorks(pair, lengths[0]);
        }
    }

    @Test
    void aMessageBeyondTheLimitIsRefused() {
        assumeTrue(near.maxMessageBytes() < Long.MAX_VALUE, "has no limit");
        final Pair pair = connect();
        final Memory source = source(pair, tensor(100));
        final Memory target = target(pair, tensor(100));
        refusal(() -> source.tryPost(0, near.maxMessageBytes() + 1));
        refusal(() -> target.tryPost(0, far.maxMessageBytes() + 1));
        refusal(() -> source.tryPost(0, -1));
        refusal(() -> target.tryPost(0, -1));
        assertWorks(pair, 1);
    }

    // ---- memory

    @Test
    void aRangeThatIsNotRegisteredIsRefused() {
        final Pair pair = connect();
        final Pair other = connect();
        final NrtTensor memory = tensor(4096);
        for (final Memory whole : List.of(source(pair, memory), target(pair, memory))) {
            refusal(() -> whole.tryPost(0, 4097));
            refusal(() -> whole.tryPost(4096, 1));
            refusal(() -> whole.tryPost(-1, 10));
            refusal(() -> whole.tryPost(1, 4096));
            refusal(() -> whole.tryPost(1_000_000, 0));
            refusal(() -> with(whole, 0).tryPost(0, 10));
            refusal(() -> with(whole, 0x123456789abcL).tryPost(0, 10));
            final Memory foreign = whole.sending() ? source(other, memory) : target(other, memory);
            refusal(() -> with(whole, foreign.registration()).tryPost(0, 10));
            whole.deregister();
            refusal(() -> whole.tryPost(0, 10));
            refusal(whole::deregister);
        }
        assertWorks(pair, 1);
    }

    private static Memory with(final Memory memory, final long registration) {
        return new Memory(memory.transport(), memory.comm(), memory.sending(), memory.tensor(), registration);
    }

    @Test
    void partOfATensorCanBeRegistered() {
        final Pair pair = connect();
        final NrtTensor sent = tensor(10_000);
        sent.write(0, pattern(1, 10_000));
        final NrtTensor received = tensor(10_000);
        fill(received, GUARD);
        final Memory source = new Memory(near, pair.send(), true, sent,
            near.regMr(pair.send(), sent.address() + 1000, 500, Placement.HOST));
        final Memory target = new Memory(far, pair.recv(), false, received,
            far.regMr(pair.recv(), received.address() + 7000, 500, Placement.HOST));
        refusal(() -> source.tryPost(999, 10));
        refusal(() -> source.tryPost(1491, 10));
        refusal(() -> target.tryPost(6999, 1));
        final long receive = post(target, 7100, 400);
        final long send = post(source, 1200, 300);
        assertThat(finish(far, receive)).isEqualTo(300);
        assertThat(finish(near, send)).isEqualTo(300);
        assertThat(received.read(7100, 300)).isEqualTo(sent.read(1200, 300));
        assertAll(received, 0, 7100, GUARD);
        assertAll(received, 7400, 2600, GUARD);
    }

    @Test
    void aRegistrationThatCannotBeIsRefused() {
        final Pair pair = connect();
        refusal(() -> near.regMr(pair.send(), 0, 10, Placement.HOST));
        refusal(() -> near.regMr(pair.send(), tensor(10).address(), 0, Placement.HOST));
        refusal(() -> near.regMr(pair.send(), tensor(10).address(), -1, Placement.HOST));
    }

    @Test
    void registrationsEndWithTheirCommunicator() {
        final Pair pair = connect();
        final Memory source = source(pair, tensor(10));
        final Memory target = target(pair, tensor(10));
        pair.close();
        refusal(source::deregister);
        refusal(target::deregister);
    }

    // ---- room

    @Test
    void noRoomIsNotYetAndLaterWorks() {
        final Pair pair = connect();
        final int most = 5000;
        final NrtTensor received = tensor(most + 1);
        final Memory target = target(pair, received);
        final List<Long> receives = new ArrayList<>();
        long last = target.tryPost(0, 1);
        while (last != NetTransport.NOT_YET && receives.size() < most) {
            receives.add(last);
            last = target.tryPost(receives.size(), 1);
        }
        assumeTrue(last == NetTransport.NOT_YET, "takes any number of receives");
        assertThat(receives.size()).as("requests of a communicator").isGreaterThanOrEqualTo(128);
        assertThat(target.tryPost(0, 1)).as("the second try without room").isEqualTo(NetTransport.NOT_YET);

        final NrtTensor sent = tensor(most + 1);
        sent.write(0, pattern(9, most));
        final Memory source = source(pair, sent);
        final int count = receives.size();
        for (int i = 0; i < count; i++) {
            final long send = post(source, i, 1);
            assertThat(finish(far, receives.get(i))).isEqualTo(1);
            assertThat(finish(near, send)).isEqualTo(1);
        }
        assertThat(received.read(0, count)).isEqualTo(sent.read(0, count));
        assertWorks(pair, 4);
    }

    @Test
    void bothDirectionsAtOnce() {
        final Pair there = connect(near, far);
        final Pair back = connect(far, near);
        final int count = 6;
        final int lengthBytes = 4 * MIB;
        final NrtTensor[] sent = {tensor((long) count * lengthBytes), tensor((long) count * lengthBytes)};
        final NrtTensor[] received = {tensor((long) count * lengthBytes), tensor((long) count * lengthBytes)};
        final List<Long> requests = new ArrayList<>();
        final List<NetTransport> owners = new ArrayList<>();
        final List<Memory> memories = new ArrayList<>();
        for (int d = 0; d < 2; d++) {
            sent[d].write(0, pattern(d, count * lengthBytes));
            memories.add(source(d == 0 ? there : back, sent[d]));
            memories.add(target(d == 0 ? there : back, received[d]));
        }
        for (int i = 0; i < count; i++) {
            for (final Memory memory : memories) {
                requests.add(post(memory, (long) i * lengthBytes, lengthBytes));
                owners.add(memory.transport());
            }
        }
        await("both directions", () -> {
            for (int i = requests.size() - 1; i >= 0; i--) {
                final long size = owners.get(i).test(requests.get(i));
                if (size != NetTransport.PENDING) {
                    assertThat(size).isEqualTo(lengthBytes);
                    requests.remove(i);
                    owners.remove(i);
                }
            }
            return requests.isEmpty();
        });
        for (int d = 0; d < 2; d++) {
            assertThat(received[d].read(0, count * lengthBytes)).isEqualTo(sent[d].read(0, count * lengthBytes));
        }
    }

    // ---- closing

    @Test
    void memoryIsNotTouchedAfterItsCommunicatorWasClosed() {
        for (final int tests : new int[] {0, 1, 7}) {
            final Pair pair = connect();
            final NrtTensor sent = tensor(32 * MIB);
            final NrtTensor received = NrtTensor.allocate(32 * MIB);
            final Memory source = source(pair, sent);
            final Memory target = target(pair, received);
            final long receive = post(target, 0, 32 * MIB);
            final long unmatched = post(target, 0, 32 * MIB);
            final long send = tests == 0 ? 0 : post(source, 0, 32 * MIB);
            for (int i = 0; i < tests; i++) {
                if (far.test(receive) != NetTransport.PENDING) {
                    break;
                }
            }
            assertThat(unmatched).isNotEqualTo(receive);
            far.closeRecv(pair.recv());
            fill(received, GUARD);
            assertThatThrownBy(() -> {
                if (send != 0) {
                    finish(near, send);
                }
                // A transport that buffers may take some more before it learns that the peer is gone.
                await("the refusal of a closed peer", () -> {
                    final long next = source.tryPost(0, 32 * MIB);
                    if (next != NetTransport.NOT_YET) {
                        finish(near, next);
                    }
                    return false;
                });
            }).isInstanceOf(NrtException.class);
            assertAll(received, 0, 32 * MIB, GUARD);
            received.close();
            near.closeSend(pair.send());
        }
    }

    @Test
    void aClosedSenderFailsPendingReceives() {
        final Pair pair = connect();
        final Memory target = target(pair, tensor(100));
        final long first = post(target, 0, 100);
        final long second = post(target, 0, 0);
        near.closeSend(pair.send());
        for (final long request : new long[] {first, second}) {
            finishBadly(far, request);
        }
        refusal(() -> await("the refusal of a post", () -> target.tryPost(0, 10) < 0));
        far.closeRecv(pair.recv());
    }

    @Test
    void aClosedReceiverFailsPendingSends() {
        final Pair pair = connect();
        final Memory source = source(pair, tensor(8 * MIB));
        final long send = post(source, 0, 8 * MIB);
        far.closeRecv(pair.recv());
        finishBadly(near, send);
        refusal(() -> await("the refusal of a post", () -> source.tryPost(0, 10) < 0));
    }

    @Test
    void whatWasMatchedBeforeTheSenderClosedStaysComplete() {
        final Pair pair = connect();
        final NrtTensor received = tensor(1000);
        final NrtTensor sent = tensor(1000);
        sent.write(0, pattern(8, 1000));
        final long receive = post(target(pair, received), 0, 1000);
        final long send = post(source(pair, sent), 0, 1000);
        assertThat(finish(far, receive)).isEqualTo(1000);
        assertThat(finish(near, send)).isEqualTo(1000);
        near.closeSend(pair.send());
        assertThat(received.read(0, 1000)).isEqualTo(pattern(8, 1000));
    }

    @Test
    void closesAreIdempotent() {
        final byte[] handle = new byte[NetTransport.HANDLE_BYTES];
        final long listen = far.listen(far.nicOf(0), handle);
        final Pair pair = connect(near, handle, far, listen);
        for (int i = 0; i < 2; i++) {
            far.closeListen(listen);
            near.closeSend(pair.send());
            far.closeRecv(pair.recv());
        }
        near.close();
        near.close();
        final NetTransport fresh = open();
        assertWorks(connect(fresh, far), 1);
    }

    @Test
    void aCloseMayBeBegunAndMayBeEndedWithoutTime() {
        final Pair pair = connect();
        final Memory target = target(pair, tensor(100));
        post(target, 0, 100);
        for (int i = 0; i < 2; i++) {
            far.beginClose(pair.recv());
            near.beginClose(pair.send());
        }
        final long deadlineNs = System.nanoTime();
        near.closeSend(pair.send(), deadlineNs); // it waits for nothing: there are no requests
        far.closeRecv(pair.recv());
        refusal(() -> far.regMr(pair.recv(), target.tensor().address(), 10, Placement.HOST));
        near.beginClose(pair.send());
        far.beginClose(pair.recv());
        near.closeSend(pair.send(), deadlineNs);
        far.closeRecv(pair.recv(), deadlineNs);
        assertWorks(connect(), 1);
    }

    @Test
    void aClosedCommunicatorTakesNothing() {
        final Pair pair = connect();
        final Memory source = source(pair, tensor(100));
        near.closeSend(pair.send());
        refusal(() -> source.tryPost(0, 10));
        refusal(() -> near.regMr(pair.send(), source.tensor().address(), 10, Placement.HOST));
    }

    // ---- flush and handles

    @Test
    void aFlushCompletes() {
        final Pair pair = connect();
        final NrtTensor scratch = tensor(4);
        final long registration = far.regMr(pair.recv(), scratch.address(), 4, Placement.HOST);
        for (int i = 0; i < 1000; i++) {
            final long[] flush = new long[1];
            await("room for a flush", () -> {
                flush[0] = far.iflush(pair.recv(), scratch.address(), 4, registration);
                return flush[0] != NetTransport.NOT_YET;
            });
            assertThat(finish(far, flush[0])).isNotNegative();
        }
        refusal(() -> far.iflush(pair.recv(), scratch.address(), 5, registration));
    }

    @Test
    void aFinishedRequestIsNeverTheNextOne() {
        assumeTrue(recognisesFinishedRequests(), "its requests are bare pointers");
        final Pair pair = connect();
        final Memory source = source(pair, tensor(100));
        final Memory target = target(pair, tensor(100));
        final long oldReceive = post(target, 0, 10);
        final long oldSend = post(source, 0, 10);
        finish(far, oldReceive);
        finish(near, oldSend);
        final long pending = post(target, 0, 10);
        refusal(() -> far.test(oldReceive));
        refusal(() -> near.test(oldSend));
        refusal(() -> near.test(pending));
        refusal(() -> near.test(0));
        refusal(() -> near.test(-1));
        refusal(() -> near.test(pair.send()));
        assertThat(far.test(pending)).isEqualTo(NetTransport.PENDING);
        final long send = post(source, 0, 7);
        assertThat(finish(far, pending)).isEqualTo(7);
        assertThat(finish(near, send)).isEqualTo(7);
    }
}
