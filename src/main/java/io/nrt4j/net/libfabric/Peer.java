package io.nrt4j.net.libfabric;

import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;

/**
 * Another process: credits, buffers and what waits to be sent to it. Its control connection is a {@link ControlConnection}.
 *
 * <p>Threads: under the engine's lock.
 */
final class Peer {
    /** Index and key that this peer puts into its messages to us; the key tells it from an earlier owner of the index. */
    final int index;
    final int key;
    /** Library messages that each side may have in flight. */
    final int window;
    /** Where messages to and from it go: shared by all peers, or its own. */
    final FabricEndpoint endpoint;

    /** What we put into our messages to it. */
    int remoteIndex;
    int remoteKey;
    long address = FiLayout.ADDR_UNSPEC;
    /** Library messages that it lets us have in flight. */
    int remoteWindow;
    /** Short messages that we may have in flight ahead of their receives: each keeps one of its buffers, maybe for ever. */
    int earlyLimit;
    /** Longest message that travels eagerly, the same at both ends. */
    int eagerLimit;
    /** Its data path has been heard. */
    boolean heard;
    boolean probeDue;
    /** It was told how many messages there are in all: nothing but what is stuck goes to it any more. */
    boolean mute;
    /** First cause of its end; null while it lives. */
    String deathCause;
    long diedNs;
    /** Its process has ended, or has closed its transport. */
    boolean ended;
    /** It died since this process has no file descriptor left for it. */
    boolean outOfFiles;
    /** Where its endpoint is, and where its connection to ours comes from as it says; null where that is not known. See DataLinks. */
    InetSocketAddress dataAddress;
    InetSocketAddress source;
    /** The provider's connection with it, once it was seen. */
    TcpSocket link;
    /** Dead: the sockets that were shut down and that the provider has not been seen to have closed. */
    final List<TcpSocket> cut = new ArrayList<>(1);
    /** Those are all that it had. */
    boolean cutKnown;
    /** Nothing can come from it or go to it any more. */
    boolean severed;
    /** Dead: a peer with the same endpoint may send. */
    boolean gone;
    /** The dead peer with the same endpoint whose connection must go first; null if there is none. */
    Peer behind;
    /** It did not move on in the whole time of a close, and where it was then. */
    private boolean still;
    private int stillAt;

    /** Messages sent to it, and how many of them it has given back; both count modulo 2^32. */
    int sent;
    int returned;
    /** Messages consumed from it, and how many of them it has been told of. */
    int consumed;
    int advertised;
    /** Short messages ahead of their receives. */
    int early;
    /** Long messages in the provider's hands. */
    int directSends;
    /** Long messages sent and received whole, modulo 2^32. */
    int directSent;
    int directReceived;
    /** Library messages received, modulo 2^32. */
    int received;

    /** Communicators that may send something now. */
    SendComm readyHead;
    SendComm readyTail;
    /** Communicators with receives that are not announced yet. */
    RecvComm announceHead;
    RecvComm announceTail;
    /** When the announcements must go without waiting for a message to ride on. */
    long flushAtNs;
    /** They go at the next poll that finds nothing. */
    boolean urgent;
    /** There are so many that they go at the next poll whatever it finds. */
    boolean overdue;
    /** In the engine's list of peers with work. */
    boolean inWork;
    Peer nextWork;
    /** Free send buffers. */
    LibraryBuffer freeSends;
    /** A finished message that the provider had no room for; nothing else goes before it. */
    LibraryBuffer stuck;

    Peer(final FabricEndpoint endpoint, final int index, final int key, final int window) {
        this.endpoint = endpoint;
        this.index = index;
        this.key = key;
        this.window = window;
    }

    private int moves() {
        return received + directReceived + directSent;
    }

    /** A close has waited for it in vain. */
    void markStandingStill() {
        still = true;
        stillAt = moves();
    }

    /** Whether a close has waited for it in vain, and nothing has come from it since. */
    boolean standsStill() {
        return still && stillAt == moves();
    }

    boolean alive() {
        return deathCause == null;
    }

    /** Whether the connection of a dead peer with the same endpoint is still in the way. */
    boolean waits() {
        return behind != null && !behind.gone;
    }

    /** It has nothing to send or announce any more. */
    void die(final String cause) {
        deathCause = cause;
        diedNs = System.nanoTime();
        readyHead = null;
        readyTail = null;
        announceHead = null;
        announceTail = null;
    }

    /** Credits left. */
    int credits() {
        return remoteWindow - (sent - returned);
    }

    /** Messages of its that it does not know to be consumed. */
    int unreturned() {
        return consumed - advertised;
    }

    /**
     * Whether it must be told what has been consumed, without waiting for a message to ride on. Early messages keep half of the window,
     * and a message with data leaves two credits: what is consumed and not told must not be all the rest, of the smallest window (8), too.
     */
    boolean creditsDue() {
        return unreturned() >= window / 4;
    }

    /** What it grants: known when its hello has come. */
    void grant(final int messages) {
        remoteWindow = messages;
        earlyLimit = messages / 2;
    }

    boolean hasWork() {
        return readyHead != null || announceHead != null || stuck != null || probeDue || creditsDue();
    }

    void addReady(final SendComm comm) {
        if (!comm.ready) {
            comm.ready = true;
            comm.nextReady = null;
            if (readyTail == null) {
                readyHead = comm;
            } else {
                readyTail.nextReady = comm;
            }
            readyTail = comm;
        }
    }

    SendComm pollReady() {
        final SendComm comm = readyHead;
        if (comm != null) {
            readyHead = comm.nextReady;
            if (readyHead == null) {
                readyTail = null;
            }
            comm.ready = false;
        }
        return comm;
    }

    void addAnnouncing(final RecvComm comm) {
        if (!comm.announcing) {
            comm.announcing = true;
            comm.nextAnnouncing = null;
            if (announceTail == null) {
                announceHead = comm;
            } else {
                announceTail.nextAnnouncing = comm;
            }
            announceTail = comm;
        }
    }

    void dropAnnouncing() {
        final RecvComm comm = announceHead;
        announceHead = comm.nextAnnouncing;
        if (announceHead == null) {
            announceTail = null;
        }
        comm.announcing = false;
    }

    LibraryBuffer takeSend() {
        final LibraryBuffer buffer = freeSends;
        if (buffer != null) {
            freeSends = buffer.next;
            buffer.next = null;
        }
        return buffer;
    }

    void giveSend(final LibraryBuffer buffer) {
        buffer.next = freeSends;
        freeSends = buffer;
    }

    @Override
    public String toString() {
        return "peer " + index + " (" + credits() + " of " + remoteWindow + " credits, " + unreturned() + " to return, " + early
            + " early, " + directSends + " direct sends" + (stuck == null ? "" : ", a message is stuck")
            + (readyHead == null ? "" : ", sends are ready") + (announceHead == null ? "" : ", receives to announce")
            + (inWork ? ", in work" : "") + (alive() ? ")" : ", dead: " + deathCause + ")");
    }
}
