package io.nrt4j.net.libfabric;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;

/**
 * The buffers for library messages: those that receive, shared by all peers of an endpoint, and each peer's own to send from.
 *
 * <p>As many receives are posted as all peers together may have messages in flight, so a message always finds one that is long
 * enough. Threads: under the engine's lock. Allocates only when a peer is new.
 */
final class LibraryBuffers {
    private static final int MAX_WINDOW = 32;
    private static final int MIN_WINDOW = 8;
    /** Consumed buffers that are kept for the next poll that finds nothing; less than a quarter of the smallest window. */
    private static final int MAX_KEPT = 2;

    private final MessageEngine engine;
    private final FabricEndpoint endpoint;
    private final int bufferBytes;
    private final boolean perPeer;
    /** Buffers that the provider had no room for, or whose message was consumed just now. */
    private LibraryBuffer unposted;
    private int kept;
    /** Send buffers of peers that are gone. */
    private LibraryBuffer spareSends;
    private int posted;
    private int promised;

    LibraryBuffers(final MessageEngine engine, final FabricEndpoint endpoint, final int bufferBytes, final boolean perPeer) {
        this.engine = engine;
        this.endpoint = endpoint;
        this.bufferBytes = bufferBytes;
        this.perPeer = perPeer;
    }

    /** Receives that an endpoint has posted for library messages. */
    int posted() {
        return posted;
    }

    /** Messages that the next peer may have in flight: the more peers, the fewer. */
    int window() {
        if (perPeer) {
            return MAX_WINDOW;
        }
        final long size = endpoint.info().rxSize();
        final int window = promised < size / 4 ? MAX_WINDOW : promised < size / 2 ? MAX_WINDOW / 2 : MIN_WINDOW;
        if (promised + window > size - 32) {
            throw new NrtException(NrtStatus.RESOURCE, "libfabric's " + endpoint.info().provider() + " receives " + size
                + " messages at most, which is too few for another peer process");
        }
        return window;
    }

    /** Gives a new peer its buffers, before anything is promised to it. */
    void equip(final Peer peer) {
        if (perPeer) {
            post(peer.endpoint, peer.window);
            posted = peer.window;
        } else {
            final int needed = promised + peer.window;
            post(peer.endpoint, needed - posted);
            posted = Math.max(posted, needed);
        }
        int missing = MAX_WINDOW;
        while (missing > 0 && spareSends != null) {
            final LibraryBuffer buffer = spareSends;
            spareSends = buffer.next;
            buffer.peer = peer;
            peer.giveSend(buffer);
            missing--;
        }
        if (missing > 0) {
            for (final LibraryBuffer buffer : peer.endpoint.buffers(missing, bufferBytes)) {
                buffer.op = operation(peer.endpoint, OpTable.LIBRARY_SEND, buffer);
                buffer.peer = peer;
                peer.giveSend(buffer);
            }
        }
        promised += perPeer ? 0 : peer.window;
    }

    /** The operation of a buffer, for its whole life. */
    private static int operation(final FabricEndpoint at, final byte kind, final LibraryBuffer buffer) {
        final int op = at.ops().take(kind, buffer, Comm.NONE, null);
        if (op == OpTable.NONE) {
            throw new NrtException(NrtStatus.RESOURCE, "libfabric's " + at.info().provider()
                + " has as many operations under way as the endpoint may have; no buffers for another peer process");
        }
        return op;
    }

    private void post(final FabricEndpoint at, final int count) {
        for (final LibraryBuffer buffer : count > 0 ? at.buffers(count, bufferBytes) : new LibraryBuffer[0]) {
            buffer.op = operation(at, OpTable.LIBRARY_RECV, buffer);
            repost(buffer);
        }
    }

    /** A peer is gone: what it does not need goes to the next one. */
    void takeBack(final Peer peer) {
        promised -= perPeer ? 0 : peer.window;
        while (peer.freeSends != null) {
            sent(peer.takeSend());
        }
        if (peer.stuck != null) {
            sent(peer.stuck);
            peer.stuck = null;
        }
    }

    /** The provider is done with a send buffer. */
    void sent(final LibraryBuffer buffer) {
        if (buffer.peer.alive()) {
            buffer.peer.giveSend(buffer);
        } else if (!perPeer) {
            buffer.next = spareSends;
            spareSends = buffer;
        }
    }

    /** Lets a buffer receive again, now or when there is room. */
    void repost(final LibraryBuffer buffer) {
        final FabricEndpoint at = buffer.endpoint;
        if (at.closed()) {
            return;
        }
        final long rc = at.path().recv(buffer.address, bufferBytes, buffer.descriptor, Wire.LIBRARY_TAG,
            perPeer ? Wire.BARE_IGNORED : 0, at.ops().context(buffer.op));
        if (rc != 0) {
            if (rc != -FiLayout.EAGAIN && rc != -FiLayout.ENOMEM) {
                final String cause = endpoint.describe("fi_trecv of a library buffer", rc);
                final Peer owner = perPeer ? engine.peerOf(at) : null;
                if (owner != null) {
                    engine.failPeer(owner, cause);
                } else if (!perPeer) {
                    engine.breakDown(cause);
                } // else the peer has just died, and its endpoint is about to be closed
            }
            buffer.next = unposted;
            unposted = buffer;
            kept = MAX_KEPT + 1; // to be tried again at every poll
        } else if (buffer.consumed) {
            buffer.consumed = false;
            engine.onReposted(buffer.peer);
        }
    }

    /**
     * Lets the buffer of a consumed message receive again, after the answer to the message has gone out: so the answer does not
     * wait for a call into the provider. Its credit is given back then, so the peer always finds a buffer.
     */
    void repostLater(final LibraryBuffer buffer) {
        buffer.consumed = true;
        buffer.next = unposted;
        unposted = buffer;
        kept++;
    }

    /** Posts the buffers that wait for it, if there are many, or the provider has nothing to tell. */
    void repostWaiting(final boolean quiet) {
        if (unposted == null || !quiet && kept <= MAX_KEPT) {
            return;
        }
        kept = 0;
        LibraryBuffer buffer = unposted;
        unposted = null;
        while (buffer != null) {
            final LibraryBuffer following = buffer.next;
            buffer.next = null;
            repost(buffer);
            buffer = following;
        }
    }

    @Override
    public String toString() {
        return unposted == null ? "" : ", buffers wait to be posted";
    }
}
