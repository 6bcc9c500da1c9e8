package io.nrt4j.net.libfabric;

import java.nio.ByteBuffer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What the completion queue tells, and what library messages say: leads each to the communicator that it is for.
 *
 * <p>Threads: under the engine's lock. Allocates nothing unless something fails.
 */
final class Incoming implements FabricEndpoint.Completions {
    private static final Logger LOG = LoggerFactory.getLogger(Incoming.class);

    private final MessageEngine engine;
    private final LibraryBuffers buffers;
    private final Sending sending;
    private final Receiving receiving;

    Incoming(final MessageEngine engine, final LibraryBuffers buffers, final Sending sending, final Receiving receiving) {
        this.engine = engine;
        this.buffers = buffers;
        this.sending = sending;
        this.receiving = receiving;
    }

    @Override
    public void onCompletion(final FabricEndpoint at, final int op, final long lengthBytes, final long tag) {
        final OpTable ops = at.ops();
        final Object owner = ops.owner[op];
        switch (ops.kind[op]) {
            case OpTable.LIBRARY_RECV -> {
                if (tag == Wire.LIBRARY_TAG) {
                    onMessage((LibraryBuffer) owner, (int) lengthBytes);
                } else {
                    onBareMessage((LibraryBuffer) owner, tag, (int) lengthBytes);
                }
            }
            case OpTable.LIBRARY_SEND -> buffers.sent((LibraryBuffer) owner);
            default -> onDirect(at, op, lengthBytes, null);
        }
    }

    @Override
    public void onError(final FabricEndpoint at, final int op, final String text) {
        final OpTable ops = at.ops();
        final Object owner = ops.owner[op];
        switch (ops.kind[op]) {
            case OpTable.LIBRARY_RECV -> {
                LOG.warn("libfabric's {} failed a receive of a library message: {}", engine.endpoint().info().provider(), text);
                buffers.repost((LibraryBuffer) owner);
            }
            case OpTable.LIBRARY_SEND -> {
                final LibraryBuffer buffer = (LibraryBuffer) owner;
                engine.failPeer(buffer.peer, "fi_tsend of a library message failed: " + text);
                buffers.sent(buffer);
            }
            case OpTable.DIRECT_SEND -> onDirect(at, op, 0, "fi_tsend failed: " + text);
            default -> onDirect(at, op, 0, "fi_trecv failed: " + text);
        }
    }

    private void onDirect(final FabricEndpoint at, final int op, final long length, final String cause) {
        final OpTable ops = at.ops();
        final Object owner = ops.owner[op];
        final int slot = ops.slot[op];
        final boolean send = ops.kind[op] == OpTable.DIRECT_SEND;
        ops.release(op);
        if (owner instanceof RecvComm comm) {
            receiving.onDirectDone(comm, slot, length, cause);
        } else if (owner instanceof SendComm comm) {
            sending.onDirectDone(comm, slot, cause);
        } else if (!send) {
            at.directReceives--;
        }
    }

    private void onMessage(final LibraryBuffer buffer, final int length) {
        final ByteBuffer bytes = buffer.bytes;
        if (length < Wire.HEADER_BYTES) {
            buffers.repost(buffer); // of nobody that we know
            return;
        }
        final int index = bytes.getInt(Wire.INDEX);
        final Peer peer = engine.peerAt(index);
        if (peer == null || peer.key != bytes.getInt(Wire.KEY) || !peer.alive()) {
            buffers.repost(buffer); // a late message of a peer that is gone
            return;
        }
        buffer.peer = peer;
        peer.heard = true;
        peer.received++;
        final int returned = bytes.getInt(Wire.RETURNED);
        if (returned - peer.returned > 0) {
            peer.returned = returned;
        }
        final int items = bytes.getInt(Wire.ITEMS);
        if (items < 0 || items > (length - Wire.HEADER_BYTES) / Wire.ITEM_BYTES) {
            failPeer(peer, "" + items + " items in a message of " + length + " bytes");
        }
        boolean kept = false;
        for (int i = 0; i < items && peer.alive(); i++) {
            final int at = Wire.HEADER_BYTES + i * Wire.ITEM_BYTES;
            kept |= onItem(
                peer, buffer, length, at, bytes.getInt(at), bytes.getInt(at + Wire.ITEM_POST), bytes.getLong(at + Wire.ITEM_VALUE));
        }
        if (!kept) {
            buffers.repostLater(buffer);
        }
    }

    /** A short message without a header, on the endpoint that its peer has for itself. */
    private void onBareMessage(final LibraryBuffer buffer, final long tag, final int length) {
        final Peer peer = engine.peerOf(buffer.endpoint);
        if (peer == null) {
            buffers.repost(buffer);
            return;
        }
        buffer.peer = peer;
        peer.heard = true;
        peer.received++;
        if (!(engine.comms().find(Wire.bareId(tag), peer) instanceof RecvComm recv)
            || !receiving.onData(recv, (int) tag, buffer, 0, length)) {
            buffers.repostLater(buffer);
        }
    }

    private void failPeer(final Peer peer, final String error) {
        engine.failPeer(peer, "protocol error: " + error);
    }

    /** Answers true if the buffer is kept. */
    private boolean onItem(
        final Peer peer,
        final LibraryBuffer buffer,
        final int end,
        final int at,
        final int typeAndId,
        final int number,
        final long value) {
        final int type = typeAndId >>> Wire.ID_BITS;
        final int id = typeAndId & Wire.ID_MASK;
        final Comm comm = engine.comms().find(id, peer);
        if (comm == null) {
            return false; // the communicator has been closed
        }
        final long length = value & Wire.LENGTH_MASK;
        if (comm instanceof SendComm send) {
            if (!Wire.isPosted(type)) {
                engine.failPeer(peer, "protocol error: item of type " + type + " for a sender");
                return false;
            }
            sending.onAnnounced(send, type, number, (int) (value >>> Wire.COUNT_SHIFT) + 1, length);
            return false;
        }
        final RecvComm recv = (RecvComm) comm;
        switch (type) {
            case Wire.DATA -> {
                if (length > end - at - Wire.ITEM_BYTES) {
                    failPeer(peer, "" + length + " bytes of data in a message of " + end + " bytes");
                    return false;
                }
                return receiving.onData(recv, number, buffer, at + Wire.ITEM_BYTES, (int) length);
            }
            case Wire.DEMAND -> receiving.onDemand(recv, number);
            case Wire.TOO_LONG -> receiving.onTooLong(recv, number, length);
            default -> failPeer(peer, "item of type " + type);
        }
        return false;
    }
}
