package io.nrt4j.sendrecv;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * The keys of the rendezvous.
 *
 * <pre>
 *   offset  0        7                 11                15                       143
 *           "handle-" send lnc (4, LE)  recv lnc (4, LE)  host identity, zeros (128)
 * </pre>
 *
 * <p>Both ends build the same key: SEND from (own lnc, peer's lnc, own host), RECV from (peer's lnc, own lnc, peer's host).
 * Ports {@code async_sr_create_handle_req_key}.
 */
final class HandleKey {
    /** Bytes of a host identity. */
    static final int HOSTNAME_BYTES = 128;

    private static final byte[] PREFIX = "handle-".getBytes(StandardCharsets.US_ASCII);
    private static final byte[] HOSTNAME = "hostname".getBytes(StandardCharsets.US_ASCII);
    private static final int LENGTH = PREFIX.length + 2 * Integer.BYTES + HOSTNAME_BYTES;

    private HandleKey() {
    }

    /** Well-known key under which each host's server has the host's identity. */
    static byte[] hostname() {
        return HOSTNAME.clone();
    }

    /** Key of a listen handle. */
    static byte[] of(final int sendLnc, final int recvLnc, final byte[] senderHostname) {
        if (senderHostname.length != HOSTNAME_BYTES) {
            throw new IllegalArgumentException("a host identity has " + HOSTNAME_BYTES + " bytes: " + senderHostname.length);
        }
        final byte[] key = Arrays.copyOf(PREFIX, LENGTH);
        putLittleEndian(key, PREFIX.length, sendLnc);
        putLittleEndian(key, PREFIX.length + Integer.BYTES, recvLnc);
        System.arraycopy(senderHostname, 0, key, PREFIX.length + 2 * Integer.BYTES, HOSTNAME_BYTES);
        return key;
    }

    private static void putLittleEndian(final byte[] target, final int at, final int value) {
        for (int i = 0; i < Integer.BYTES; i++) {
            target[at + i] = (byte) (value >>> 8 * i);
        }
    }
}
