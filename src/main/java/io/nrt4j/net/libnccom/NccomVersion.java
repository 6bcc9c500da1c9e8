package io.nrt4j.net.libnccom;

import com.sun.jna.Pointer;
import java.nio.charset.StandardCharsets;

/**
 * What the library says it is.
 *
 * <pre>
 *  +0 major u64   +8 minor u64   +16 patch u64   +24 maintenance u64   +32 git hash, text   +48 compatibility id u64   56 bytes
 * </pre>
 *
 * @param major           as the library says.
 * @param minor           as the library says.
 * @param patch           as the library says.
 * @param maintenance     as the library says.
 * @param gitHash         up to 16 characters.
 * @param compatibilityId what must be {@link #COMPATIBLE}.
 */
record NccomVersion(long major, long minor, long patch, long maintenance, String gitHash, long compatibilityId) {
    static final int BYTES = 56;
    static final int MAJOR = 0;
    static final int MINOR = 8;
    static final int PATCH = 16;
    static final int MAINTENANCE = 24;
    static final int GIT_HASH = 32;
    static final int GIT_HASH_BYTES = 16;
    static final int COMPATIBILITY_ID = 48;

    /** The one compatibility id that the boundary here is right for. */
    static final long COMPATIBLE = 89;

    static NccomVersion read(final Pointer info) {
        final byte[] hash = info.getByteArray(GIT_HASH, GIT_HASH_BYTES);
        int length = 0;
        while (length < hash.length && hash[length] > ' ' && hash[length] < 0x7F) {
            length++;
        }
        return new NccomVersion(info.getLong(MAJOR), info.getLong(MINOR), info.getLong(PATCH), info.getLong(MAINTENANCE),
            new String(hash, 0, length, StandardCharsets.US_ASCII), info.getLong(COMPATIBILITY_ID));
    }

    boolean isCompatible() {
        return compatibilityId == COMPATIBLE;
    }

    /** As the original logs it: a.b.c.d-hash. */
    String text() {
        return Long.toUnsignedString(major) + "." + Long.toUnsignedString(minor) + "." + Long.toUnsignedString(patch) + "."
            + Long.toUnsignedString(maintenance) + "-" + gitHash;
    }
}
