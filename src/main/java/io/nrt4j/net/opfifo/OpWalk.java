package io.nrt4j.net.opfifo;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.net.NetAddrMark;
import io.nrt4j.net.NetDestAddr;
import io.nrt4j.net.NetOpsInfo;
import io.nrt4j.net.NetSrcAddr;
import io.nrt4j.net.NetTransport;

/**
 * The sends or the receives of one operation: a walk along its entries with up to {@link #RING} requests in flight.
 *
 * <pre>
 *   entries  [ complete | in flight: ring[i &amp; 127] | not posted ]
 *             0          completed                    posted       n
 * </pre>
 *
 * <p>Requests complete in the entries' order, so that a semaphore counts a prefix. An entry is posted when its operation's entry
 * before it is, and when the entry before it to the same peer is, whichever operation that belongs to: both ends then post in the
 * order of their lists, which is how the network matches them. The first unposted entry of a list always passes that gate, so
 * operations cannot block one another.
 *
 * <p>Threads: the thread that drives the block. A tick allocates nothing unless it fails.
 *
 * <p>Ports {@code netNeuronSendProxy} and {@code netNeuronRecvProxy} with their 128-slot {@code requestTracker}.
 */
final class OpWalk {
    /** Most requests in flight. */
    static final int RING = 128;

    private static final int RING_MASK = RING - 1;

    private final NetTransport transport;
    private final boolean sending;
    private final int operation;
    private final NetSrcAddr[] sources;
    private final NetDestAddr[] destinations;
    private final long[] comms;
    private final long[] addresses;
    private final long[] registrations;
    private final int[] sizes;
    private final boolean[] endsRound;
    private final OpWalk[] beforeWalk;
    private final int[] beforeIndex;
    private final long[] ring = new long[RING];
    private final int window;
    private final boolean early;
    private final boolean exactSizes;
    private final Semaphore complete;
    private final Semaphore handshake;
    private boolean credited;
    private int size;
    private int posted;
    private int completed;

    private OpWalk(
        final NetTransport transport, final boolean sending, final int operation, final NetOpsInfo info, final boolean early,
        final SemaphoreStyle style) {
        final int entries = sending ? info.txEntryCnt() : info.rxEntryCnt();
        final int shift = info.semaShiftOffset();
        this.transport = transport;
        this.sending = sending;
        this.operation = operation;
        this.early = early;
        sources = new NetSrcAddr[sending ? entries : 0];
        destinations = new NetDestAddr[sending ? 0 : entries];
        comms = new long[entries];
        addresses = new long[entries];
        registrations = new long[entries];
        sizes = new int[entries];
        endsRound = new boolean[entries];
        beforeWalk = new OpWalk[entries];
        beforeIndex = new int[entries];
        window = sending && info.initialSendCredits() != 0 ? Math.min(RING, info.initialSendCredits()) : RING;
        exactSizes = !sending && !info.dynamicSendRecvSz();
        complete = Semaphore.of(sending ? info.incSendComplete() : info.incRecvComplete(), style, shift);
        handshake = Semaphore.of(sending ? info.incSendHandshake() : info.incRecvHandshake(), style, shift);
    }

    /** The sends of an operation; early: they count as complete when the network took them. */
    static OpWalk sends(
        final NetTransport transport, final int operation, final NetOpsInfo info, final boolean early, final SemaphoreStyle style) {
        return new OpWalk(transport, true, operation, info, early, style);
    }

    /** The receives of an operation; early: they may be posted before the block runs. */
    static OpWalk receives(
        final NetTransport transport, final int operation, final NetOpsInfo info, final boolean early, final SemaphoreStyle style) {
        return new OpWalk(transport, false, operation, info, early, style);
    }

    /** Number of entries so far, while the walk is built. */
    int size() {
        return size;
    }

    /** Whether all the entries that the operation announces are there. */
    boolean isFull() {
        return size == comms.length;
    }

    void add(final NetSrcAddr entry, final long comm, final OpWalk before, final int beforeAt) {
        sources[size] = entry;
        add(comm, entry.hostAddress(), entry.registration(), entry.sizeBytes(), entry.mark(), before, beforeAt);
    }

    void add(final NetDestAddr entry, final long comm, final OpWalk before, final int beforeAt) {
        destinations[size] = entry;
        add(comm, entry.hostAddress(), entry.registration(), entry.sizeBytes(), entry.mark(), before, beforeAt);
    }

    private void add(
        final long comm, final long address, final long registration, final int sizeBytes, final NetAddrMark mark,
        final OpWalk before, final int beforeAt) {
        comms[size] = comm;
        addresses[size] = address;
        registrations[size] = registration;
        sizes[size] = sizeBytes;
        endsRound[size] = mark != NetAddrMark.NET_TRANSFER;
        beforeWalk[size] = before == this ? null : before;
        beforeIndex[size] = beforeAt;
        size++;
    }

    /** Begins a run: in the first one the device gets its credits, which a run gives back one by one, all of them by its end. */
    void begin() {
        if (sending && size > 0 && !credited) {
            credited = true;
            handshake.add(window);
        }
    }

    /** Clears what a run left behind. */
    void arm() {
        posted = 0;
        completed = 0;
        for (final NetSrcAddr source : sources) {
            source.complete(false);
        }
        for (final NetDestAddr destination : destinations) {
            destination.complete(false);
        }
    }

    boolean isFinished() {
        return completed == size;
    }

    boolean mayPostEarly() {
        return !sending && early;
    }

    /** Completes what is complete and posts what can be posted; how many of both. */
    int tick() {
        return harvest() + post();
    }

    private int harvest() {
        int work = 0;
        while (completed < posted) {
            final long moved = test();
            if (moved == NetTransport.PENDING) {
                break;
            }
            if (exactSizes && moved != sizes[completed]) {
                throw failure(completed, "complete", new NrtException(NrtStatus.FAILURE,
                    moved + " bytes came instead of " + sizes[completed]));
            }
            onComplete(completed++);
            work++;
        }
        return work;
    }

    private void onComplete(final int at) {
        if (sending) {
            sources[at].complete(true);
            handshake.add(1);
        } else {
            destinations[at].complete(true);
        }
        if (endsRound[at] && !(sending && early)) {
            complete.add(1);
        }
    }

    /** Posts as many as window and order allow and the network takes. */
    int post() {
        int work = 0;
        while (posted < size && posted - completed < window && isNext(posted)) {
            final long request = postOne();
            if (request == NetTransport.NOT_YET) {
                break;
            }
            ring[posted & RING_MASK] = request;
            onPosted(posted++);
            work++;
        }
        return work;
    }

    private boolean isNext(final int at) {
        final OpWalk before = beforeWalk[at];
        return before == null || before.posted > beforeIndex[at];
    }

    private void onPosted(final int at) {
        if (!sending) {
            handshake.add(1);
        } else if (early && endsRound[at]) {
            complete.add(1);
        }
    }

    private long test() {
        try {
            return transport.test(ring[completed & RING_MASK]);
        } catch (final NrtException ex) {
            throw failure(completed, "complete", ex);
        }
    }

    private long postOne() {
        final int at = posted;
        try {
            return sending
                ? transport.isend(comms[at], addresses[at], sizes[at], registrations[at])
                : transport.irecv(comms[at], addresses[at], sizes[at], registrations[at]);
        } catch (final NrtException ex) {
            throw failure(at, "post", ex);
        }
    }

    private NrtException failure(final int at, final String what, final NrtException cause) {
        final int peer = sending ? sources[at].dstRank() : destinations[at].srcRank();
        return new NrtException(NrtStatus.NETWORK_PROXY_FAILURE, "operation " + operation + " could not " + what + " "
            + (sending ? "send " : "receive ") + (at + 1) + " of " + size + (sending ? " to rank " : " from rank ") + peer + " ("
            + sizes[at] + " bytes, " + (posted - completed) + " in flight): " + cause.getMessage(), cause);
    }

    @Override
    public String toString() {
        return "operation " + operation + (sending ? " sends " : " receives ") + completed + "/" + posted + "/" + size;
    }
}
