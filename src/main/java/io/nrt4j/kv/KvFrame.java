package io.nrt4j.kv;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * The one message of the key-value store ({@code KV_STORE_BUFFER_LENGTH}): 1156 bytes, little endian, for requests and answers.
 *
 * <pre>
 *     0        1         2        4           8            12          156           1108           1116       1124     1156
 *     +--------+---------+--------+-----------+------------+-----------+-------------+--------------+----------+--------+
 *     | opcode | version | magic  | key_len   | value_len  | key[144]  | value[952]  | server_epoch | nonce    | mac[32]|
 *     | u8     | u8 = 1  | u16 KV | u32       | u32        |           |             | u64          | u64      |        |
 *     +--------+---------+--------+-----------+------------+-----------+-------------+--------------+----------+--------+
 * </pre>
 *
 * <p>Unused bytes are zero. {@code server_epoch} is 0 in a request and not 0 in an answer, so that a request that somebody sends back
 * is never an answer. An answer repeats its request's nonce. {@code mac} is zero unless a secret is configured, see {@link KvSeal}.
 *
 * <p>Static methods over a caller's array of {@link #LENGTH} bytes; nothing is shared and nothing allocated but the texts of faults.
 */
public final class KvFrame {
    /** Bytes of a frame. */
    public static final int LENGTH = 1156;
    /** Longest key, in bytes. */
    public static final int MAX_KEY_LENGTH = 144;
    /** Longest value, in bytes. */
    public static final int MAX_VALUE_LENGTH = 952;

    /** Stores a value; acknowledged with the same opcode. */
    public static final int SET = 1;
    /** Reads a value; answered with the same opcode. */
    public static final int GET = 2;
    /** Reads a value and removes it; answered with the same opcode. */
    public static final int TAKE = 3;
    /** The client is done; not answered. */
    public static final int END = 4;
    /** Answer: there is no such key. */
    public static final int NOT_FOUND = 5;
    /** Answer: the request was refused; the value is the reason in ASCII. */
    public static final int ERROR = 6;

    static final int VERSION = 1;
    static final int MAGIC = 0x564B;

    static final int OPCODE_OFFSET = 0;
    static final int VERSION_OFFSET = 1;
    static final int MAGIC_OFFSET = 2;
    static final int KEY_LENGTH_OFFSET = 4;
    static final int VALUE_LENGTH_OFFSET = 8;
    static final int KEY_OFFSET = 12;
    static final int VALUE_OFFSET = 156;
    static final int SERVER_EPOCH_OFFSET = 1108;
    static final int NONCE_OFFSET = 1116;
    static final int MAC_OFFSET = 1124;
    static final int MAC_LENGTH = LENGTH - MAC_OFFSET;

    private static final VarHandle INT = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);
    private static final VarHandle LONG = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
    private static final byte[] NOTHING = {};

    private KvFrame() {
    }

    /**
     * Fills a frame, but for its mac.
     *
     * @param frame       {@link #LENGTH} bytes; every byte is written.
     * @param opcode      one of the constants.
     * @param key         at most {@link #MAX_KEY_LENGTH} bytes.
     * @param value       at most {@link #MAX_VALUE_LENGTH} bytes.
     * @param serverEpoch 0 in a request, the server's in an answer.
     * @param nonce       the request's.
     */
    static void encode(
        final byte[] frame, final int opcode, final byte[] key, final byte[] value, final long serverEpoch, final long nonce) {
        Arrays.fill(frame, (byte) 0);
        frame[OPCODE_OFFSET] = (byte) opcode;
        frame[VERSION_OFFSET] = VERSION;
        frame[MAGIC_OFFSET] = (byte) MAGIC;
        frame[MAGIC_OFFSET + 1] = (byte) (MAGIC >>> 8);
        INT.set(frame, KEY_LENGTH_OFFSET, key.length);
        INT.set(frame, VALUE_LENGTH_OFFSET, value.length);
        System.arraycopy(key, 0, frame, KEY_OFFSET, key.length);
        System.arraycopy(value, 0, frame, VALUE_OFFSET, value.length);
        LONG.set(frame, SERVER_EPOCH_OFFSET, serverEpoch);
        LONG.set(frame, NONCE_OFFSET, nonce);
    }

    /** Fills a frame that has neither key nor value. */
    static void encode(final byte[] frame, final int opcode, final long serverEpoch, final long nonce) {
        encode(frame, opcode, NOTHING, NOTHING, serverEpoch, nonce);
    }

    static int opcode(final byte[] frame) {
        return frame[OPCODE_OFFSET] & 0xFF;
    }

    static int keyLength(final byte[] frame) {
        return (int) INT.get(frame, KEY_LENGTH_OFFSET);
    }

    static int valueLength(final byte[] frame) {
        return (int) INT.get(frame, VALUE_LENGTH_OFFSET);
    }

    static long serverEpoch(final byte[] frame) {
        return (long) LONG.get(frame, SERVER_EPOCH_OFFSET);
    }

    static long nonce(final byte[] frame) {
        return (long) LONG.get(frame, NONCE_OFFSET);
    }

    static void nonce(final byte[] frame, final long nonce) {
        LONG.set(frame, NONCE_OFFSET, nonce);
    }

    /** The key as a text of one character a byte, which is compact and compares by content. */
    static String key(final byte[] frame) {
        return new String(frame, KEY_OFFSET, keyLength(frame), StandardCharsets.ISO_8859_1);
    }

    static byte[] value(final byte[] frame) {
        return Arrays.copyOfRange(frame, VALUE_OFFSET, VALUE_OFFSET + valueLength(frame));
    }

    /** The value as a text that is safe to log. */
    static String valueText(final byte[] frame) {
        return printable(new String(frame, VALUE_OFFSET, valueLength(frame), StandardCharsets.ISO_8859_1));
    }

    /**
     * Name of an opcode, for texts.
     *
     * @param opcode any number.
     * @return never null.
     */
    public static String name(final int opcode) {
        return switch (opcode) {
            case SET -> "SET";
            case GET -> "GET";
            case TAKE -> "TAKE";
            case END -> "END";
            case NOT_FOUND -> "NOT_FOUND";
            case ERROR -> "ERROR";
            default -> "opcode " + opcode;
        };
    }

    /** A text with everything but printable ASCII replaced by a point; zeros at its end are left out. */
    static String printable(final String text) {
        int end = text.length();
        while (end > 0 && text.charAt(end - 1) == 0) {
            end--;
        }
        final StringBuilder out = new StringBuilder(end);
        for (int i = 0; i < end; i++) {
            final char c = text.charAt(i);
            out.append(c >= ' ' && c <= '~' ? c : '.');
        }
        return out.toString();
    }

    /**
     * Whether the first bytes of a frame can be the beginning of one. Meant to be asked after every read, so that a stranger is
     * known by its first wrong byte.
     *
     * @param frame   holds the bytes.
     * @param have    how many bytes there are, 0 to {@link #LENGTH}.
     * @param request true for what a client may say, false for what a server may say.
     * @return null if they can, else what is wrong.
     */
    static String prefixFault(final byte[] frame, final int have, final boolean request) {
        if (have > OPCODE_OFFSET && !mayBegin(opcode(frame), request)) {
            return "its first byte 0x" + Integer.toHexString(opcode(frame)) + " begins no " + (request ? "request" : "answer");
        }
        if (have > VERSION_OFFSET && frame[VERSION_OFFSET] != VERSION) {
            return "its version is " + (frame[VERSION_OFFSET] & 0xFF) + ", not " + VERSION;
        }
        if (have > MAGIC_OFFSET && frame[MAGIC_OFFSET] != (byte) MAGIC
            || have > MAGIC_OFFSET + 1 && frame[MAGIC_OFFSET + 1] != (byte) (MAGIC >>> 8)) {
            return "its magic is wrong";
        }
        if (littleEndian(frame, KEY_LENGTH_OFFSET, have) > MAX_KEY_LENGTH) {
            return "its key is longer than " + MAX_KEY_LENGTH + " bytes";
        }
        if (littleEndian(frame, VALUE_LENGTH_OFFSET, have) > MAX_VALUE_LENGTH) {
            return "its value is longer than " + MAX_VALUE_LENGTH + " bytes";
        }
        return null;
    }

    private static boolean mayBegin(final int opcode, final boolean request) {
        return request ? opcode >= SET && opcode <= END : opcode >= SET && opcode <= ERROR && opcode != END;
    }

    /** A number of which perhaps only the lower bytes are there yet: what they say is its least possible value. */
    private static long littleEndian(final byte[] frame, final int offset, final int have) {
        long least = 0;
        for (int i = 0; i < Integer.BYTES && offset + i < have; i++) {
            least |= (frame[offset + i] & 0xFFL) << (i * Byte.SIZE);
        }
        return least;
    }

    /**
     * What is wrong with a whole frame, leaving its mac aside.
     *
     * @param frame   {@link #LENGTH} bytes.
     * @param request true for what a client may say, false for what a server may say.
     * @return null if nothing is.
     */
    static String fault(final byte[] frame, final boolean request) {
        final String prefix = prefixFault(frame, LENGTH, request);
        if (prefix != null) {
            return prefix;
        }
        if (!isZero(frame, KEY_OFFSET + keyLength(frame), VALUE_OFFSET)
            || !isZero(frame, VALUE_OFFSET + valueLength(frame), SERVER_EPOCH_OFFSET)) {
            return "its unused bytes are not zero";
        }
        if (request != (serverEpoch(frame) == 0)) {
            return request ? "it is an answer" : "it is a request, perhaps our own sent back";
        }
        return null;
    }

    static boolean isZero(final byte[] frame, final int from, final int to) {
        for (int i = from; i < to; i++) {
            if (frame[i] != 0) {
                return false;
            }
        }
        return true;
    }
}
