package io.nrt4j.net.libfabric;

import java.nio.ByteBuffer;

/**
 * Builds and sends library messages. Announcements and credits ride on each.
 *
 * <p>Credits: a message with data leaves two credits of its peer untouched, any other one; the last is for a message that
 * gives credits back. So two peers that have used all theirs up can always tell each other what they have consumed.
 * Threads: under the engine's lock. Allocates nothing.
 */
final class Outbox {
    /** Items that may precede the data of a message. */
    static final int MAX_RIDERS = 4;

    private static final int RESERVE = 2;

    private final MessageEngine engine;
    private final long injectLimit;
    private final int bufferBytes;
    /** Whether a message may go without a header. */
    private final boolean bare;

    Outbox(final MessageEngine engine, final FabricEndpoint endpoint, final int bufferBytes, final boolean bare) {
        this.engine = engine;
        this.bare = bare;
        injectLimit = endpoint.info().injectSize();
        this.bufferBytes = bufferBytes;
    }

    private static boolean blocked(final Peer peer, final int reserve) {
        return peer.stuck != null || peer.credits() <= reserve || peer.freeSends == null;
    }

    /**
     * Sends a post's bytes in a library message, or as one where the provider carries them at once and would not with a header.
     *
     * @return false when there is no credit or room, or the peer has died.
     */
    boolean sendData(final SendComm comm, final int slot) {
        final Peer peer = comm.peer;
        if (blocked(peer, RESERVE)) {
            return false;
        }
        final int length = (int) comm.length[slot];
        final long room = Math.floorDiv(injectLimit - Wire.HEADER_BYTES - Wire.ITEM_BYTES - length, Wire.ITEM_BYTES);
        if (bare && room < 0 && length <= injectLimit) {
            return sendBare(comm, slot);
        }
        final LibraryBuffer buffer = peer.takeSend();
        // No more than keep it short enough to be carried at once; where it is too long for that anyway, all that may.
        final int riders = ride(peer, buffer.bytes, room >= 0 && room < MAX_RIDERS ? (int) room : MAX_RIDERS);
        if (room == 0) {
            announceAlone(peer);
        }
        final int at = Wire.HEADER_BYTES + riders * Wire.ITEM_BYTES;
        putItem(buffer.bytes, at, Wire.DATA, comm.remoteId, comm.number[slot], length);
        comm.registration[slot].copyFrom(comm.address[slot], buffer.bytes, at + Wire.ITEM_BYTES, length);
        return send(peer, buffer, riders + 1, at + Wire.ITEM_BYTES + length);
    }

    /** What waits to be announced could not ride: it goes by itself at the next poll that finds nothing. */
    private void announceAlone(final Peer peer) {
        if (peer.announceHead != null) {
            peer.urgent = true;
            engine.addWork(peer);
        }
    }

    private boolean sendBare(final SendComm comm, final int slot) {
        final Peer peer = comm.peer;
        final long rc = peer.endpoint.path().inject(comm.address[slot], comm.length[slot], peer.address,
            Wire.bareTag(comm.remoteId, comm.number[slot]));
        if (rc == 0) {
            peer.sent++;
            announceAlone(peer);
            return true;
        }
        if (rc != -FiLayout.EAGAIN && rc != -FiLayout.ENOMEM) {
            engine.failPeer(peer, engine.endpoint().describe("fi_tinject of " + comm.length[slot] + " bytes", rc));
        }
        return false;
    }

    /** Sends one item; false when there is no credit, or the peer has died. */
    boolean sendItem(final Comm comm, final int type, final int number, final long value) {
        final Peer peer = comm.peer;
        if (blocked(peer, RESERVE)) {
            return false;
        }
        final LibraryBuffer buffer = peer.takeSend();
        final int riders = ride(peer, buffer.bytes, MAX_RIDERS);
        final int at = Wire.HEADER_BYTES + riders * Wire.ITEM_BYTES;
        putItem(buffer.bytes, at, type, comm.remoteId, number, value);
        return send(peer, buffer, riders + 1, at + Wire.ITEM_BYTES);
    }

    /** Sends announcements and credits without anything else; true if a message went. */
    boolean flush(final Peer peer) {
        if (blocked(peer, peer.creditsDue() ? 0 : 1)) { // worth the last one
            return false;
        }
        final LibraryBuffer buffer = peer.takeSend();
        final int riders = ride(peer, buffer.bytes, (bufferBytes - Wire.HEADER_BYTES) / Wire.ITEM_BYTES);
        peer.probeDue = false;
        return send(peer, buffer, riders, Wire.HEADER_BYTES + riders * Wire.ITEM_BYTES);
    }

    /** Hands a message to the provider that it had no room for; true if it took it. */
    boolean retryStuck(final Peer peer) {
        final LibraryBuffer buffer = peer.stuck;
        peer.stuck = null;
        return post(peer, buffer);
    }

    private boolean send(final Peer peer, final LibraryBuffer buffer, final int items, final int length) {
        final ByteBuffer bytes = buffer.bytes;
        bytes.putInt(Wire.INDEX, peer.remoteIndex);
        bytes.putInt(Wire.KEY, peer.remoteKey);
        bytes.putInt(Wire.RETURNED, peer.consumed);
        bytes.putInt(Wire.ITEMS, items);
        peer.advertised = peer.consumed;
        buffer.length = length;
        peer.sent++;
        post(peer, buffer);
        // A message that is stuck counts as sent: it is built, and goes before any other.
        return peer.alive();
    }

    private boolean post(final Peer peer, final LibraryBuffer buffer) {
        final boolean inject = buffer.length <= injectLimit;
        final long rc = inject
            ? peer.endpoint.path().inject(buffer.address, buffer.length, peer.address, Wire.LIBRARY_TAG)
            : peer.endpoint.path().send(buffer.address, buffer.length, buffer.descriptor, peer.address, Wire.LIBRARY_TAG,
                peer.endpoint.ops().context(buffer.op));
        if (rc == 0) {
            if (inject) {
                peer.giveSend(buffer);
            }
            return true;
        }
        if (rc == -FiLayout.EAGAIN || rc == -FiLayout.ENOMEM) {
            peer.stuck = buffer;
            engine.addWork(peer);
            return false;
        }
        peer.giveSend(buffer);
        peer.outOfFiles = rc == -FiLayout.EMFILE || rc == -FiLayout.ENFILE;
        engine.failPeer(peer, engine.endpoint().describe(inject ? "fi_tinject" : "fi_tsend", rc));
        return false;
    }

    static void putItem(final ByteBuffer bytes, final int at, final int type, final int commId, final int number, final long value) {
        bytes.putInt(at, type << Wire.ID_BITS | commId);
        bytes.putInt(at + Wire.ITEM_POST, number);
        bytes.putLong(at + Wire.ITEM_VALUE, value);
    }

    /** Puts pending announcements into a message; answers how many items they took. */
    private static int ride(final Peer peer, final ByteBuffer bytes, final int most) {
        int items = 0;
        while (items < most && peer.announceHead != null) {
            final RecvComm comm = peer.announceHead;
            final int at = Wire.HEADER_BYTES + items * Wire.ITEM_BYTES;
            if (comm.goDue) {
                comm.goDue = false;
                final int slot = comm.slotOf[comm.demandedNumber & Comm.RING_MASK];
                if (slot != Comm.NONE) {
                    putItem(bytes, at, Wire.POSTED_DIRECT, comm.remoteId, comm.demandedNumber, comm.length[slot]);
                    items++;
                }
            } else if (comm.announced != comm.next) {
                announceRun(comm, bytes, at);
                items++;
            }
            if (comm.announced == comm.next && !comm.goDue) {
                peer.dropAnnouncing();
            }
        }
        if (peer.announceHead == null) {
            peer.urgent = false;
            peer.overdue = false;
        }
        return items;
    }

    /** Announces receives of one kind and length with one item. */
    private static void announceRun(final RecvComm comm, final ByteBuffer bytes, final int at) {
        final int first = comm.announced;
        final byte kind = comm.kind[first & Comm.RING_MASK];
        final long length = comm.posted[first & Comm.RING_MASK];
        int count = 1;
        while (count < Wire.MAX_COUNT && first + count != comm.next && comm.kind[first + count & Comm.RING_MASK] == kind
            && comm.posted[first + count & Comm.RING_MASK] == length) {
            count++;
        }
        comm.announced += count;
        putItem(bytes, at, kind, comm.remoteId, first, (long) (count - 1) << Wire.COUNT_SHIFT | length);
    }
}
