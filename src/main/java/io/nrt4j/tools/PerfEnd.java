package io.nrt4j.tools;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.NrtTensor;
import io.nrt4j.sendrecv.SendRecvRequest;

/**
 * What both ends of a measurement have: the link, and the patterns that are the same on both sides. The loops allocate nothing
 * and spin; a receive is posted before the message that it answers goes out, so that its peer knows of it early.
 *
 * <p>Threads: one.
 */
abstract class PerfEnd {
    private static final String WAITING = "the peer's next message of the measurement";

    final PeerLink link;
    final SendRecvRequest sending = new SendRecvRequest();
    final SendRecvRequest receiving = new SendRecvRequest();

    PerfEnd(final PeerLink link) {
        this.link = link;
    }

    /** Sends a short message and waits until the peer has it. */
    final void tell(final byte[] message) {
        try (NrtTensor tensor = NrtTensor.allocate(message.length)) {
            tensor.write(0, message);
            link.send(tensor, 0, message.length, sending);
            link.await(sending, "the peer to take " + message.length + " bytes of control data");
        }
    }

    /** Waits for a short message. */
    final byte[] hear(final int maxBytes, final String what) {
        try (NrtTensor tensor = NrtTensor.allocate(maxBytes)) {
            link.receive(tensor, 0, maxBytes, receiving);
            link.await(receiving, what);
            link.flush();
            return tensor.read(0, (int) receiving.size());
        }
    }

    /** Waits for a message of the measurement; one of another size is none of it. */
    final void finish(final SendRecvRequest request, final long sizeBytes) {
        final long size = link.spin(request, WAITING);
        if (size != sizeBytes) {
            throw new NrtException(NrtStatus.FAILURE, "a message of the measurement has " + size + " bytes instead of " + sizeBytes);
        }
    }

    /** Requests for a window. */
    static SendRecvRequest[] requests(final int window) {
        final SendRecvRequest[] requests = new SendRecvRequest[window];
        for (int i = 0; i < window; i++) {
            requests[i] = new SendRecvRequest();
        }
        return requests;
    }

    /** One tensor for each layer of a KV cache. */
    static NrtTensor[] layers(final PerfPlan plan) {
        final NrtTensor[] layers = new NrtTensor[plan.layers()];
        try {
            for (int i = 0; i < layers.length; i++) {
                layers[i] = NrtTensor.allocate(plan.sizeBytes() * plan.blocks());
            }
            return layers;
        } catch (final RuntimeException ex) {
            close(layers);
            throw ex;
        }
    }

    static void close(final NrtTensor[] tensors) {
        for (final NrtTensor tensor : tensors) {
            if (tensor != null) {
                tensor.close();
            }
        }
    }

    /**
     * Where a block is in its layer's tensor. As with a paged cache, neighbours in a sequence are not neighbours in memory, and
     * they are elsewhere on the other side: there the block's number is reversed.
     */
    static long place(final PerfPlan plan, final int block, final boolean receiver) {
        final long slot = ((long) block * stride(plan.blocks())) % plan.blocks();
        return plan.sizeBytes() * (receiver ? plan.blocks() - 1 - slot : slot);
    }

    /** A stride that visits every block once. */
    private static int stride(final int blocks) {
        for (int stride = blocks / 3 + 1; ; stride++) {
            int a = blocks;
            int b = stride;
            while (b != 0) {
                final int rest = a % b;
                a = b;
                b = rest;
            }
            if (a == 1) {
                return stride;
            }
        }
    }

    /** What the first and the last eight bytes of a block hold in a round. */
    static long stamp(final int layer, final int block, final long round) {
        return (round << 48) ^ ((long) layer << 32) ^ block ^ 0x5eed_0000_0000_0000L;
    }
}
