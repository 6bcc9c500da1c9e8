package io.nrt4j.tools;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/**
 * What the two ends of a transfer say to each other, little endian.
 *
 * <pre>
 *   sender to receiver
 *     header    magic u64, version u32, files u32, manifest bytes u64, chunk bytes u64, sum of sizes u64     (40 bytes)
 *     manifest  per file: name length u16, name, size u64
 *     chunks    of all files in the manifest's order, one message each, none for an empty file
 *     trailer   nanoseconds of digesting u64, per file SHA-256 (32)
 *     farewell  0 bytes: the reply has arrived
 *   receiver to sender
 *     reply     code u32 (0: all arrived; 1: failed), u32 0, nanoseconds with a receive posted u64,
 *               nanoseconds of digesting u64, per file SHA-256 (32), or the reason as UTF-8
 * </pre>
 *
 * <p>A message of 0 bytes in place of any other says that the sender gives up. The receiver may reply a failure at any time.
 */
final class TransferWire {
    static final int HEADER_BYTES = 40;
    static final int TRAILER_HEAD_BYTES = 8;
    static final int REPLY_HEAD_BYTES = 24;
    static final int DIGEST_BYTES = 32;
    /** Longest text of a failure. */
    static final int REASON_BYTES = 2048;
    /** Longest manifest that a receiver takes. */
    static final int MAX_MANIFEST_BYTES = 256 << 20;

    private static final long MAGIC = 0x5245_4658_4a54_524eL; // "NRTJXFER"
    private static final int VERSION = 1;
    private static final int MIN_ENTRY_BYTES = Short.BYTES + Long.BYTES + 1;

    private TransferWire() {
    }

    /**
     * What is to come.
     *
     * @param files         number of files.
     * @param manifestBytes size of the manifest.
     * @param chunkBytes    longest chunk.
     * @param totalBytes    sum of the files' sizes.
     */
    record Header(int files, int manifestBytes, long chunkBytes, long totalBytes) {
        byte[] encode() {
            return buffer(HEADER_BYTES).putLong(MAGIC).putInt(VERSION).putInt(files).putLong(manifestBytes).putLong(chunkBytes)
                .putLong(totalBytes).array();
        }

        static Header decode(final byte[] bytes) {
            final ByteBuffer in = wrap(bytes);
            if (bytes.length != HEADER_BYTES || in.getLong() != MAGIC) {
                throw new NrtException(NrtStatus.INVALID, "the peer is not sending files: its first message is no header");
            }
            final int version = in.getInt();
            if (version != VERSION) {
                throw new NrtException(NrtStatus.INVALID, "the peer speaks version " + version + ", not " + VERSION);
            }
            final int files = in.getInt();
            final long manifestBytes = in.getLong();
            final long chunkBytes = in.getLong();
            final long totalBytes = in.getLong();
            if (files < 1 || manifestBytes < (long) files * MIN_ENTRY_BYTES || manifestBytes > MAX_MANIFEST_BYTES
                || chunkBytes < 1 || totalBytes < 0) {
                throw new NrtException(NrtStatus.INVALID, "the peer's header cannot be: " + files + " files, a manifest of "
                    + manifestBytes + " bytes, chunks of " + chunkBytes + ", " + totalBytes + " bytes in all");
            }
            return new Header(files, (int) manifestBytes, chunkBytes, totalBytes);
        }
    }

    static byte[] encodeManifest(final List<TransferFile> files) {
        long bytes = 0;
        for (final TransferFile file : files) {
            bytes += Short.BYTES + file.name().length + Long.BYTES;
        }
        if (bytes > MAX_MANIFEST_BYTES) {
            throw new NrtException(NrtStatus.INVALID, files.size() + " files are too many for one transfer: their names need "
                + bytes + " bytes, at most " + MAX_MANIFEST_BYTES + " are possible");
        }
        final ByteBuffer out = buffer((int) bytes);
        for (final TransferFile file : files) {
            out.putShort((short) file.name().length).put(file.name()).putLong(file.sizeBytes());
        }
        return out.array();
    }

    static List<TransferFile> decodeManifest(final Header header, final byte[] bytes) {
        final ByteBuffer in = wrap(bytes);
        final List<TransferFile> files = new ArrayList<>();
        long total = 0;
        for (int i = 0; i < header.files(); i++) {
            final int nameBytes = in.remaining() < Short.BYTES ? -1 : in.getShort() & 0xFFFF;
            if (nameBytes < 0 || in.remaining() < nameBytes + Long.BYTES) {
                throw new NrtException(NrtStatus.INVALID, "the peer's manifest ends within file " + i);
            }
            final byte[] name = new byte[nameBytes];
            in.get(name);
            final TransferFile file = new TransferFile(name, in.getLong());
            final String objection = FileNames.objection(name);
            if (objection != null || file.sizeBytes() < 0) {
                throw new NrtException(NrtStatus.INVALID, "file " + i + " '" + file + "' of the peer's manifest is refused: "
                    + (objection == null ? "its size is " + file.sizeBytes() : objection));
            }
            total += file.sizeBytes();
            files.add(file);
        }
        if (in.hasRemaining() || total != header.totalBytes()) {
            throw new NrtException(NrtStatus.INVALID, "the peer's manifest does not match its header");
        }
        return files;
    }

    static byte[] encodeTrailer(final long digestNs, final byte[][] digests) {
        final ByteBuffer out = buffer(TRAILER_HEAD_BYTES + digests.length * DIGEST_BYTES).putLong(digestNs);
        for (final byte[] digest : digests) {
            out.put(digest);
        }
        return out.array();
    }

    /**
     * How it went at the receiver.
     *
     * @param inFlightNs time with a receive posted.
     * @param digestNs   time of digesting.
     * @param digests    one a file; null when it failed.
     * @param reason     why it failed; null when it did not.
     */
    record Reply(long inFlightNs, long digestNs, byte[][] digests, String reason) {
        byte[] encode() {
            final byte[] text = reason == null ? new byte[0] : reason.getBytes(StandardCharsets.UTF_8);
            final int textBytes = Math.min(text.length, REASON_BYTES);
            final int bodyBytes = reason == null ? digests.length * DIGEST_BYTES : textBytes;
            final ByteBuffer out = buffer(REPLY_HEAD_BYTES + bodyBytes);
            out.putInt(reason == null ? 0 : 1).putInt(0).putLong(inFlightNs).putLong(digestNs);
            if (reason != null) {
                out.put(text, 0, textBytes);
            } else {
                for (final byte[] digest : digests) {
                    out.put(digest);
                }
            }
            return out.array();
        }

        static Reply decode(final byte[] bytes, final int files) {
            if (bytes.length < REPLY_HEAD_BYTES) {
                throw new NrtException(NrtStatus.INVALID, "the receiver's reply has " + bytes.length + " bytes");
            }
            final ByteBuffer in = wrap(bytes);
            final int code = in.getInt();
            in.getInt();
            final long inFlightNs = in.getLong();
            final long digestNs = in.getLong();
            if (code != 0) {
                final String text = new String(bytes, REPLY_HEAD_BYTES, bytes.length - REPLY_HEAD_BYTES, StandardCharsets.UTF_8);
                return new Reply(inFlightNs, digestNs, null, text);
            }
            return new Reply(inFlightNs, digestNs, TransferWire.digests(in, files), null);
        }
    }

    /** Reads one digest a file, to the end. */
    static byte[][] digests(final ByteBuffer in, final int files) {
        if (in.remaining() != (long) files * DIGEST_BYTES) {
            throw new NrtException(NrtStatus.INVALID, "the peer's message has " + in.remaining() + " bytes instead of digests of "
                + files + " files");
        }
        final byte[][] digests = new byte[files][DIGEST_BYTES];
        for (final byte[] digest : digests) {
            in.get(digest);
        }
        return digests;
    }

    static ByteBuffer wrap(final byte[] bytes) {
        return ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    }

    private static ByteBuffer buffer(final int bytes) {
        return ByteBuffer.allocate(bytes).order(ByteOrder.LITTLE_ENDIAN);
    }
}
