package io.nrt4j.net.libfabric;

/**
 * The operations that the provider holds. Operation i has the native context {@code base + 64 * i}, which the provider may
 * use and which a completion names; what it belongs to stands in the arrays here.
 *
 * <p>Threads: under the endpoint's lock. Allocates nothing after construction.
 */
final class OpTable {
    static final int NONE = -1;
    /** A receive of a library message; the owner is its {@link LibraryBuffer}. */
    static final byte LIBRARY_RECV = 1;
    /** A send of a library message; the owner is its {@link LibraryBuffer}. */
    static final byte LIBRARY_SEND = 2;
    /** A receive into user memory; the owner is a {@link RecvComm}, or null once the request was answered without it. */
    static final byte DIRECT_RECV = 3;
    /** A send from user memory; the owner is a {@link SendComm}, or null once the request was answered without it. */
    static final byte DIRECT_SEND = 4;
    /** A receive that swallows a message nobody waits for; the argument is unused, the native memory is freed with it. */
    static final byte SINK = 5;

    final byte[] kind;
    final Object[] owner;
    /** Request slot of the owner. */
    final int[] slot;
    /** Held as long as the provider may touch its memory. */
    final Registration[] registration;
    /** Address that is freed with the operation, or 0. */
    final long[] memory;

    private final long base;
    private final int capacity;
    private final int[] free;
    private int freeCount;

    OpTable(final int capacity) {
        this.capacity = capacity;
        kind = new byte[capacity];
        owner = new Object[capacity];
        slot = new int[capacity];
        registration = new Registration[capacity];
        memory = new long[capacity];
        free = new int[capacity];
        base = Memory.allocate((long) capacity * FiLayout.CONTEXT_BYTES);
        for (int op = capacity - 1; op >= 0; op--) {
            free[freeCount++] = op;
        }
    }

    /** Takes an operation, or {@link #NONE}. */
    int take(final byte opKind, final Object opOwner, final int opSlot, final Registration opRegistration) {
        if (freeCount == 0) {
            return NONE;
        }
        final int op = free[--freeCount];
        kind[op] = opKind;
        owner[op] = opOwner;
        slot[op] = opSlot;
        registration[op] = opRegistration;
        if (opRegistration != null) {
            opRegistration.hold();
        }
        return op;
    }

    /** Gives an operation back that the provider has given up. */
    void release(final int op) {
        if (kind[op] == 0) {
            throw new IllegalStateException("operation " + op + " came back twice");
        }
        kind[op] = 0;
        owner[op] = null;
        final Registration held = registration[op];
        registration[op] = null;
        if (held != null) {
            held.release();
        }
        if (memory[op] != 0) {
            Memory.free(memory[op]);
            memory[op] = 0;
        }
        free[freeCount++] = op;
    }

    /** Operations of a kind that the provider has; looks at all. */
    int count(final byte opKind) {
        int count = 0;
        for (final byte each : kind) {
            count += each == opKind ? 1 : 0;
        }
        return count;
    }

    long context(final int op) {
        return base + (long) op * FiLayout.CONTEXT_BYTES;
    }

    /** The operation of a context, or {@link #NONE}. */
    int of(final long context) {
        final long offset = context - base;
        return context == 0 || offset < 0 || offset >= (long) capacity * FiLayout.CONTEXT_BYTES || kind[(int) (offset >> 6)] == 0
            ? NONE : (int) (offset >> 6);
    }

    /** Asks the provider to give up the receives into memory other than library buffers. */
    void cancelReceives(final DataPath path) {
        for (int op = 0; op < capacity; op++) {
            if (kind[op] == DIRECT_RECV || kind[op] == SINK) {
                path.cancel(context(op));
            }
        }
    }

    /** Frees the contexts, and what the operations still held; the endpoint is closed by then. */
    void free() {
        for (int op = 0; op < capacity; op++) {
            if (kind[op] != 0) {
                release(op);
            }
        }
        Memory.free(base);
    }
}
