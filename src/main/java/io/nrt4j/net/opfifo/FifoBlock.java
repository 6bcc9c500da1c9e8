package io.nrt4j.net.opfifo;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.net.NetAddrMark;
import io.nrt4j.net.NetDestAddr;
import io.nrt4j.net.NetOpsInfo;
import io.nrt4j.net.NetSrcAddr;
import io.nrt4j.net.NetTransport;
import java.util.HashMap;
import java.util.Map;

/**
 * One basic block of a stream: its operations' walks, and whether they run.
 *
 * <pre>
 *   armed --begin--> running --all walks finished--> armed (hasRun)
 * </pre>
 *
 * <p>Threads: the thread that drives the block. A tick allocates nothing unless it fails.
 */
final class FifoBlock {
    private static final int MAX_SHIFT = 31;

    private final int id;
    private final OpWalk[] sends;
    private final OpWalk[] receives;
    private boolean running;
    private boolean hasRun;

    /** What the proxy as a whole allows. */
    record Policy(NetTransport transport, boolean earlyPosting, boolean earlyCompletion, SemaphoreStyle style) {
    }

    /** Last entry to a peer while a list is read. */
    private record Place(OpWalk walk, int index) {
    }

    FifoBlock(
        final int id, final int stream, final NetOpsInfo[] operations, final NetSrcAddr[] sources,
        final NetDestAddr[] destinations, final PeerLinks links, final Policy policy) {
        this.id = id;
        sends = new OpWalk[operations.length];
        receives = new OpWalk[operations.length];
        for (int i = 0; i < operations.length; i++) {
            final NetOpsInfo info = checked(i, operations[i], sources.length, destinations.length);
            sends[i] = OpWalk.sends(policy.transport(), i, info, info.earlySendCompletion() && policy.earlyCompletion(),
                policy.style());
            receives[i] = OpWalk.receives(policy.transport(), i, info, info.earlyRecvPosting() && policy.earlyPosting(),
                policy.style());
        }
        readSources(sources, stream, links);
        readDestinations(destinations, stream, links);
        for (int i = 0; i < operations.length; i++) {
            if (!sends[i].isFull() || !receives[i].isFull()) {
                throw malformed("operation " + i + " announces " + operations[i].txEntryCnt() + " sends and "
                    + operations[i].rxEntryCnt() + " receives, but there are " + sends[i].size() + " and " + receives[i].size());
            }
            sends[i].arm();
            receives[i].arm();
        }
    }

    private static NetOpsInfo checked(final int index, final NetOpsInfo info, final int sources, final int destinations) {
        if (info == null) {
            throw malformed("operation " + index + " is null");
        }
        if (info.txEntryCnt() < 0 || info.txEntryCnt() > sources || info.rxEntryCnt() < 0 || info.rxEntryCnt() > destinations) {
            throw malformed("operation " + index + " announces " + info.txEntryCnt() + " sends and " + info.rxEntryCnt()
                + " receives, with " + sources + " and " + destinations + " entries in the lists");
        }
        if (info.semaShiftOffset() < 0 || info.semaShiftOffset() > MAX_SHIFT || info.initialSendCredits() < 0) {
            throw malformed("operation " + index + " shifts by " + info.semaShiftOffset() + " and has "
                + info.initialSendCredits() + " credits");
        }
        return info;
    }

    private void readSources(final NetSrcAddr[] sources, final int stream, final PeerLinks links) {
        final Map<Integer, Place> last = new HashMap<>();
        for (int i = 0; i < sources.length; i++) {
            final NetSrcAddr entry = sources[i];
            if (entry == null) {
                throw malformed("send entry " + i + " is null");
            }
            if (isTransfer("send", i, sources.length, entry.mark(), entry.hostAddress(), entry.sizeBytes())) {
                final OpWalk walk = walkOf("send", i, entry.netOpIdx(), sends);
                final Place before = last.put(entry.dstRank(), new Place(walk, walk.size()));
                walk.add(entry, links.sendComm(stream, entry.dstRank()), before == null ? null : before.walk(),
                    before == null ? 0 : before.index());
            }
        }
    }

    private void readDestinations(final NetDestAddr[] destinations, final int stream, final PeerLinks links) {
        final Map<Integer, Place> last = new HashMap<>();
        for (int i = 0; i < destinations.length; i++) {
            final NetDestAddr entry = destinations[i];
            if (entry == null) {
                throw malformed("receive entry " + i + " is null");
            }
            if (isTransfer("receive", i, destinations.length, entry.mark(), entry.hostAddress(), entry.sizeBytes())) {
                final OpWalk walk = walkOf("receive", i, entry.netOpIdx(), receives);
                final Place before = last.put(entry.srcRank(), new Place(walk, walk.size()));
                walk.add(entry, links.recvComm(stream, entry.srcRank()), before == null ? null : before.walk(),
                    before == null ? 0 : before.index());
            }
        }
    }

    /** Whether an entry moves data; a list must end in EXEC_COMPLETE and have it nowhere else. */
    private static boolean isTransfer(
        final String kind, final int at, final int count, final NetAddrMark mark, final long address, final int sizeBytes) {
        final boolean last = at == count - 1;
        if (last != (mark == NetAddrMark.EXEC_COMPLETE)) {
            throw malformed(kind + " entry " + (at + 1) + " of " + count + " is marked " + mark
                + "; the last one, and only that, must be EXEC_COMPLETE");
        }
        if (address == 0 && (mark != NetAddrMark.EXEC_COMPLETE || sizeBytes != 0) || sizeBytes < 0) {
            throw malformed(kind + " entry " + (at + 1) + " of " + count + " (" + mark + ") has address 0x"
                + Long.toHexString(address) + " and size " + sizeBytes);
        }
        return address != 0;
    }

    private static OpWalk walkOf(final String kind, final int at, final int operation, final OpWalk[] walks) {
        if (operation < 0 || operation >= walks.length || walks[operation].isFull()) {
            throw malformed(kind + " entry " + (at + 1) + " is of operation " + operation + ", which has no such entry");
        }
        return walks[operation];
    }

    private static NrtException malformed(final String what) {
        return new NrtException(NrtStatus.INVALID, what);
    }

    int id() {
        return id;
    }

    boolean isRunning() {
        return running;
    }

    boolean hasRun() {
        return hasRun;
    }

    boolean mayPostEarly() {
        for (final OpWalk walk : receives) {
            if (walk.mayPostEarly() && !walk.isFinished()) {
                return true;
            }
        }
        return false;
    }

    /** Begins a run by posting the receives that may be posted early. */
    void postEarly() {
        begin();
        for (final OpWalk walk : receives) {
            if (walk.mayPostEarly()) {
                walk.post();
            }
        }
    }

    private void begin() {
        running = true;
        for (final OpWalk walk : sends) {
            walk.begin();
        }
    }

    /** One tick of the present run, or of a new one; how much moved. */
    int tick() {
        if (!running) {
            begin();
        }
        int work = 0;
        // Receives first: a peer's send finds its receive posted.
        for (final OpWalk walk : receives) {
            work += walk.tick();
        }
        for (final OpWalk walk : sends) {
            work += walk.tick();
        }
        return work;
    }

    /** Whether the run is complete; if so, the block is armed for the next one. */
    boolean finish() {
        for (int i = 0; i < sends.length; i++) {
            if (!sends[i].isFinished() || !receives[i].isFinished()) {
                return false;
            }
        }
        for (int i = 0; i < sends.length; i++) {
            sends[i].arm();
            receives[i].arm();
        }
        running = false;
        hasRun = true;
        return true;
    }
}
