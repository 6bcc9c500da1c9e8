package io.nrt4j.proxy;

import com.sun.jna.Function;
import com.sun.jna.Memory;
import com.sun.jna.NativeLibrary;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** What a thread tells the operating system about itself. All of it fails softly, with a line in the log. Linux only. */
final class OsThread {
    private static final Logger LOG = LoggerFactory.getLogger(OsThread.class);
    private static final int PR_SET_NAME = 15;
    private static final int MASK_BYTES = 128;

    private OsThread() {
    }

    /**
     * The calling thread's number in the process's task list.
     *
     * @return 0 if it cannot be found out.
     */
    static int tid() {
        try {
            // The link's target is <pid>/task/<tid>; it spares the number of the system call, which differs by architecture.
            return Integer.parseInt(Files.readSymbolicLink(Path.of("/proc/thread-self")).getFileName().toString());
        } catch (final IOException | RuntimeException ex) {
            LOG.warn("Cannot find out the thread's number: {}", ex.toString());
            return 0;
        }
    }

    /** Names the calling thread for the operating system; at most 15 characters of the name are seen there. */
    static void name(final String name) {
        try (Memory text = new Memory(name.length() + 1L)) {
            text.setString(0, name, "US-ASCII");
            final int result = function("prctl").invokeInt(new Object[] {PR_SET_NAME, text, 0L, 0L, 0L});
            if (result != 0) {
                LOG.warn("Cannot set thread name: prctl answered {}", result);
            }
        } catch (final RuntimeException | LinkageError ex) {
            LOG.warn("Cannot set thread name: {}", ex.toString());
        }
    }

    /**
     * Binds the calling thread to processors.
     *
     * @param cpus processor numbers below 1024.
     * @return false if the system refused.
     */
    static boolean affinity(final List<Integer> cpus) {
        try (Memory mask = new Memory(MASK_BYTES)) {
            mask.clear();
            for (final int cpu : cpus) {
                final long at = cpu / Byte.SIZE;
                mask.setByte(at, (byte) (mask.getByte(at) | 1 << cpu % Byte.SIZE));
            }
            final int result = function("sched_setaffinity").invokeInt(new Object[] {0, (long) MASK_BYTES, mask});
            if (result != 0) {
                LOG.warn("Cannot bind the thread to processors {}: sched_setaffinity answered {}; it runs where it may", cpus, result);
            }
            return result == 0;
        } catch (final RuntimeException | LinkageError ex) {
            LOG.warn("Cannot bind the thread to processors {}: {}; it runs where it may", cpus, ex.toString());
            return false;
        }
    }

    private static Function function(final String name) {
        return NativeLibrary.getProcess().getFunction(name);
    }
}
