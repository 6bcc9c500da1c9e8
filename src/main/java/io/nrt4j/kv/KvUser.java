package io.nrt4j.kv;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;

/** Numbers of users. */
final class KvUser {
    private static final String UID = "unix:uid";

    private KvUser() {
    }

    /** Number of this process's user; where the system has none to tell, one that is made of the user's name. */
    static long id() {
        try {
            return ((Number) Files.getAttribute(Path.of("/proc/self"), UID)).longValue();
        } catch (final IOException | UnsupportedOperationException | IllegalArgumentException ex) {
            return System.getProperty("user.name", "").hashCode() & 0xFFFFFFFFL;
        }
    }

    /** Number of a file's owner, or the given one where the system has none to tell. */
    static long owner(final Path path, final long unknown) {
        try {
            return ((Number) Files.getAttribute(path, UID, LinkOption.NOFOLLOW_LINKS)).longValue();
        } catch (final IOException | UnsupportedOperationException | IllegalArgumentException ex) {
            return unknown;
        }
    }
}
