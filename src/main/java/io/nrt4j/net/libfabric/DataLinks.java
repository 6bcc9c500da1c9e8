package io.nrt4j.net.libfabric;

import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The provider's own TCP connections with the peers of a shared endpoint, which libfabric gives no way to close: {@code fi_av_remove}
 * leaves them open (and with {@code FI_AV_REMOVE_CLEANUP=1}, libfabric 1.17's rxm follows a null pointer while a long receive is under
 * way). A peer whose control connection broke may be alive, and its messages may arrive at any time. So the sockets to a failed peer are
 * shut down, by us: the provider then finds the connection broken, as after the peer's death, gives up the operations that are under way on
 * it, and closes the socket. From then on no byte of that peer can reach or leave memory.
 *
 * <p>Which sockets are a peer's: those that lead to its endpoint's address, and those that were accepted at ours and come from its host,
 * unless another peer of the same host has said that it is its own ({@link ControlFrame#DATA_FROM}). Where that does not tell them apart,
 * because a peer of that host has not said so yet or another transport of this process talks to the same endpoint, what may be another's
 * stays open. Nobody is told then that the memory is free: see {@link #severed}.
 *
 * <p>Threads: under the engine's lock, except that {@code reached} and {@code ALL} are read by other transports: concurrent sets, so what
 * was added before is seen; an address is added before a message goes there, hence before a socket to it exists.
 */
final class DataLinks {
    private static final Logger LOG = LoggerFactory.getLogger(DataLinks.class);
    private static final Set<DataLinks> ALL = ConcurrentHashMap.newKeySet();
    /** Providers, or what ofi_rxm stands on, whose connections are TCP sockets of this process. */
    private static final Set<String> OVER_TCP = Set.of("tcp", "net", "sockets");

    private final MessageEngine engine;
    /** Null where there are none: the provider has no TCP sockets, whatever its addresses look like, or each peer has an endpoint. */
    private final InetSocketAddress own;
    /** Whether a dead peer's endpoint is closed with it, so that nothing is left to be cut. */
    private final boolean perPeer;
    private final Set<InetSocketAddress> reached = ConcurrentHashMap.newKeySet();
    /** Dead peers whose sockets the provider may not have closed yet. */
    private final List<Peer> dying = new ArrayList<>();
    /** Peers that have said where their connection comes from, and whose socket has not been looked for. */
    private final List<Peer> unmatched = new ArrayList<>();
    /** The endpoint is about to be closed, and all its connections with it. */
    private boolean ending;

    DataLinks(final MessageEngine engine, final FabricEndpoint endpoint, final boolean perPeer) {
        this.engine = engine;
        this.perPeer = perPeer;
        own = perPeer || !isOverTcp(endpoint.info().provider()) ? null : TcpSocket.address(endpoint.name());
    }

    private static boolean isOverTcp(final String provider) {
        return OVER_TCP.contains(provider.split(";")[0]);
    }

    /** A peer's endpoint is known, and nothing has been sent to it. */
    void introduce(final Peer peer, final byte[] name) {
        if (own == null) {
            return;
        }
        peer.dataAddress = TcpSocket.address(name);
        if (peer.dataAddress == null) {
            return;
        }
        reached.add(peer.dataAddress);
        ALL.add(this);
        for (final Peer dead : dying) {
            if (dead.dataAddress.equals(peer.dataAddress)) {
                peer.behind = dead; // the provider would send into the connection that was shut down
            }
        }
    }

    /** The way to a peer is open. Answers where our connection to it comes from, which it cannot know otherwise; null if it is its own. */
    InetSocketAddress onUp(final Peer peer, final List<TcpSocket> sockets) {
        if (peer.dataAddress == null || isShared(peer.dataAddress)) {
            return null;
        }
        for (final TcpSocket socket : sockets) {
            if (TcpSocket.same(socket.remote(), peer.dataAddress)) {
                peer.link = socket;
                return socket.local();
            }
        }
        return null;
    }

    /** A peer says where its connection to us comes from. */
    void onSource(final Peer peer, final InetSocketAddress source) {
        peer.source = source;
        if (own != null) {
            unmatched.add(peer);
        }
    }

    /** Whether there is something for {@link #matchSources} to do, which needs all sockets. */
    boolean hasUnmatched() {
        return !unmatched.isEmpty();
    }

    /** Finds the sockets of the peers that have said where they come from, of all at a time. */
    void matchSources(final List<TcpSocket> sockets) {
        for (final Peer peer : unmatched) {
            for (final TcpSocket socket : sockets) {
                if (accepted(socket) && TcpSocket.same(socket.remote(), peer.source)) {
                    peer.link = socket;
                }
            }
        }
        unmatched.clear();
    }

    /** Whether there are no sockets to be cut, so that it matters whether a peer's process has ended: see {@link #severed}. */
    boolean needEndOfProcess() {
        return own == null && !perPeer;
    }

    private boolean accepted(final TcpSocket socket) {
        return TcpSocket.same(socket.local(), own);
    }

    /** Whether another transport of this process sends to an address, too: then sockets to it may be that one's. */
    private boolean isShared(final InetSocketAddress address) {
        for (final DataLinks other : ALL) {
            if (other != this && other.reached.contains(address)) {
                return true;
            }
        }
        return false;
    }

    /** Shuts the sockets to a dead peer down. Calls no provider. */
    void cut(final Peer peer) {
        if (peer.dataAddress == null || ending) {
            return;
        }
        final List<TcpSocket> sockets = TcpSocket.connected();
        final boolean alone = !isShared(peer.dataAddress);
        final boolean clear = othersAreKnown(peer, sockets);
        int unclear = 0;
        for (final TcpSocket socket : sockets) {
            final boolean named = socket.equals(peer.link) || accepted(socket) && TcpSocket.same(socket.remote(), peer.source);
            final boolean mayBeIts = named || TcpSocket.same(socket.remote(), peer.dataAddress)
                || accepted(socket) && TcpSocket.sameHost(socket.remote(), peer.dataAddress) && !isOthers(peer, socket);
            final boolean isIts = named || (TcpSocket.same(socket.remote(), peer.dataAddress) ? alone : clear);
            if (mayBeIts && isIts) {
                socket.shutDown();
                peer.cut.add(socket);
            } else if (mayBeIts) {
                unclear++;
            }
        }
        peer.cutKnown = unclear == 0 && (!peer.cut.isEmpty() || peer.link != null);
        if (peer.link != null && !peer.cut.contains(peer.link)) {
            peer.link.shutDown(); // unless it broke by itself; it may not be read to its end yet
            peer.cut.add(peer.link);
        }
        dying.add(peer);
    }

    /** Whether it is known of each other peer of the same host which accepted socket is its own, or that it has none. */
    private boolean othersAreKnown(final Peer peer, final List<TcpSocket> sockets) {
        for (final Peer other : engine.peers()) {
            if (isNeighbour(other, peer) && sockets.stream().noneMatch(socket -> isOf(other, socket))) {
                return false;
            }
        }
        return true;
    }

    private boolean isOthers(final Peer peer, final TcpSocket socket) {
        for (final Peer other : engine.peers()) {
            if (isNeighbour(other, peer) && isOf(other, socket)) {
                return true;
            }
        }
        return dying.stream().anyMatch(other -> other != peer && other.cut.contains(socket));
    }

    private static boolean isNeighbour(final Peer other, final Peer peer) {
        return other != null && other != peer && other.dataAddress != null && !other.dataAddress.equals(peer.dataAddress)
            && TcpSocket.sameHost(other.dataAddress, peer.dataAddress);
    }

    private boolean isOf(final Peer peer, final TcpSocket socket) {
        return accepted(socket) && TcpSocket.same(socket.remote(), peer.source)
            || TcpSocket.same(socket.remote(), peer.dataAddress) && !isShared(peer.dataAddress);
    }

    /**
     * Whether the provider can move no byte of a dead peer any more: its endpoint is closed with it, or all sockets to it were shut down,
     * and the provider has read them to their end and closed them. Where there are no sockets, the end of its process must do.
     */
    boolean severed(final Peer peer) {
        if (!peer.severed && peer.cutKnown) {
            peer.cut.removeIf(socket -> !socket.isOpen());
            peer.severed = peer.cut.isEmpty();
        }
        return peer.severed || perPeer || own == null && peer.ended;
    }

    /** How much longer than others the requests of a dead peer are worth waiting for: the provider has not closed a cut socket yet. */
    long patienceNs(final Peer peer) {
        return peer.cutKnown && !severed(peer) ? Outcomes.HOLD_NS : 0;
    }

    /** Forgets dead peers whose connection is gone. Not during a call into the provider. */
    void tick() {
        if (dying.isEmpty()) {
            return;
        }
        final long now = System.nanoTime();
        for (final Iterator<Peer> all = dying.iterator(); all.hasNext();) {
            final Peer peer = all.next();
            final boolean severed = severed(peer);
            if (severed) {
                engine.endpoint().remove(peer.address);
            } else if (now - peer.diedNs < Outcomes.HOLD_NS + patienceNs(peer)) {
                continue;
            } else {
                LOG.warn("the data path to {} could not be cut: memory of its requests that {} still has stays allocated until the "
                    + "process ends", peer.dataAddress, engine.endpoint().info().provider());
            }
            peer.gone = true;
            all.remove();
            if (!isReached(peer.dataAddress)) {
                reached.remove(peer.dataAddress);
            }
        }
    }

    private boolean isReached(final InetSocketAddress address) {
        for (final Peer peer : engine.peers()) {
            if (peer != null && address.equals(peer.dataAddress)) {
                return true;
            }
        }
        return dying.stream().anyMatch(peer -> address.equals(peer.dataAddress));
    }

    /** The endpoint is about to be closed: from now on nothing is cut. */
    void end() {
        ending = true;
    }

    /** The endpoint is closed, and its sockets with it. */
    void close() {
        ALL.remove(this);
    }
}
