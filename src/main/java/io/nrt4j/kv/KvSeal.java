package io.nrt4j.kv;

import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;

/**
 * Seals frames with a shared secret: HMAC-SHA256 over everything before the mac. Without a secret it does nothing and wants nothing.
 *
 * <p>Both directions are sealed, and an answer repeats the nonce of its request under the seal: a recorded answer is no answer to the
 * next request. A recorded <em>request</em> can be played again by who could record it; the store keeps no list of nonces.
 *
 * <p>Threads: one at a time; each owner has its own.
 */
final class KvSeal {
    private static final String ALGORITHM = "HmacSHA256";

    private final Mac mac;
    private final byte[] right = new byte[KvFrame.MAC_LENGTH];
    private final byte[] given = new byte[KvFrame.MAC_LENGTH];

    /**
     * A seal.
     *
     * @param secret empty for none.
     */
    KvSeal(final String secret) {
        mac = secret.isEmpty() ? null : keyed(secret);
    }

    private static Mac keyed(final String secret) {
        try {
            final Mac mac = Mac.getInstance(ALGORITHM);
            mac.init(new SecretKeySpec(secret.getBytes(StandardCharsets.UTF_8), ALGORITHM));
            return mac;
        } catch (final GeneralSecurityException ex) {
            throw new IllegalStateException(ALGORITHM + ", which every JDK must have, is not there", ex);
        }
    }

    /** Writes the mac of a frame that is otherwise complete. */
    void seal(final byte[] frame) {
        if (mac != null) {
            compute(frame);
            System.arraycopy(right, 0, frame, KvFrame.MAC_OFFSET, right.length);
        }
    }

    /**
     * Checks the mac of a whole frame, in a time that does not depend on how wrong it is.
     *
     * @return null if it is right, else what is wrong.
     */
    String fault(final byte[] frame) {
        final boolean none = KvFrame.isZero(frame, KvFrame.MAC_OFFSET, KvFrame.LENGTH);
        if (mac == null) {
            return none ? null : "it carries a MAC, but no secret is configured here";
        }
        if (none) {
            return "it carries no MAC, but a secret is configured here";
        }
        compute(frame);
        System.arraycopy(frame, KvFrame.MAC_OFFSET, given, 0, given.length);
        return MessageDigest.isEqual(right, given) ? null : "its MAC is wrong: the secrets differ, or it was changed on its way";
    }

    private void compute(final byte[] frame) {
        mac.update(frame, 0, KvFrame.MAC_OFFSET);
        try {
            mac.doFinal(right, 0);
        } catch (final GeneralSecurityException ex) {
            throw new IllegalStateException("a MAC of " + right.length + " bytes did not fit", ex);
        }
    }
}
