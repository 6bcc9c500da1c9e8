package io.nrt4j.sendrecv;

import static org.assertj.core.api.Assertions.assertThat;

import io.nrt4j.NrtConfig;
import io.nrt4j.NrtSetting;
import io.nrt4j.NrtStatus;
import io.nrt4j.NrtTensor;
import io.nrt4j.testing.Await;
import io.nrt4j.testing.ChildJvm;
import io.nrt4j.testing.FileLimit;
import io.nrt4j.testing.NeedsLibfabric;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Collectors;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The limit of file descriptors is reached while 160 communicators are connected through the public API, to 16 engines. */
@Tag("slow")
@Timeout(120)
class FileLimitEngineTest {
    private static final Duration LIMIT = Duration.ofSeconds(30);
    private static final String PROVIDER = "tcp;ofi_rxm";
    private static final int PEERS = 16;
    private static final int FIRST_PEER_LNC = 16;
    private static final int COMMS = 160;
    /** A control connection and the provider's own for each peer would be twice as many, and the store has connections, too. */
    private static final int SPARE = 20;
    private static final int LENGTH = 20_000;

    private final EngineRig rig = new EngineRig();

    @BeforeAll
    static void libfabricIsThere() {
        NeedsLibfabric.assume();
    }

    @AfterEach
    void closeAll() {
        rig.close();
    }

    private static NrtConfig.Builder overTcp(final NrtConfig.Builder builder) {
        return builder.transport("libfabric").set(NrtSetting.LIBFABRIC_PROVIDER, PROVIDER)
            .set(NrtSetting.LIBFABRIC_ADDRESS, NeedsLibfabric.addressOf(PROVIDER));
    }

    /** One end of a communicator: connects, and then sends or receives one message after the other, each with its number in it. */
    private static final class End implements AutoCloseable {
        private final NrtAsyncSendRecv engine;
        private final int lnc;
        private final int peerLnc;
        private final boolean sends;
        private final NrtTensor tensor = NrtTensor.allocate(LENGTH);
        private final SendRecvRequest request = new SendRecvRequest();
        private SendRecvComm comm;
        private boolean posted;
        private long messages;

        End(final NrtAsyncSendRecv engine, final int lnc, final int peerLnc, final boolean sends) {
            this.engine = engine;
            this.lnc = lnc;
            this.peerLnc = peerLnc;
            this.sends = sends;
            begin();
        }

        void begin() {
            comm = new SendRecvComm();
            posted = false;
            messages = 0;
            final NrtStatus status = sends ? engine.connect(EngineRig.LOCALHOST, peerLnc, lnc, comm)
                : engine.accept(EngineRig.LOCALHOST, peerLnc, lnc, comm);
            assertThat(status).as(engine.lastError()).isEqualTo(NrtStatus.SUCCESS);
        }

        boolean connected() {
            return engine.testComm(comm) == NrtStatus.SUCCESS && comm.connected();
        }

        boolean failed() {
            return comm.failure().isPresent();
        }

        /** Moves the present message on; one that is received must have the number that is due. */
        NrtStatus step() {
            if (!posted) {
                if (sends) {
                    tensor.view(0, Long.BYTES).putLong(0, messages);
                    tensor.view(LENGTH - Long.BYTES, Long.BYTES).putLong(0, messages);
                }
                final NrtStatus status = sends ? engine.sendTensor(tensor, 0, LENGTH, comm, request)
                    : engine.recvTensor(tensor, 0, LENGTH, comm, request);
                posted = status == NrtStatus.SUCCESS;
                return status;
            }
            final NrtStatus status = engine.testRequest(request);
            if (status == NrtStatus.SUCCESS && request.done()) {
                posted = false;
                if (!sends) {
                    assertThat(tensor.view(0, Long.BYTES).getLong(0)).isEqualTo(messages);
                    assertThat(tensor.view(LENGTH - Long.BYTES, Long.BYTES).getLong(0)).isEqualTo(messages);
                }
                messages++;
            }
            return status;
        }

        @Override
        public void close() {
            tensor.close();
        }

        @Override
        public String toString() {
            return comm + " " + comm.failure();
        }
    }

    /** Half of the ends of an LNC and its peer send: those of an even number. */
    private static boolean firstSends(final int number) {
        return number % 2 == 0;
    }

    /** The other process: an engine for each peer, all of whose communicators connect, as often as they fail, and go on for ever. */
    public static final class Peers {
        private Peers() {
        }

        /**
         * Runs until it is killed.
         *
         * @param args port and lock folder.
         */
        public static void main(final String[] args) {
            final NrtConfig config = overTcp(NrtConfig.builder(Map.of(), Map.of()).asyncSendRecvEnabled(true)
                .bootstrapPort(Integer.parseInt(args[0])).kvLockDirectory(Path.of(args[1])).kvBindAddress(EngineRig.LOCALHOST)).build();
            final List<NrtAsyncSendRecv> engines = new ArrayList<>();
            for (int i = 0; i < PEERS; i++) {
                engines.add(new NrtAsyncSendRecv(config));
                EngineRig.init(engines.get(i), FIRST_PEER_LNC + i);
            }
            final List<End> ends = new ArrayList<>();
            for (int i = 0; i < COMMS; i++) {
                ends.add(new End(engines.get(i % PEERS), FIRST_PEER_LNC + i % PEERS, ownLnc(i), !firstSends(i / PEERS)));
            }
            System.out.println("ready");
            while (true) {
                for (final End end : ends) {
                    if (end.failed() || end.connected() && end.step() != NrtStatus.SUCCESS) {
                        System.out.println("again: " + end + ": " + end.engine.lastError());
                        end.begin();
                    }
                }
                LockSupport.parkNanos(500_000);
            }
        }
    }

    /** An LNC has 128 communicators at most. */
    private static int ownLnc(final int number) {
        return number / PEERS % 4 / 2;
    }

    @Test
    void theLimitReachedWhileConnecting160FailsWhatItMeetsAndNothingElse() {
        final List<End> ends = new ArrayList<>();
        try (ChildJvm child = ChildJvm.startUnder(NeedsLibfabric.SMALL_BUFFERS, List.of("-Xmx256m"), Peers.class,
            Integer.toString(rig.port()), rig.lockFolder().toString())) {
            child.awaitLine("ready", LIMIT);
            final NrtAsyncSendRecv engine = rig.add(new NrtAsyncSendRecv(rig.config(FileLimitEngineTest::overTcp)));
            EngineRig.init(engine, 0);
            EngineRig.init(engine, 1);
            FileLimit.whileOnly(SPARE, () -> {
                for (int i = 0; i < COMMS; i++) {
                    ends.add(new End(engine, ownLnc(i), FIRST_PEER_LNC + i % PEERS, firstSends(i / PEERS)));
                }
                Await.until(LIMIT, ends::toString, () -> {
                    final List<End> connected = ends.stream().filter(End::connected).toList();
                    return !connected.isEmpty() && ends.stream().filter(FileLimitEngineTest::metTheLimit).count() >= COMMS / 2;
                });
                exchange(ends.stream().filter(End::connected).toList());
            }, FileLimitEngineTest.class, NrtAsyncSendRecv.class);
            assertThat(ends).as("the rest").anyMatch(End::connected);
            // What was begun under the limit may still have to fail.
            Await.until(LIMIT, () -> ends + "; " + child.lines(), () -> {
                ends.stream().filter(FileLimitEngineTest::metTheLimit).forEach(End::begin);
                return ends.stream().allMatch(End::connected);
            });
            exchange(ends);
        } finally {
            ends.forEach(End::close);
        }
    }

    /** Whether it has failed; there is one reason only. */
    private static boolean metTheLimit(final End end) {
        if (end.failed()) {
            assertThat(end.toString()).contains("Too many open files");
        }
        return end.failed();
    }

    /** Two more messages on each. */
    private static void exchange(final List<End> ends) {
        final List<End> busy = new ArrayList<>(ends);
        final Map<End, Long> enough = ends.stream().collect(Collectors.toMap(end -> end, end -> end.messages + 2));
        Await.until(LIMIT, busy::toString, () -> {
            for (final End end : busy) {
                assertThat(end.step()).as("%s: %s", end, end.engine.lastError()).isEqualTo(NrtStatus.SUCCESS);
            }
            busy.removeIf(end -> end.messages == enough.get(end));
            return busy.isEmpty();
        });
    }
}
