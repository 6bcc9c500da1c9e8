package io.nrt4j.sendrecv;

import static org.assertj.core.api.Assertions.assertThat;

import io.nrt4j.NrtStatus;
import io.nrt4j.NrtTensor;
import io.nrt4j.testing.Await;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Many communicators at once, and the proof that they are paired one to one. */
@Tag("slow")
@Timeout(value = 8, unit = TimeUnit.MINUTES)
class ManyPairsTest {
    private static final int PAIRS = 64;
    private static final int ROUNDS = 200;

    private final EngineRig rig = new EngineRig();

    @AfterEach
    void closeAll() {
        rig.close();
    }

    /** 64 communicators of each direction between LNC 0 and LNC 1, all begun at once. */
    @Test
    void sixtyFourPairsInBothDirectionsAtOnceArePairedOneToOne() {
        final NrtAsyncSendRecv a = rig.engine();
        final NrtAsyncSendRecv b = rig.engine();
        try (NrtTensor source = NrtTensor.allocate(8L * PAIRS * 2); NrtTensor sink = NrtTensor.allocate(8L * PAIRS * 2)) {
            final ByteBuffer patterns = source.view(0, 8 * PAIRS * 2);
            for (int round = 0; round < ROUNDS; round++) {
                EngineRig.init(a, 0);
                EngineRig.init(b, 1);
                final List<EngineRig.Pair> pairs = new ArrayList<>();
                for (int i = 0; i < PAIRS; i++) {
                    pairs.add(EngineRig.begin(a, 0, b, 1));
                    pairs.add(EngineRig.begin(b, 1, a, 0));
                    patterns.putLong(16 * i, 1_000_000L * round + i);
                    patterns.putLong(16 * i + 8, -1_000_000L * round - i - 1);
                }
                for (int i = 0; i < pairs.size(); i++) {
                    EngineRig.awaitConnected(i % 2 == 0 ? a : b, i % 2 == 0 ? b : a, pairs.get(i));
                }
                exchange(a, b, pairs, source, sink);
                assertThat(sink.read(0, 8 * PAIRS * 2)).as("round %s", round).isEqualTo(source.read(0, 8 * PAIRS * 2));
                assertThat(a.close(0)).as(a.lastError()).isEqualTo(NrtStatus.SUCCESS);
                assertThat(b.close(1)).as(b.lastError()).isEqualTo(NrtStatus.SUCCESS);
            }
        }
    }

    /** The i-th communicator sends the i-th pattern, and its i-th counterpart receives into the i-th place. */
    private static void exchange(
        final NrtAsyncSendRecv a, final NrtAsyncSendRecv b, final List<EngineRig.Pair> pairs, final NrtTensor source,
        final NrtTensor sink) {
        final SendRecvRequest[] sends = new SendRecvRequest[pairs.size()];
        final SendRecvRequest[] recvs = new SendRecvRequest[pairs.size()];
        for (int i = 0; i < pairs.size(); i++) {
            final NrtAsyncSendRecv from = i % 2 == 0 ? a : b;
            final NrtAsyncSendRecv to = i % 2 == 0 ? b : a;
            sends[i] = new SendRecvRequest();
            recvs[i] = new SendRecvRequest();
            assertThat(from.sendTensor(source, 8L * i, 8, pairs.get(i).send(), sends[i])).isEqualTo(NrtStatus.SUCCESS);
            assertThat(to.recvTensor(sink, 8L * i, 8, pairs.get(i).recv(), recvs[i])).isEqualTo(NrtStatus.SUCCESS);
        }
        for (int i = 0; i < pairs.size(); i++) {
            EngineRig.awaitDone(i % 2 == 0 ? a : b, sends[i]);
            EngineRig.awaitDone(i % 2 == 0 ? b : a, recvs[i]);
        }
    }

    @Test
    void allLncsOpenTogetherEachWithAPairAndExactlyOneServiceThread() {
        final NrtAsyncSendRecv engine = rig.engine();
        final Map<Integer, EngineRig.Pair> pairs = new TreeMap<>();
        for (int lnc = 0; lnc < 128; lnc++) {
            EngineRig.init(engine, lnc);
        }
        for (int lnc = 0; lnc < 128; lnc++) {
            pairs.put(lnc, EngineRig.begin(engine, lnc, engine, (lnc + 1) % 128));
        }
        pairs.values().forEach(pair -> EngineRig.awaitConnected(engine, engine, pair));
        assertThat(ClosingTest.serviceThreads()).isEqualTo(128);
        try (NrtTensor tensor = NrtTensor.allocate(8 * 256)) {
            pairs.forEach((lnc, pair) -> {
                final SendRecvRequest send = new SendRecvRequest();
                final SendRecvRequest recv = new SendRecvRequest();
                tensor.view(8L * lnc, 8).putLong(0, lnc);
                assertThat(engine.sendTensor(tensor, 8L * lnc, 8, pair.send(), send)).isEqualTo(NrtStatus.SUCCESS);
                assertThat(engine.recvTensor(tensor, 8L * (128 + lnc), 8, pair.recv(), recv)).isEqualTo(NrtStatus.SUCCESS);
                EngineRig.awaitDone(engine, send);
                EngineRig.awaitDone(engine, recv);
                assertThat(tensor.view(8L * (128 + lnc), 8).getLong(0)).isEqualTo(lnc.longValue());
            });
        }
        for (int lnc = 0; lnc < 128; lnc++) {
            assertThat(engine.close(lnc)).as(engine.lastError()).isEqualTo(NrtStatus.SUCCESS);
        }
        Await.until(EngineRig.LIMIT, "the end of all service threads", () -> ClosingTest.serviceThreads() == 0);
    }
}
