package io.nrt4j.net.libfabric;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.net.MemoryInUseException;
import java.util.Arrays;

/**
 * What both directions of a communicator share: its request slots.
 *
 * <p>A slot belongs to a request until it was tested complete or failed. Posts are numbered; {@code slotOf} leads from a
 * number to its slot as long as the protocol needs it, which may be shorter than the slot's life.
 * Threads: under the engine's lock. Allocates nothing after construction, unless something fails.
 */
abstract class Comm {
    static final int NONE = -1;
    /** Most posts that the protocol has under way; a request that is done but not tested does not count. */
    static final int WINDOW = 128;
    /** Slots; a few more than the window, so that requests which wait to be tested do not hold posts up. */
    static final int SLOTS = 192;
    /** Rings are indexed by the low bits of a number. One end may be a whole window ahead of the other. */
    static final int RING = 2 * WINDOW;
    static final int RING_MASK = RING - 1;

    static final byte FREE = 0;
    static final byte PENDING = 1;
    /** Decided, but the provider has not given the memory up. */
    static final byte HELD = 2;
    static final byte DONE = 3;
    static final byte FAILED = 4;

    /** Index and generation as the other end knows them, 28 bits. */
    final int id;
    /** As the caller knows it. */
    final long handle;
    final Peer peer;
    /** The other end's {@link #id}. */
    int remoteId = NONE;
    boolean closed;
    /** Somebody has called its close, and not only begun it. */
    boolean closeTaken;
    /** Closed, and whoever closed it waits for its memory no longer: it may be removed. */
    boolean closeSaid;
    /** The other end has closed, and knows all that it must know about this one. */
    boolean remoteClosed;
    /** Why it takes no posts any more; null while it does. */
    String brokenCause;
    NrtStatus brokenStatus;
    /** After this the held requests of a broken communicator are answered without the provider. */
    long giveUpAtNs;

    final byte[] state = new byte[SLOTS];
    final int[] generation = new int[SLOTS];
    final long[] address = new long[SLOTS];
    /** Posted length. */
    final long[] length = new long[SLOTS];
    /** Outcome: bytes moved, once decided without a cause. */
    final long[] moved = new long[SLOTS];
    /** Outcome: why it failed, or null. */
    final String[] cause = new String[SLOTS];
    final NrtStatus[] causeStatus = new NrtStatus[SLOTS];
    final Registration[] registration = new Registration[SLOTS];
    /** A request was answered whose memory the provider may still touch. */
    boolean leftInUse;
    /** Failed, and the provider may still touch its memory. */
    final boolean[] inUse = new boolean[SLOTS];
    /** Operation that touches user memory, or NONE. */
    final int[] op = new int[SLOTS];
    /** Number of the slot's post. */
    final int[] number = new int[SLOTS];
    final int[] slotOf = new int[RING];

    /** Number of the next post, and of the oldest one that the protocol has not decided. */
    int next;
    int oldest;

    private final int[] freeSlots = new int[SLOTS];
    private int freeCount = SLOTS;

    Comm(final int id, final long handle, final Peer peer) {
        this.id = id;
        this.handle = handle;
        this.peer = peer;
        Arrays.fill(op, OpTable.NONE);
        Arrays.fill(slotOf, NONE);
        for (int i = 0; i < SLOTS; i++) {
            freeSlots[i] = SLOTS - 1 - i;
            // Differs from what an earlier owner of the table index handed out.
            generation[i] = (int) (handle >>> 16 << 12 & 0x7FFF_FFFF) | 1;
        }
    }

    abstract String direction();

    /** Takes a slot for a post, or answers NONE when there is no room. */
    final int takeSlot(final long start, final long lengthBytes, final Registration covering) {
        if (freeCount == 0 || next - oldest >= WINDOW) {
            return NONE;
        }
        final int slot = freeSlots[--freeCount];
        state[slot] = PENDING;
        address[slot] = start;
        length[slot] = lengthBytes;
        registration[slot] = covering;
        number[slot] = next;
        slotOf[next & RING_MASK] = slot;
        next++;
        return slot;
    }

    /** Takes a slot for a request that is done at once. */
    final int takeDoneSlot() {
        if (freeCount == 0) {
            return NONE;
        }
        final int slot = freeSlots[--freeCount];
        state[slot] = DONE;
        moved[slot] = 0;
        return slot;
    }

    final void freeSlot(final int slot) {
        state[slot] = FREE;
        generation[slot] = generation[slot] + 1 & 0x7FFF_FFFF;
        cause[slot] = null;
        causeStatus[slot] = null;
        registration[slot] = null;
        inUse[slot] = false;
        op[slot] = OpTable.NONE;
        freeSlots[freeCount++] = slot;
    }

    /** Frees the slot of a request that is over, and answers its bytes or throws why it failed. */
    final long answer(final int slot) {
        final String why = cause[slot];
        final NrtStatus status = causeStatus[slot];
        final long bytes = moved[slot];
        final boolean kept = inUse[slot];
        freeSlot(slot);
        if (why == null) {
            return bytes;
        }
        final String text = direction() + " on communicator " + Integer.toHexString(id) + ": " + why;
        throw kept ? new MemoryInUseException(status, text) : new NrtException(status, text);
    }

    /** The protocol is done with a post. */
    final void retire(final int post) {
        slotOf[post & RING_MASK] = NONE;
        while (oldest != next && slotOf[oldest & RING_MASK] == NONE) {
            oldest++;
        }
    }

    final void checkPost() {
        if (brokenCause != null) {
            throw new NrtException(brokenStatus, this + " is broken: " + brokenCause);
        }
    }

    @Override
    public String toString() {
        return direction() + " communicator " + Integer.toHexString(id) + " (next " + next + ", oldest " + oldest + ")";
    }
}
