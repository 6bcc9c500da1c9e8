package io.nrt4j.tools;

import java.io.PrintWriter;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Locale;

/**
 * What became of a transfer.
 *
 * @param files            in the manifest's order.
 * @param sent             SHA-256 of each as the sender read it.
 * @param received         SHA-256 of each as it arrived.
 * @param chunkBytes       longest message.
 * @param wholeNs          from the connection to the end of all digesting.
 * @param inFlightNs       of that, time in which the receiver had at least one receive posted.
 * @param senderDigestNs   processor time, roughly, of the sender's digests, which run beside the transfer.
 * @param receiverDigestNs the same of the receiver's.
 */
record TransferReport(
    List<TransferFile> files,
    byte[][] sent,
    byte[][] received,
    long chunkBytes,
    long wholeNs,
    long inFlightNs,
    long senderDigestNs,
    long receiverDigestNs) {
    /** With more files than this, only those that went wrong are listed. */
    private static final int LISTED_FILES = 20;

    boolean isOk(final int file) {
        return Arrays.equals(sent[file], received[file]);
    }

    int mismatches() {
        int count = 0;
        for (int i = 0; i < files.size(); i++) {
            if (!isOk(i)) {
                count++;
            }
        }
        return count;
    }

    long totalBytes() {
        return files.stream().mapToLong(TransferFile::sizeBytes).sum();
    }

    /** Prints files and figures. */
    void print(final PrintWriter out, final String between) {
        final HexFormat hex = HexFormat.of();
        for (int i = 0; i < files.size(); i++) {
            if (files.size() <= LISTED_FILES || !isOk(i)) {
                out.printf(Locale.ROOT, "%-8s %,d bytes  %s%n", isOk(i) ? "OK" : "MISMATCH", files.get(i).sizeBytes(), files.get(i));
                out.println("         SHA-256 sent     " + hex.formatHex(sent[i]));
                out.println("         SHA-256 received " + hex.formatHex(received[i]));
            }
        }
        final int wrong = mismatches();
        out.printf(Locale.ROOT, "%s %s: %d %s, %,d bytes, in %,d bytes at most a message%n", wrong == 0 ? "OK      " : "MISMATCH",
            between, files.size(), files.size() == 1 ? "file" : "files", totalBytes(), chunkBytes);
        if (wrong > 0) {
            out.printf("         %d of %d files did not arrive as they were sent%n", wrong, files.size());
        }
        figures(out, "moved", inFlightNs, "time in which at least one receive was posted");
        figures(out, "whole", wholeNs, "with both SHA-256, which run beside it");
        figures(out, "SHA-256", senderDigestNs, "sender's thread");
        figures(out, "SHA-256", receiverDigestNs, "receiver's thread");
        out.flush();
    }

    private void figures(final PrintWriter out, final String what, final long ns, final String remark) {
        final double seconds = ns / 1e9;
        final double gigabytesPerSecond = ns == 0 ? 0 : totalBytes() / 1e9 / seconds;
        out.printf(Locale.ROOT, "         %-8s %9.3f s  %7.3f GB/s  (%s)%n", what, seconds, gigabytesPerSecond, remark);
    }
}
