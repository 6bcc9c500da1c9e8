package io.nrt4j.tools;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.NrtTensor;
import io.nrt4j.sendrecv.SendRecvRequest;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * The listening end of measurements: does what the other end plans, until it ends.
 *
 * <p>Threads: {@link #run()} by one thread, once.
 */
final class PerfServer extends PerfEnd {
    private static final byte[] READY = {1};
    private static final int TOKEN_BYTES = 8;

    PerfServer(final PeerLink link) {
        super(link);
    }

    /** Connects, serves, and answers the number of measurements. */
    int run() {
        try (link) {
            link.connect();
            int served = 0;
            PerfPlan plan = nextPlan();
            while (plan.mode() != PerfPlan.Mode.END) {
                switch (plan.mode()) {
                    case PING_PONG -> pingPong(plan);
                    case BANDWIDTH -> bandwidth(plan);
                    case KV -> kv(plan);
                    default -> throw new IllegalStateException(plan.toString());
                }
                served++;
                plan = nextPlan();
            }
            tell(READY); // the measuring end closes when it has this
            link.closeInOrder();
            return served;
        }
    }

    private PerfPlan nextPlan() {
        return PerfPlan.decode(hear(PerfPlan.BYTES, "the peer's next measurement"));
    }

    private void pingPong(final PerfPlan plan) {
        final long size = plan.sizeBytes();
        final long total = plan.warmUp() + plan.count();
        try (NrtTensor out = NrtTensor.allocate(size); NrtTensor in = NrtTensor.allocate(size)) {
            link.receive(in, 0, size, receiving);
            tell(READY);
            for (long i = 1; i <= total; i++) {
                finish(receiving, size);
                if (i < total) {
                    link.receive(in, 0, size, receiving);
                }
                link.send(out, 0, size, sending);
                finish(sending, size);
            }
        }
    }

    private void bandwidth(final PerfPlan plan) {
        final long size = plan.sizeBytes();
        final int window = plan.window();
        final long total = (plan.warmUp() + plan.count()) * window;
        final SendRecvRequest[] requests = requests(window);
        try (NrtTensor in = NrtTensor.allocate(size * window); NrtTensor token = NrtTensor.allocate(TOKEN_BYTES)) {
            for (int i = 0; i < window; i++) {
                link.receive(in, i * size, size, requests[i]);
            }
            tell(READY);
            for (long i = 0; i < total; i++) {
                final int slot = (int) (i % window);
                finish(requests[slot], size);
                if (i + window < total) {
                    link.receive(in, slot * size, size, requests[slot]);
                }
            }
            link.send(token, 0, TOKEN_BYTES, sending);
            finish(sending, TOKEN_BYTES);
        }
    }

    private void kv(final PerfPlan plan) {
        final SendRecvRequest[] requests = requests(plan.window());
        final NrtTensor[] layers = layers(plan);
        try (NrtTensor token = NrtTensor.allocate(TOKEN_BYTES)) {
            for (long round = 0; round < plan.warmUp() + plan.count(); round++) {
                final int ahead = Math.min(plan.window(), plan.layers() * plan.blocks());
                for (int i = 0; i < ahead; i++) {
                    receiveBlock(plan, layers, i, requests);
                }
                tell(READY);
                final int total = plan.layers() * plan.blocks();
                for (int i = 0; i < total; i++) {
                    finish(requests[i % plan.window()], plan.sizeBytes());
                    if (i + ahead < total) {
                        receiveBlock(plan, layers, i + ahead, requests);
                    }
                }
                link.flush();
                link.send(token, 0, TOKEN_BYTES, sending);
                finish(sending, TOKEN_BYTES);
                verify(plan, layers, round);
            }
        } finally {
            close(layers);
        }
    }

    private void receiveBlock(final PerfPlan plan, final NrtTensor[] layers, final int number, final SendRecvRequest[] requests) {
        link.receive(layers[number / plan.blocks()], place(plan, number % plan.blocks(), true), plan.sizeBytes(),
            requests[number % plan.window()]);
    }

    private static void verify(final PerfPlan plan, final NrtTensor[] layers, final long round) {
        for (int layer = 0; layer < plan.layers(); layer++) {
            for (int block = 0; block < plan.blocks(); block++) {
                final long at = place(plan, block, true);
                final long first = word(layers[layer], at);
                final long last = word(layers[layer], at + plan.sizeBytes() - Long.BYTES);
                if (first != stamp(layer, block, round) || last != first) {
                    throw new NrtException(NrtStatus.FAILURE, "round " + round + ": block " + block + " of layer " + layer
                        + " is not what was sent");
                }
            }
        }
    }

    private static long word(final NrtTensor tensor, final long offset) {
        return ByteBuffer.wrap(tensor.read(offset, Long.BYTES)).order(ByteOrder.LITTLE_ENDIAN).getLong();
    }
}
