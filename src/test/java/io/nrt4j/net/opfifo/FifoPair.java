package io.nrt4j.net.opfifo;

import io.nrt4j.NrtConfig;
import io.nrt4j.NrtTensor;
import io.nrt4j.Placement;
import io.nrt4j.net.NativeWord;
import io.nrt4j.net.NetTransport;
import io.nrt4j.net.loopback.FaultPlan;
import io.nrt4j.net.loopback.LoopbackTransport;
import java.util.Map;

/** Two ranks, each with a proxy over a loopback transport of its own, linked both ways on every stream, with memory and words. */
final class FifoPair implements AutoCloseable {
    static final int STREAMS = 2;
    static final int BYTES = 1 << 20;
    private static final int WORDS = 16;

    final FaultPlan[] plans = {new FaultPlan(), new FaultPlan()};
    final LoopbackTransport[] transports = new LoopbackTransport[2];
    final OpFifoProxy[] proxies = new OpFifoProxy[2];
    final long[] comms = new long[2];
    final NrtTensor[] data = new NrtTensor[2];
    final NrtTensor[] words = new NrtTensor[2];
    final long[][] sendMrs = new long[2][STREAMS];
    final long[][] recvMrs = new long[2][STREAMS];

    FifoPair() {
        this(SemaphoreStyle.RUNNING_COUNT, Map.of());
    }

    /** Without planned faults, whose counting allocates. */
    static FifoPair withoutPlans() {
        return new FifoPair(SemaphoreStyle.RUNNING_COUNT, Map.of(), false);
    }

    FifoPair(final SemaphoreStyle style, final Map<String, String> settings) {
        this(style, settings, true);
    }

    private FifoPair(final SemaphoreStyle style, final Map<String, String> settings, final boolean planned) {
        final NrtConfig config = NrtConfig.builder(Map.of(), settings).build();
        final PeerLinks[] links = new PeerLinks[2];
        for (int rank = 0; rank < 2; rank++) {
            transports[rank] = new LoopbackTransport(planned ? plans[rank] : null);
            proxies[rank] = new OpFifoProxy(transports[rank], config, style);
            links[rank] = new PeerLinks(2, STREAMS);
            data[rank] = NrtTensor.allocate(BYTES);
            words[rank] = NrtTensor.allocate(4L * WORDS);
            for (int i = 0; i < WORDS; i++) {
                word(rank, i).store(0);
            }
        }
        for (int stream = 0; stream < STREAMS; stream++) {
            link(links, 0, stream);
            link(links, 1, stream);
        }
        for (int rank = 0; rank < 2; rank++) {
            comms[rank] = proxies[rank].openComm(links[rank]);
        }
    }

    private void link(final PeerLinks[] links, final int from, final int stream) {
        final int to = 1 - from;
        final byte[] handle = new byte[NetTransport.HANDLE_BYTES];
        final long listener = transports[to].listen(0, handle);
        long send = 0;
        long recv = 0;
        for (int i = 0; i < 100 && (send == 0 || recv == 0); i++) {
            send = send == 0 ? transports[from].connect(0, handle) : send;
            recv = recv == 0 ? transports[to].accept(listener) : recv;
        }
        transports[to].closeListen(listener);
        links[from].sendTo(stream, to, send);
        links[to].receiveFrom(stream, from, recv);
        sendMrs[from][stream] = transports[from].regMr(send, data[from].address(), BYTES, Placement.HOST);
        recvMrs[to][stream] = transports[to].regMr(recv, data[to].address(), BYTES, Placement.HOST);
    }

    NativeWord word(final int rank, final int index) {
        return NativeWord.at(wordAddress(rank, index));
    }

    long wordAddress(final int rank, final int index) {
        return words[rank].address() + 4L * index;
    }

    int progress(final int rank, final int stream, final int block) {
        return proxies[rank].progress(comms[rank], stream, block);
    }

    @Override
    public void close() {
        for (int rank = 0; rank < 2; rank++) {
            proxies[rank].closeComm(comms[rank]);
            transports[rank].close();
            data[rank].close();
            words[rank].close();
        }
    }
}
