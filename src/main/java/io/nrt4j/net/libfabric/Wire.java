package io.nrt4j.net.libfabric;

/**
 * Layout of a library message, native byte order (both ends have the same, which the hello checks):
 * <pre>
 * 0  int    index of the sending peer at the receiver
 * 4  int    its key
 * 8  int    messages of the receiver that the sender has consumed, modulo 2^32
 * 12 int    number of items
 * 16 items, 16 bytes each:
 *    0  int   type (high 4 bits) and communicator at the receiver (28 bits)
 *    4  int   number of the post
 *    8  long  repeat count - 1 (high 8 bits) and length
 * then the data of the DATA item, which is the last one
 * </pre>
 * Library messages have tag 0. A long message has no header, and the tag {@code 1 << 63 | communicator << 32 | number}.
 *
 * <p>Where each peer has an endpoint of its own, a short message that the provider would carry at once but for the header goes
 * without one, into a library buffer all the same: its tag {@code 1 << 62 | communicator << 32 | number} says what an item would.
 */
final class Wire {
    static final int INDEX = 0;
    static final int KEY = 4;
    static final int RETURNED = 8;
    static final int ITEMS = 12;
    static final int HEADER_BYTES = 16;
    static final int ITEM_POST = 4;
    static final int ITEM_VALUE = 8;
    static final int ITEM_BYTES = 16;

    /** A short message; the data follows. */
    static final int DATA = 1;
    /** A receive that is to be served by a short message. */
    static final int POSTED_SHORT = 2;
    /** A receive that the provider has: send the long message. */
    static final int POSTED_DIRECT = 3;
    /** A receive longer than short, which the provider has no room for yet: send a short message, or demand it. */
    static final int POSTED_ASK = 4;
    /** The sender has a long message for an announced receive that the provider does not have. */
    static final int DEMAND = 5;
    /** The message is longer than its receive, and will not come. */
    static final int TOO_LONG = 6;

    static final int ID_BITS = 28;
    static final int ID_MASK = (1 << ID_BITS) - 1;
    static final int COUNT_SHIFT = 56;
    static final long LENGTH_MASK = (1L << COUNT_SHIFT) - 1;
    static final int MAX_COUNT = 128;

    static final long LIBRARY_TAG = 0;
    /** Tag bits that do not matter to a library buffer which also takes bare messages. */
    static final long BARE_IGNORED = ~(1L << 63);

    private Wire() {
    }

    /** Whether a type announces a receive: the only ones that are for a sender. */
    static boolean isPosted(final int type) {
        return type >= POSTED_SHORT && type <= POSTED_ASK;
    }

    static long bareTag(final int commId, final int number) {
        return 1L << 62 | (long) commId << 32 | number & 0xFFFF_FFFFL;
    }

    /** Communicator of a bare message. */
    static int bareId(final long tag) {
        return (int) (tag >>> 32) & ID_MASK;
    }

    static long directTag(final int commId, final int number) {
        return 1L << 63 | (long) commId << 32 | number & 0xFFFF_FFFFL;
    }
}
