package io.nrt4j.kv;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;

/**
 * One client of a server ({@code kv_store_handle_client_fn}), or one stranger: reads a frame, answers it, reads the next.
 *
 * <p>One buffer serves both directions, since nothing is read before the answer is wholly written: a client that does not take its
 * answers costs a frame, not more.
 *
 * <p>Threads: the server's only.
 */
final class KvConnection {
    /** What {@link #onReady} came to. */
    enum Outcome {
        /** It goes on. */
        OPEN,
        /** The client is done, or left between two frames. */
        ENDED,
        /** It is to be dropped, {@link KvConnection#reason()} says why. */
        STRANGE
    }

    private final SocketChannel channel;
    private final InetSocketAddress remote;
    private final SelectionKey key;
    private final KvStore store;
    private final KvSeal seal;
    private final byte[] frame = new byte[KvFrame.LENGTH];
    private final ByteBuffer buffer = ByteBuffer.wrap(frame);
    private boolean answering;
    private boolean dropAfterAnswer;
    private boolean valid;
    /** When the connection, the frame or the answer began; between frames, when the last answer was taken. */
    private long sinceNs;
    private KvStore.Taken taken;
    private String reason = "";

    /**
     * Takes over an accepted channel.
     *
     * @throws IOException if it is gone already; the caller closes it.
     */
    KvConnection(final SocketChannel channel, final Selector selector, final KvStore store, final KvSeal seal, final long nowNs)
        throws IOException {
        this.channel = channel;
        this.store = store;
        this.seal = seal;
        remote = (InetSocketAddress) channel.getRemoteAddress();
        sinceNs = nowNs;
        channel.configureBlocking(false);
        channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
        // A client may be silent for ever; a host that is gone may not.
        channel.setOption(StandardSocketOptions.SO_KEEPALIVE, true);
        key = channel.register(selector, SelectionKey.OP_READ, this);
    }

    /** Whether it ever sent a frame that was right. */
    boolean isValid() {
        return valid;
    }

    /** Whether nothing is half done: no frame, no answer. */
    boolean isBetweenFrames() {
        return !answering && buffer.position() == 0;
    }

    long sinceNs() {
        return sinceNs;
    }

    /** Why it is dropped. */
    String reason() {
        return reason;
    }

    String remoteText() {
        return KvAddress.text(remote);
    }

    /** Whether it has been longer in something than it may be. A valid client may be silent between frames as long as it likes. */
    boolean isOverdue(final long nowNs, final long limitNs) {
        if (valid && isBetweenFrames() || nowNs - sinceNs < limitNs) {
            return false;
        }
        if (answering) {
            reason = "it does not take its answer";
        } else {
            reason = buffer.position() == 0 ? "it says nothing" : "it sent " + buffer.position() + " bytes of a frame and no more";
        }
        return true;
    }

    /**
     * The channel is readable or writable: at most one read, and at most one write.
     *
     * @throws IOException if the connection is cut.
     */
    Outcome onReady(final long nowNs) throws IOException {
        return answering ? write(nowNs) : read(nowNs);
    }

    private Outcome read(final long nowNs) throws IOException {
        final boolean fresh = buffer.position() == 0;
        final int read = channel.read(buffer);
        if (read < 0) {
            reason = "it left after " + buffer.position() + " bytes of a frame";
            return fresh ? Outcome.ENDED : Outcome.STRANGE;
        }
        if (fresh && read > 0) {
            sinceNs = nowNs;
        }
        final String fault = buffer.hasRemaining() ? KvFrame.prefixFault(frame, buffer.position(), true) : KvFrame.fault(frame, true);
        if (fault != null) {
            reason = fault;
            return Outcome.STRANGE;
        }
        return buffer.hasRemaining() ? Outcome.OPEN : serve(nowNs);
    }

    private Outcome serve(final long nowNs) throws IOException {
        final String sealFault = seal.fault(frame);
        if (sealFault != null) {
            // Said to the other side too: two halves of a job with different secrets should learn it at once.
            reason = sealFault;
            dropAfterAnswer = true;
            store.error(frame, "your frame is refused: " + sealFault);
        } else {
            valid = true;
            if (KvFrame.opcode(frame) == KvFrame.END) {
                return Outcome.ENDED;
            }
            taken = store.answer(frame);
        }
        seal.seal(frame);
        buffer.clear();
        answering = true;
        sinceNs = nowNs;
        return write(nowNs);
    }

    private Outcome write(final long nowNs) throws IOException {
        channel.write(buffer);
        if (buffer.hasRemaining()) {
            key.interestOps(SelectionKey.OP_WRITE);
            return Outcome.OPEN;
        }
        if (dropAfterAnswer) {
            return Outcome.STRANGE;
        }
        buffer.clear();
        answering = false;
        taken = null;
        sinceNs = nowNs;
        key.interestOps(SelectionKey.OP_READ);
        return Outcome.OPEN;
    }

    /** Closes the channel; what was taken but could not be delivered goes back into the store. */
    void close() throws IOException {
        if (taken != null) {
            store.putBack(taken);
            taken = null;
        }
        key.cancel();
        channel.close();
    }
}
