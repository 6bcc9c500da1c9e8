package io.nrt4j.net.libfabric;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/**
 * A frame on a control connection, 256 bytes, big endian:
 * <pre>
 *   0 int   magic "NRTF"      8 long a     40 int   length of the name
 *   4 short version           16 long b    44 int   length of the text
 *   6 short type              24 long c    48 name, 128 bytes (an endpoint's)
 *                             32 long d   176 text, 80 bytes
 * </pre>
 *
 * @param type what it says.
 * @param a    first number.
 * @param b    second number.
 * @param c    third number.
 * @param d    fourth number.
 * @param name endpoint's address.
 * @param text for people, or to compare.
 */
record ControlFrame(int type, long a, long b, long c, long d, byte[] name, String text) {
    static final int BYTES = 256;
    static final int MAGIC = 0x4E525446;
    static final int VERSION = 5;

    /** a: own instance, b: expected instance, c: peer index and key, d: window and eager limit; name; text: provider. */
    static final int HELLO = 1;
    /** The same, in answer. */
    static final int HELLO_ACK = 2;
    /** text: why there is no connection. a: 0 when the listener's handle is stale, 1 when no other one will do either. */
    static final int REFUSED = 3;
    /** Another connection between the two wins. */
    static final int COLLISION = 4;
    /** a: listener, b: the sender's communicator. */
    static final int COMM_OPEN = 5;
    /** a: the sender's communicator, b: the receiver's. */
    static final int COMM_ACCEPTED = 6;
    /** a: the sender's communicator; text: why. */
    static final int COMM_REFUSED = 7;
    /** a: the sender's communicator, which no longer waits. */
    static final int COMM_ABANDONED = 8;
    /** a: the receiver's communicator, b: posts transmitted. */
    static final int SEND_CLOSED = 9;
    /**
     * a: the sender's communicator, b: the receiver's, c: receives posted; name: a bit for each of the last {@link Comm#RING}, whether its
     * message has arrived.
     */
    static final int RECV_CLOSED = 10;
    /** a: the receiver's communicator, b: posts transmitted; name: a bit for each of the last {@link Comm#RING}, whether it was long. */
    static final int RECV_CLOSED_ACK = 11;
    /** a: the receiver's communicator, b: number of the post that will not come; text: why. */
    static final int ABORT_RECV = 12;
    /** The transport is being closed. a: library messages sent, b: long messages sent; text: why, when it is not at will. */
    static final int BYE = 13;
    /** What was sent before the goodbye has arrived. */
    static final int BYE_ACK = 14;
    /** The provider's connection between the two comes from the sender, from here. a: port; name: IP address. */
    static final int DATA_FROM = 15;

    private static final int NAME = 48;
    private static final int TEXT = 176;
    private static final int MAX_NAME = TEXT - NAME;
    private static final int MAX_TEXT = BYTES - TEXT;

    static ControlFrame of(final int type, final long a, final long b, final String text) {
        return new ControlFrame(type, a, b, 0, 0, new byte[0], text);
    }

    ByteBuffer encode() {
        final ByteBuffer bytes = ByteBuffer.allocate(BYTES);
        final byte[] encoded = text.getBytes(StandardCharsets.US_ASCII);
        final int textLength = Math.min(encoded.length, MAX_TEXT);
        bytes.putInt(MAGIC).putShort((short) VERSION).putShort((short) type).putLong(a).putLong(b).putLong(c).putLong(d)
            .putInt(name.length).putInt(textLength);
        bytes.put(NAME, name).put(TEXT, encoded, 0, textLength);
        return bytes.rewind();
    }

    /** Reads a frame; null when it is none. */
    static ControlFrame decode(final ByteBuffer bytes) {
        final int nameLength = bytes.getInt(40);
        final int textLength = bytes.getInt(44);
        if (bytes.getInt(0) != MAGIC || bytes.getShort(4) != VERSION || nameLength < 0 || nameLength > MAX_NAME
            || textLength < 0 || textLength > MAX_TEXT) {
            return null;
        }
        final byte[] name = new byte[nameLength];
        bytes.get(NAME, name);
        final byte[] text = new byte[textLength];
        bytes.get(TEXT, text);
        return new ControlFrame(bytes.getShort(6), bytes.getLong(8), bytes.getLong(16), bytes.getLong(24), bytes.getLong(32), name,
            new String(text, StandardCharsets.US_ASCII));
    }
}
