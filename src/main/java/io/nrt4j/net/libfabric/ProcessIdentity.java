package io.nrt4j.net.libfabric;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * A process of this machine, told from a later one with the same number by the time of its start.
 *
 * @param folder     where the kernel describes it, {@code /proc/<pid>}.
 * @param pid        its number.
 * @param startTicks when it started, in clock ticks since the machine's boot.
 */
record ProcessIdentity(Path folder, long pid, long startTicks) {
    // Fields of /proc/<pid>/stat after the command's name, which stands in parentheses and may contain anything.
    private static final int STATE = 0;
    private static final int THREADS = 17;
    private static final int START_TICKS = 19;
    private static final int FIELDS = START_TICKS + 1;

    /**
     * The process that has a number now.
     *
     * @param proc the kernel's folder, {@code /proc}.
     * @param pid  a number.
     * @return null if there is none that runs.
     * @throws IOException when that cannot be read.
     */
    static ProcessIdentity of(final Path proc, final long pid) throws IOException {
        final Path folder = proc.resolve(Long.toString(pid));
        final String[] stat = stat(folder);
        return stat == null || dead(stat) ? null : new ProcessIdentity(folder, pid, Long.parseLong(stat[START_TICKS]));
    }

    /**
     * Whether it will never run again: it is gone, or a zombie without a thread that runs, or its number is another one's.
     *
     * @return false also when that cannot be found out, as without free file descriptors.
     */
    boolean ended() {
        try {
            final String[] stat = stat(folder);
            return stat == null || dead(stat) || Long.parseLong(stat[START_TICKS]) != startTicks;
        } catch (final IOException | NumberFormatException ex) {
            return false;
        }
    }

    /**
     * Whether no process at all runs that has its number, and whose names are made of it.
     *
     * @return false also when that cannot be found out.
     */
    boolean vacated() {
        try {
            final String[] stat = stat(folder);
            return stat == null || dead(stat);
        } catch (final IOException | NumberFormatException ex) {
            return false;
        }
    }

    /** A leader that has ended is a zombie as long as threads of its run on, and while they die. */
    private static boolean dead(final String[] stat) {
        return (stat[STATE].equals("Z") || stat[STATE].equalsIgnoreCase("X")) && Long.parseLong(stat[THREADS]) <= 1;
    }

    /** Null if there is no such process. */
    private static String[] stat(final Path folder) throws IOException {
        final String text;
        try {
            text = Files.readString(folder.resolve("stat"), StandardCharsets.ISO_8859_1);
        } catch (final IOException ex) {
            if (Files.notExists(folder)) {
                return null; // also when it vanished between open and read, which answers "No such process"
            }
            throw ex;
        }
        final String[] fields = text.substring(text.lastIndexOf(')') + 1).strip().split(" ");
        if (fields.length < FIELDS) {
            throw new IOException("cannot understand " + folder.resolve("stat") + ": " + text);
        }
        return fields;
    }
}
