package io.nrt4j.sendrecv;

import static org.assertj.core.api.Assertions.assertThat;

import io.nrt4j.NrtConfig;
import io.nrt4j.NrtSetting;
import io.nrt4j.NrtStatus;
import io.nrt4j.NrtTensor;
import io.nrt4j.testing.Await;
import io.nrt4j.testing.ChildJvm;
import io.nrt4j.testing.NeedsLibfabric;
import java.lang.ref.WeakReference;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.function.Function;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The public API over libfabric: between two engines of this JVM, and with a process that is killed. */
@Tag("slow")
@Timeout(200)
class FabricEngineTest {
    private static final int MIB = 1 << 20;
    private static final int PENDING = Communicator.MAX_PENDING_REQUESTS;
    private static final int PAIRS = 8;
    private static final int[] SIZES = {0, 1, 8, 100, 2048, 2049, 4096, 8192, 8193, 65_536, 65_537, 300_000};
    private static final int COLLECTIONS = 20;
    private static final int COLLECTED_BYTES = 4 * MIB;
    private static final Duration LIMIT = Duration.ofSeconds(20);
    /** For a JVM that starts where the processors are shared. */
    private static final Duration START_LIMIT = Duration.ofSeconds(60);

    private final EngineRig rig = new EngineRig();
    private final List<NrtTensor> tensors = new ArrayList<>();

    @BeforeAll
    static void libfabricIsThere() {
        NeedsLibfabric.assume();
    }

    @AfterEach
    void closeAll() {
        rig.close();
        tensors.forEach(NrtTensor::close);
    }

    private NrtAsyncSendRecv engine(final String provider, final int... lncs) {
        final NrtAsyncSendRecv engine = rig.add(new NrtAsyncSendRecv(rig.config(builder -> over(builder, provider))));
        for (final int lnc : lncs) {
            EngineRig.init(engine, lnc);
        }
        return engine;
    }

    private static NrtConfig.Builder over(final NrtConfig.Builder builder, final String provider) {
        return builder.transport("libfabric").set(NrtSetting.LIBFABRIC_PROVIDER, provider)
            .set(NrtSetting.LIBFABRIC_ADDRESS, NeedsLibfabric.addressOf(provider));
    }

    private NrtTensor tensor(final long bytes) {
        final NrtTensor tensor = NrtTensor.allocate(bytes);
        tensors.add(tensor);
        return tensor;
    }

    /** The messages of one pair, all in flight at once. */
    private final class Traffic {
        private final EngineRig.Pair pair;
        private final Random random;
        private final int[] sizes = new int[PENDING];
        private final NrtTensor hot = tensor(SIZES.length * 400_000L);
        private final NrtTensor sink = tensor(SIZES.length * 400_000L);
        private final byte[][] contents = new byte[PENDING][];
        private final NrtTensor[] targets = new NrtTensor[PENDING];
        private final SendRecvRequest[] sends = new SendRecvRequest[PENDING];
        private final SendRecvRequest[] receives = new SendRecvRequest[PENDING];

        Traffic(final EngineRig.Pair pair, final int seed) {
            this.pair = pair;
            random = new Random(seed);
            for (int i = 0; i < PENDING; i++) {
                sizes[i] = i == 0 ? MIB : SIZES[random.nextInt(SIZES.length)];
                contents[i] = new byte[sizes[i]];
                random.nextBytes(contents[i]);
                if (sizes[i] >= 8) {
                    ByteBuffer.wrap(contents[i]).putInt(seed).putInt(i);
                }
                sends[i] = new SendRecvRequest();
                receives[i] = new SendRecvRequest();
            }
        }

        /** From tensors that are registered already and from new ones, in turn and at random. */
        void send(final NrtAsyncSendRecv engine) {
            long at = 0;
            for (int i = 0; i < PENDING; i++) {
                final boolean fits = at + sizes[i] <= hot.sizeBytes();
                final boolean cold = !fits || random.nextInt(3) == 0;
                final NrtTensor from = cold ? tensor(Math.max(1, sizes[i])) : hot;
                final long offset = cold ? 0 : at;
                at += cold ? 0 : sizes[i];
                from.write(offset, contents[i]);
                assertThat(engine.sendTensor(from, offset, sizes[i], pair.send(), sends[i])).as(engine.lastError())
                    .isEqualTo(NrtStatus.SUCCESS);
            }
        }

        void receive(final NrtAsyncSendRecv engine) {
            for (int i = 0; i < PENDING; i++) {
                targets[i] = tensor(sizes[i] + 1L); // longer than the message
                assertThat(engine.recvTensor(targets[i], 0, sizes[i] + 1L, pair.recv(), receives[i])).as(engine.lastError())
                    .isEqualTo(NrtStatus.SUCCESS);
            }
            assertThat(engine.recvTensor(sink, 0, 1, pair.recv(), new SendRecvRequest())).isEqualTo(NrtStatus.RESOURCE);
        }

        void check() {
            for (int i = 0; i < PENDING; i++) {
                assertThat(receives[i].size()).as("message %d of %s", i, pair).isEqualTo(sizes[i]);
                assertThat(targets[i].read(0, sizes[i])).as("message %d of %s", i, pair).isEqualTo(contents[i]);
                assertThat(targets[i].read(sizes[i], 1)).as("behind message %d of %s", i, pair).containsExactly(0);
            }
            assertThat(pair.send().communicator().requestsInFlight()).isZero();
            assertThat(pair.recv().communicator().requestsInFlight()).isZero();
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"tcp;ofi_rxm", "shm"})
    void eightPairsWith128InFlightEachKeepOrderSizesAndContents(final String provider) {
        final NrtAsyncSendRecv a = engine(provider, 0);
        final NrtAsyncSendRecv b = engine(provider, 1);
        final List<Traffic> all = new ArrayList<>();
        for (int i = 0; i < PAIRS; i++) {
            // Both directions.
            all.add(new Traffic(i % 2 == 0 ? EngineRig.connect(a, 0, b, 1) : EngineRig.connect(b, 1, a, 0), i));
        }
        for (int i = 0; i < PAIRS; i++) {
            final NrtAsyncSendRecv from = i % 2 == 0 ? a : b;
            final NrtAsyncSendRecv to = i % 2 == 0 ? b : a;
            if (i % 4 < 2) {
                all.get(i).send(from);
                all.get(i).receive(to);
            } else {
                all.get(i).receive(to);
                all.get(i).send(from);
            }
        }
        for (int i = 0; i < PAIRS; i++) {
            for (int j = 0; j < PENDING; j++) {
                EngineRig.awaitDone(i % 2 == 0 ? b : a, all.get(i).receives[j]);
                EngineRig.awaitDone(i % 2 == 0 ? a : b, all.get(i).sends[j]);
            }
        }
        assertThat(a.flush(0)).as(a.lastError()).isEqualTo(NrtStatus.SUCCESS);
        assertThat(b.flush(1)).as(b.lastError()).isEqualTo(NrtStatus.SUCCESS);
        all.forEach(Traffic::check);
        assertThat(a.close(0)).as(a.lastError()).isEqualTo(NrtStatus.SUCCESS);
        assertThat(b.close(1)).as(b.lastError()).isEqualTo(NrtStatus.SUCCESS);
        // Nothing of it stands in the way of another beginning.
        EngineRig.init(a, 0);
        EngineRig.init(b, 1);
        final EngineRig.Pair again = EngineRig.connect(a, 0, b, 1);
        final SendRecvRequest send = new SendRecvRequest();
        final SendRecvRequest receive = new SendRecvRequest();
        final NrtTensor eight = tensor(8);
        assertThat(a.sendTensor(eight, 0, 8, again.send(), send)).isEqualTo(NrtStatus.SUCCESS);
        assertThat(b.recvTensor(tensor(8), 0, 8, again.recv(), receive)).isEqualTo(NrtStatus.SUCCESS);
        assertThat(EngineRig.awaitDone(b, receive)).isEqualTo(8);
        assertThat(EngineRig.awaitDone(a, send)).isEqualTo(8);
    }

    /** Whoever posts keeps the request only: the tensor is dropped, and collected as soon as that is allowed. */
    @ParameterizedTest
    @ValueSource(strings = {"tcp;ofi_rxm", "shm"})
    void tensorsDroppedAndCollectedInFlightDisturbNothing(final String provider) {
        final NrtAsyncSendRecv a = engine(provider, 0);
        final NrtAsyncSendRecv b = engine(provider, 1);
        final EngineRig.Pair sourceDropped = EngineRig.connect(a, 0, b, 1);
        final EngineRig.Pair targetDropped = EngineRig.connect(a, 0, b, 1);
        final NrtTensor kept = tensor(COLLECTED_BYTES);
        final List<WeakReference<NrtTensor>> dropped = new ArrayList<>();
        final byte[] bytes = new byte[COLLECTED_BYTES];
        for (int round = 0; round < COLLECTIONS; round++) {
            final int size = round % 2 == 0 ? COLLECTED_BYTES : 3000;
            new Random(round).nextBytes(bytes);
            final SendRecvRequest[] sends = {new SendRecvRequest(), new SendRecvRequest()};
            final SendRecvRequest[] receives = {new SendRecvRequest(), new SendRecvRequest()};
            dropped.add(postDropped(round, bytes, tensor -> a.sendTensor(tensor, 0, size, sourceDropped.send(), sends[0])));
            dropped.add(postDropped(round, new byte[COLLECTED_BYTES],
                tensor -> b.recvTensor(tensor, 0, size, targetDropped.recv(), receives[1])));
            // What is freed is given to these, in which nothing may change.
            final List<ByteBuffer> churn = churn(bytes);
            System.gc();
            churn.addAll(churn(bytes));
            assertThat(b.recvTensor(kept, 0, size, sourceDropped.recv(), receives[0])).isEqualTo(NrtStatus.SUCCESS);
            assertThat(EngineRig.awaitDone(b, receives[0])).isEqualTo(size);
            assertThat(EngineRig.awaitDone(a, sends[0])).isEqualTo(size);
            assertThat(kept.read(0, size)).as("round %d", round).isEqualTo(Arrays.copyOf(bytes, size));
            kept.write(0, new byte[size]);
            assertThat(a.sendTensor(kept, 0, size, targetDropped.send(), sends[1])).isEqualTo(NrtStatus.SUCCESS);
            assertThat(EngineRig.awaitDone(b, receives[1])).isEqualTo(size);
            assertThat(EngineRig.awaitDone(a, sends[1])).isEqualTo(size);
            assertThat(churn).as("round %d", round).allSatisfy(
                buffer -> assertThat(buffer.mismatch(ByteBuffer.wrap(bytes, 0, buffer.capacity()))).isEqualTo(-1));
        }
        Await.until(LIMIT, "an end of the tensors that were dropped", () -> {
            System.gc();
            return dropped.stream().allMatch(reference -> reference.get() == null);
        });
    }

    /**
     * Posts with a tensor that nobody keeps or closes, of a direct buffer's memory or its own. A method of its own, so that no frame
     * refers to the tensor when it has returned.
     */
    private static WeakReference<NrtTensor> postDropped(
        final int round, final byte[] bytes, final Function<NrtTensor, NrtStatus> post) {
        final NrtTensor tensor = round % 4 < 2 ? NrtTensor.wrap(ByteBuffer.allocateDirect(bytes.length)) : NrtTensor.allocate(bytes.length);
        tensor.write(0, bytes);
        assertThat(post.apply(tensor)).isEqualTo(NrtStatus.SUCCESS);
        return new WeakReference<>(tensor);
    }

    private static List<ByteBuffer> churn(final byte[] bytes) {
        final List<ByteBuffer> churn = new ArrayList<>();
        for (int i = 0; i <= 32; i++) {
            churn.add(ByteBuffer.allocateDirect(i == 32 ? COLLECTED_BYTES : 64 << 10));
            churn.get(i).put(0, bytes, 0, churn.get(i).capacity());
        }
        return churn;
    }

    /** The other process: LNC 1, posts 16 messages of a MiB, and tests them until it is killed. */
    public static final class Child {
        private Child() {
        }

        /**
         * Runs the child.
         *
         * @param args port, lock folder, provider, and whether it receives; for two receives only, its own LNC and their length, too.
         */
        public static void main(final String[] args) {
            final NrtConfig config = over(NrtConfig.builder(Map.of(), Map.of()).asyncSendRecvEnabled(true)
                .bootstrapPort(Integer.parseInt(args[0])).kvLockDirectory(Path.of(args[1])).kvBindAddress("127.0.0.1"), args[2]).build();
            final boolean receives = Boolean.parseBoolean(args[3]);
            final NrtAsyncSendRecv engine = new NrtAsyncSendRecv(config);
            final int lnc = args.length > 4 ? Integer.parseInt(args[4]) : 1;
            check(engine.init(lnc), engine);
            System.out.println("initialised");
            final SendRecvComm comm = new SendRecvComm();
            check(receives ? engine.accept(EngineRig.LOCALHOST, 0, lnc, comm) : engine.connect(EngineRig.LOCALHOST, 0, lnc, comm), engine);
            EngineRig.awaitConnected(engine, comm);
            final SendRecvRequest[] requests = new SendRecvRequest[args.length > 4 ? 2 : 16];
            final long length = args.length > 4 ? Long.parseLong(args[5]) : MIB;
            final NrtTensor tensor = NrtTensor.allocate(requests.length * length);
            for (int i = 0; i < requests.length; i++) {
                requests[i] = new SendRecvRequest();
                check(receives ? engine.recvTensor(tensor, i * length, length, comm, requests[i])
                    : engine.sendTensor(tensor, i * length, length, comm, requests[i]), engine);
            }
            System.out.println("posted");
            if (args.length > 4) {
                EngineRig.awaitDone(engine, requests[0]);
                for (int i = 0; i < 1000; i++) {
                    check(engine.testRequest(requests[1]), engine); // whoever polls announces
                }
                System.out.println("received");
            }
            while (true) {
                for (final SendRecvRequest request : requests) {
                    if (!request.done()) {
                        check(engine.testRequest(request), engine);
                    }
                }
                Thread.yield();
            }
        }

        private static void check(final NrtStatus status, final NrtAsyncSendRecv engine) {
            if (status != NrtStatus.SUCCESS) {
                throw new IllegalStateException(status + ": " + engine.lastError());
            }
        }
    }

    @ParameterizedTest
    @CsvSource({"tcp;ofi_rxm,true", "tcp;ofi_rxm,false", "shm,true", "shm,false"})
    void aKilledPeerFailsAllOfItsRequestsOnceAndNoOthers(final String provider, final boolean childReceives) {
        final NrtAsyncSendRecv engine = engine(provider, 0, 2);
        final NrtAsyncSendRecv other = engine(provider, 3);
        final EngineRig.Pair healthy = EngineRig.connect(engine, 0, other, 3);
        try (ChildJvm child = ChildJvm.start(List.of("-Xmx256m"), Child.class, Integer.toString(rig.port()),
            rig.lockFolder().toString(), provider, Boolean.toString(childReceives))) {
            final SendRecvComm comm = new SendRecvComm();
            assertThat(childReceives ? engine.connect(EngineRig.LOCALHOST, 1, 0, comm) : engine.accept(EngineRig.LOCALHOST, 1, 0, comm))
                .isEqualTo(NrtStatus.SUCCESS);
            EngineRig.awaitConnected(engine, comm);
            child.awaitLine("posted", LIMIT);
            final NrtTensor tensor = tensor((long) PENDING * MIB);
            final List<SendRecvRequest> pending = new ArrayList<>();
            for (int i = 0; i < PENDING; i++) {
                final SendRecvRequest request = new SendRecvRequest();
                final long at = (long) i * MIB;
                assertThat(childReceives ? engine.sendTensor(tensor, at, MIB, comm, request)
                    : engine.recvTensor(tensor, at, MIB, comm, request)).as(engine.lastError()).isEqualTo(NrtStatus.SUCCESS);
                pending.add(request);
            }
            assertThat(comm.communicator().requestsInFlight()).isEqualTo(PENDING);
            child.kill();
            final long killedNs = System.nanoTime();
            final int[] failed = new int[1];
            Await.until(Duration.ofSeconds(2), () -> pending.size() + " requests left in " + engine, () -> {
                pending.removeIf(request -> resolved(engine, request, failed));
                return pending.isEmpty();
            });
            System.out.printf("%s, %s killed: all of %d resolved %d ms after, %d of them failed%n", provider,
                childReceives ? "receiver" : "sender", PENDING, (System.nanoTime() - killedNs) / 1_000_000, failed[0]);
            assertThat(failed[0]).isBetween(PENDING - 16, PENDING);
            // A slot that came back twice would have thrown; all are there.
            assertThat(comm.communicator().freelist().size()).isEqualTo(PENDING);
            assertThat(comm.communicator().requestsInFlight()).isZero();
            final SendRecvRequest late = new SendRecvRequest();
            final NrtStatus posted = childReceives ? engine.sendTensor(tensor, 0, 8, comm, late)
                : engine.recvTensor(tensor, 0, 8, comm, late);
            assertThat(posted == NrtStatus.SUCCESS ? EngineRig.awaitFailure(engine, late) : posted).isEqualTo(NrtStatus.FAILURE);
            roundTrip(engine, other, healthy);
            roundTrip(engine, other, EngineRig.connect(engine, 2, other, 3));
        }
    }

    @Test
    @Timeout(300)
    void aCloseTowardsFivePeersThatStandStillTakesItsTimeLimitOnce() {
        final long length = 4L * MIB;
        final NrtAsyncSendRecv engine = engine("tcp;ofi_rxm", 0);
        final List<ChildJvm> children = new ArrayList<>();
        try {
            final NrtTensor tensor = tensor(length);
            final List<SendRecvComm> comms = new ArrayList<>();
            for (int lnc = 1; lnc <= 5; lnc++) {
                final ChildJvm child = ChildJvm.start(List.of("-Xmx64m"), Child.class, Integer.toString(rig.port()),
                    rig.lockFolder().toString(), "tcp;ofi_rxm", "true", Integer.toString(lnc), Long.toString(length));
                children.add(child);
                child.awaitLine("initialised", START_LIMIT);
                final SendRecvComm comm = new SendRecvComm();
                assertThat(engine.connect(EngineRig.LOCALHOST, lnc, 0, comm)).isEqualTo(NrtStatus.SUCCESS);
                comms.add(comm);
                EngineRig.awaitConnected(engine, comm);
                final SendRecvRequest first = new SendRecvRequest();
                assertThat(engine.sendTensor(tensor, 0, length, comm, first)).isEqualTo(NrtStatus.SUCCESS);
                EngineRig.awaitDone(engine, first);
                child.awaitLine("received", LIMIT); // so the second receive is announced, and its message goes at once
                child.freeze();
            }
            for (final SendRecvComm comm : comms) {
                assertThat(engine.sendTensor(tensor, 0, length, comm, new SendRecvRequest())).isEqualTo(NrtStatus.SUCCESS);
            }
            Await.until(LIMIT, () -> engine.context(0).transport().toString(),
                () -> engine.context(0).transport().toString().split(" 1 direct sends", -1).length == 6);
            final long startNs = System.nanoTime();
            assertThat(engine.close(0)).isEqualTo(NrtStatus.FAILURE);
            final long tookMs = (System.nanoTime() - startNs) / 1_000_000;
            System.out.println("closed towards five stopped peers in " + tookMs + " ms: " + engine.lastError());
            assertThat(tookMs).isLessThan(5500);
            assertThat(children).allMatch(ChildJvm::isAlive);
            assertThat(tensor.storage().toString()).as("the provider may still read it").contains(" 5 in use");
        } finally {
            children.forEach(ChildJvm::close);
        }
    }

    private static boolean resolved(final NrtAsyncSendRecv engine, final SendRecvRequest request, final int[] failed) {
        final NrtStatus status = engine.testRequest(request);
        if (status == NrtStatus.SUCCESS) {
            return request.done();
        }
        assertThat(status).as(engine.lastError()).isEqualTo(NrtStatus.FAILURE);
        // The provider may notice before the control socket does, and a write to that before a read.
        assertThat(engine.lastError()).contains("lnc 0 with 127.0.0.1 lnc 1")
            .containsPattern("the process at /127.0.0.1|the control connection with /127.0.0.1\\S* broke"
                + "|connection with the peer breaks|provider: ");
        assertThat(engine.testRequest(request)).isEqualTo(NrtStatus.INVALID_HANDLE);
        failed[0]++;
        return true;
    }

    private void roundTrip(final NrtAsyncSendRecv from, final NrtAsyncSendRecv to, final EngineRig.Pair pair) {
        for (final int size : new int[] {8, MIB}) {
            final NrtTensor source = tensor(size);
            final NrtTensor target = tensor(size);
            final byte[] bytes = new byte[size];
            new Random(size).nextBytes(bytes);
            source.write(0, bytes);
            final SendRecvRequest send = new SendRecvRequest();
            final SendRecvRequest receive = new SendRecvRequest();
            assertThat(from.sendTensor(source, 0, size, pair.send(), send)).as(from.lastError()).isEqualTo(NrtStatus.SUCCESS);
            assertThat(to.recvTensor(target, 0, size, pair.recv(), receive)).as(to.lastError()).isEqualTo(NrtStatus.SUCCESS);
            assertThat(EngineRig.awaitDone(to, receive)).isEqualTo(size);
            assertThat(EngineRig.awaitDone(from, send)).isEqualTo(size);
            assertThat(target.read(0, size)).isEqualTo(bytes);
        }
    }
}
