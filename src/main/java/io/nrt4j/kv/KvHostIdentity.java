package io.nrt4j.kv;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.util.HexFormat;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * What a host calls itself in the rendezvous: its name, which another host may have too, a slash, and 128 random bits, which no other
 * host has. The first leader draws them and leaves them in the lock file; every later leader of this boot reads them there, so that
 * all processes of a user and port agree although leaders change.
 *
 * <p>Content of the lock file: {@code nrt4j host identity 1}, {@code boot <boot id>}, {@code identity <identity>}, one a line.
 */
final class KvHostIdentity {
    /** Bytes of an identity on the wire, padded with zeros. */
    static final int LENGTH = 128;

    private static final int MAX_NAME_LENGTH = 64;
    private static final int RANDOM_BYTES = 16;
    private static final int MAX_CONTENT_LENGTH = 1024;
    private static final Path BOOT_ID = Path.of("/proc/sys/kernel/random/boot_id");
    private static final String IDENTITY = "[!-~]{1,64}/[0-9a-f]{32}";
    private static final Pattern CONTENT = Pattern.compile(
        "nrt4j host identity 1\nboot ([!-~]{1,64})\nidentity (" + IDENTITY + ")\n");

    private KvHostIdentity() {
    }

    /**
     * The identity that a lock file holds, or else one that it holds from now on.
     *
     * @param lockFile locked and positioned anywhere; the only descriptor of the file in this process.
     * @param known    what this process has learnt before, in case the file was removed meanwhile; or null.
     * @param hostName of this host, for a new identity.
     * @return {@value #LENGTH} bytes.
     * @throws IOException if the file can be neither read nor written.
     */
    static byte[] load(final FileChannel lockFile, final byte[] known, final String hostName) throws IOException {
        final String bootId = bootId();
        final Matcher content = CONTENT.matcher(read(lockFile));
        if (content.matches() && content.group(1).equals(bootId)) {
            return padded(content.group(2));
        }
        final String learnt = known == null ? "" : new String(known, StandardCharsets.US_ASCII).replace("\0", "");
        final String identity = learnt.matches(IDENTITY) ? learnt : draw(hostName);
        write(lockFile, "nrt4j host identity 1\nboot " + bootId + "\nidentity " + identity + "\n");
        return padded(identity);
    }

    private static String draw(final String hostName) {
        final byte[] random = new byte[RANDOM_BYTES];
        new SecureRandom().nextBytes(random);
        final String name = hostName.isEmpty() ? "localhost" : hostName.replaceAll("[^!-~]", "_");
        return name.substring(0, Math.min(MAX_NAME_LENGTH, name.length())) + "/" + HexFormat.of().formatHex(random);
    }

    private static String bootId() {
        try {
            final String text = Files.readString(BOOT_ID).strip();
            return text.matches("[!-~]{1,64}") ? text : "unknown";
        } catch (final IOException ex) {
            return "unknown";
        }
    }

    private static String read(final FileChannel file) throws IOException {
        final ByteBuffer buffer = ByteBuffer.allocate(MAX_CONTENT_LENGTH);
        long position = 0;
        while (buffer.hasRemaining()) {
            final int read = file.read(buffer, position);
            if (read < 0) {
                break;
            }
            position += read;
        }
        return new String(buffer.array(), 0, buffer.position(), StandardCharsets.ISO_8859_1);
    }

    private static void write(final FileChannel file, final String content) throws IOException {
        // Emptied first: a leader that dies in between leaves a file that is seen to be incomplete.
        file.truncate(0);
        final ByteBuffer buffer = ByteBuffer.wrap(content.getBytes(StandardCharsets.US_ASCII));
        while (buffer.hasRemaining()) {
            file.write(buffer, buffer.position());
        }
    }

    private static byte[] padded(final String identity) {
        final byte[] bytes = new byte[LENGTH];
        final byte[] text = identity.getBytes(StandardCharsets.US_ASCII);
        System.arraycopy(text, 0, bytes, 0, text.length);
        return bytes;
    }
}
