package io.nrt4j.tools;

import java.io.ByteArrayOutputStream;
import java.io.File;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;

/**
 * Names of files as bytes, and back.
 *
 * <p>A {@link Path}'s text depends on the locale: under {@code LANG=C}, Java shows every non-ASCII byte of a name as a question
 * mark and can make no path from a text with one. Its URI carries the bytes, so names take that way.
 */
final class FileNames {
    private static final int MAX_NAME_BYTES = 4096;

    private FileNames() {
    }

    /** Bytes of an absolute path, without a slash at the end. */
    static byte[] absolute(final Path path) {
        String raw = path.toAbsolutePath().toUri().getRawPath();
        while (raw.length() > 1 && raw.endsWith("/")) {
            raw = raw.substring(0, raw.length() - 1);
        }
        final ByteArrayOutputStream bytes = new ByteArrayOutputStream(raw.length());
        for (int i = 0; i < raw.length(); i++) {
            if (raw.charAt(i) == '%') {
                bytes.write(Integer.parseInt(raw.substring(i + 1, i + 3), 16));
                i += 2;
            } else {
                bytes.write(raw.charAt(i));
            }
        }
        return bytes.toByteArray();
    }

    /** The path of a name below a folder. The name must have passed {@link #objection}. */
    static Path below(final Path folder, final byte[] name) {
        final String base = folder.toAbsolutePath().toUri().toString();
        final StringBuilder uri = new StringBuilder(base.endsWith("/") ? base : base + "/");
        for (final byte each : name) {
            final int b = each & 0xFF;
            if (b < 0x80 && (Character.isLetterOrDigit(b) || "/-_.".indexOf(b) >= 0)) {
                uri.append((char) b);
            } else {
                uri.append('%').append(Character.forDigit(b >> 4, 16)).append(Character.forDigit(b & 15, 16));
            }
        }
        return Path.of(URI.create(uri.toString()));
    }

    /** Why a name that came from a peer must not be used; null if nothing speaks against it. */
    static String objection(final byte[] name) {
        if (name.length == 0 || name.length > MAX_NAME_BYTES) {
            return "it has " + name.length + " bytes, allowed are 1 to " + MAX_NAME_BYTES;
        }
        final String text = new String(name, StandardCharsets.ISO_8859_1);
        if (text.indexOf(0) >= 0) {
            return "it has a zero byte";
        }
        if (File.separatorChar == '\\' && (text.indexOf('\\') >= 0 || text.indexOf(':') >= 0)) {
            return "it has a character that means something to this file system";
        }
        for (final String segment : text.split("/", -1)) {
            if (segment.isEmpty() || segment.equals(".") || segment.equals("..")) {
                return "it is not a plain relative name";
            }
        }
        return null;
    }
}
