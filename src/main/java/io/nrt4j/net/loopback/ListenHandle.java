package io.nrt4j.net.loopback;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.net.NetTransport;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.UUID;

/**
 * The 128 bytes by which a peer finds a listener, little endian:
 *
 * <pre>
 *  +0   magic    8  "NRT4JLPB"
 *  +8   version  4  1
 *  +12  zero     4
 *  +16  id      16  random, of the listener
 *  +32  pending  8  number of the connect that is under way with this array; 0 is none
 *  +40  zero    88
 * </pre>
 */
final class ListenHandle {
    static final int VERSION = 1;

    private static final long MAGIC = 0x42504c4a3454524eL;
    private static final int VERSION_AT = 8;
    private static final int ID_AT = 16;
    private static final int PENDING_AT = 32;

    private ListenHandle() {
    }

    /** Writes a fresh handle. */
    static void write(final byte[] handle, final UUID id) {
        checkLength(handle);
        Arrays.fill(handle, (byte) 0);
        over(handle).putLong(0, MAGIC).putInt(VERSION_AT, VERSION)
            .putLong(ID_AT, id.getMostSignificantBits()).putLong(ID_AT + Long.BYTES, id.getLeastSignificantBits());
    }

    /** Reads a handle's listener, or refuses what is not a handle of this transport. */
    static UUID readId(final byte[] handle) {
        checkLength(handle);
        final ByteBuffer bytes = over(handle);
        if (bytes.getLong(0) != MAGIC) {
            throw new NrtException(NrtStatus.INVALID, "loopback: not a listen handle of this transport: it begins with 0x"
                + Long.toHexString(Long.reverseBytes(bytes.getLong(0))));
        }
        final int version = bytes.getInt(VERSION_AT);
        if (version != VERSION) {
            throw new NrtException(NrtStatus.INVALID,
                "loopback: the listen handle has version " + version + "; this is version " + VERSION);
        }
        return new UUID(bytes.getLong(ID_AT), bytes.getLong(ID_AT + Long.BYTES));
    }

    /** Number of the connect under way; 0 is none. */
    static long readPending(final byte[] handle) {
        return over(handle).getLong(PENDING_AT);
    }

    /** Notes the connect under way; 0 is none. */
    static void writePending(final byte[] handle, final long pending) {
        over(handle).putLong(PENDING_AT, pending);
    }

    private static void checkLength(final byte[] handle) {
        if (handle == null || handle.length != NetTransport.HANDLE_BYTES) {
            throw new NrtException(NrtStatus.INVALID, "loopback: a listen handle has " + NetTransport.HANDLE_BYTES + " bytes, not "
                + (handle == null ? "null" : handle.length));
        }
    }

    private static ByteBuffer over(final byte[] handle) {
        return ByteBuffer.wrap(handle).order(ByteOrder.LITTLE_ENDIAN);
    }
}
