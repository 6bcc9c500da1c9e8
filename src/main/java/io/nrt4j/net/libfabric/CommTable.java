package io.nrt4j.net.libfabric;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import java.util.Arrays;

/**
 * The communicators of a transport. The low 16 bits of a communicator's id, of its handle and of its requests are its index
 * here; the rest tells it from earlier owners of the index.
 *
 * <p>Threads: under the engine's lock. Looking one up allocates nothing unless it fails.
 */
final class CommTable {
    private static final int MAX_COMMS = 1 << 16;
    private static final int INDEX_MASK = MAX_COMMS - 1;
    private static final int GENERATION_MASK = 0xFFF;

    private Comm[] comms = new Comm[64];
    private int[] generations = new int[64];
    private long counter;

    /** Makes a communicator. */
    Comm add(final boolean send, final Peer peer) {
        int index = 0;
        while (index < comms.length && comms[index] != null) {
            index++;
        }
        if (index == MAX_COMMS) {
            throw new NrtException(NrtStatus.RESOURCE, "there are " + MAX_COMMS + " communicators already");
        }
        if (index == comms.length) {
            comms = Arrays.copyOf(comms, index * 2);
            generations = Arrays.copyOf(generations, index * 2);
        }
        generations[index] = generations[index] + 1 & GENERATION_MASK;
        final int id = generations[index] << 16 | index;
        final long handle = ++counter << 16 | index;
        final Comm comm = send ? new SendComm(id, handle, peer) : new RecvComm(id, handle, peer);
        comms[index] = comm;
        return comm;
    }

    /** The communicator at an index, closed or not; null when there is none. */
    Comm at(final int index) {
        return index < comms.length ? comms[index] : null;
    }

    /** The communicator with an id on a peer, closed or not; null when there is none. */
    Comm find(final int id, final Peer peer) {
        final Comm comm = at(id & INDEX_MASK);
        return comm != null && comm.id == id && comm.peer == peer ? comm : null;
    }

    /** The communicator with a handle, closed or not; null when there is none. */
    Comm find(final long handle) {
        final Comm comm = at((int) handle & INDEX_MASK);
        return comm != null && comm.handle == handle ? comm : null;
    }

    /** The open communicator with a handle; null when there is none. */
    Comm findOpen(final long handle, final boolean send) {
        final Comm comm = find(handle);
        return comm != null && !comm.closed && comm instanceof SendComm == send ? comm : null;
    }

    /** The open communicator with a handle; throws when there is none. */
    Comm open(final long handle, final boolean send) {
        final Comm comm = findOpen(handle, send);
        if (comm == null) {
            throw new NrtException(NrtStatus.INVALID_HANDLE, "0x" + Long.toHexString(handle) + " is no open "
                + (send ? "send" : "receive") + " communicator");
        }
        return comm;
    }

    /** The table itself, with holes; not to be changed. */
    Comm[] all() {
        return comms;
    }

    void remove(final Comm comm) {
        if (at(comm.id & INDEX_MASK) == comm) {
            comms[comm.id & INDEX_MASK] = null;
        }
    }

    void clear() {
        Arrays.fill(comms, null);
    }
}
