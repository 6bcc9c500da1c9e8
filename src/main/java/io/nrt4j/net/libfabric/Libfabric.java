package io.nrt4j.net.libfabric;

import com.sun.jna.Function;
import com.sun.jna.NativeLibrary;
import com.sun.jna.Pointer;
import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.net.signals.SignalGuard;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The loaded library: its exported functions, used for set-up only. One per file name and process, never unloaded.
 *
 * <p>Threads: any; {@code LOADED} is guarded by its own monitor.
 */
final class Libfabric {
    static final String DEFAULT_NAME = "libfabric.so.1";

    private static final Logger LOG = LoggerFactory.getLogger(Libfabric.class);
    private static final String INSTALL = "install libfabric 1.17 or later (Debian: apt-get install libfabric1), "
        + "or name its file with NRT4J_LIBFABRIC_PATH";
    private static final NativeLibrary LIBC = NativeLibrary.getInstance("c");
    private static final Map<String, Object> LOADED = new HashMap<>();

    private final NativeLibrary library;
    private final String name;
    private final int version;

    private Libfabric(final String name, final NativeLibrary library) {
        this.name = name;
        this.library = library;
        version = library.getFunction("fi_version").invokeInt(new Object[0]);
    }

    /**
     * Loads the library, once per name; a failure is remembered too.
     *
     * @param path file, or empty for the system's.
     * @return the library.
     * @throws NrtException with what to install, when it is absent or too old.
     */
    static Libfabric load(final String path) {
        final String name = path.isEmpty() ? DEFAULT_NAME : path;
        synchronized (LOADED) {
            final Object loaded = LOADED.computeIfAbsent(name, Libfabric::open);
            if (loaded instanceof Libfabric libfabric) {
                return libfabric;
            }
            throw new NrtException(NrtStatus.FAILURE, (String) loaded);
        }
    }

    private static Object open(final String name) {
        try {
            // Debian's libinfinipath would print a backtrace and exit instead of letting the JVM handle its signals.
            setEnvironment("IPATH_NO_BACKTRACE", "1", true);
            // Halves the half round trip of 64 KiB over tcp; a value that the user set stays.
            setEnvironment("FI_OFI_RXM_BUFFER_SIZE", "65536", false);
            // Of such buffers rxm posts 4096 otherwise, ahead of time: 200 MB of a process with one peer.
            setEnvironment("FI_OFI_RXM_MSG_RX_SIZE", "128", false);
            final Libfabric libfabric = SignalGuard.around(() -> new Libfabric(name, NativeLibrary.getInstance(name)));
            if (Integer.compareUnsigned(libfabric.version, FiLayout.API_VERSION) < 0) {
                return name + " is version " + libfabric.versionText() + ", which is too old: " + INSTALL;
            }
            LOG.info("libfabric {} from {}, used with API version 1.17", libfabric.versionText(), name);
            return libfabric;
        } catch (final UnsatisfiedLinkError ex) {
            final String text = String.valueOf(ex.getMessage()).lines().findFirst().orElse("");
            return name + " cannot be loaded (" + text + "): " + INSTALL;
        }
    }

    /** Sets a variable of the C environment, which libraries read; Java's own map is a copy. */
    private static void setEnvironment(final String name, final String value, final boolean overwrite) {
        LIBC.getFunction("setenv").invokeInt(new Object[] {name, value, overwrite ? 1 : 0});
    }

    /** A copy of the text that {@code free} frees, as libfabric expects it in hints. */
    private static long duplicate(final String text) {
        return Pointer.nativeValue(LIBC.getFunction("strdup").invokePointer(new Object[] {text}));
    }

    /** Major and minor version of the library. */
    String versionText() {
        return (version >>> 16) + "." + (version & 0xFFFF);
    }

    String name() {
        return name;
    }

    Function function(final String symbol) {
        return library.getFunction(symbol);
    }

    /** The text of a libfabric error number, positive or negative. */
    String errorText(final long error) {
        return function("fi_strerror").invokeString(new Object[] {(int) Math.abs(error)}, false);
    }

    /**
     * What the host offers: {@code fi_getinfo}, reliable-datagram endpoints only unless all are asked for.
     *
     * @param provider name for the hints, or null.
     * @param all      true to give no hints but the provider.
     * @return list that the caller closes; empty when nothing fits.
     * @throws NrtException when {@code fi_getinfo} fails for another reason.
     */
    InfoList infos(final String provider, final boolean all) {
        final long hints = Pointer.nativeValue(function("fi_dupinfo").invokePointer(new Object[] {Pointer.NULL}));
        if (hints == 0) {
            throw new NrtException(NrtStatus.FAIL_HOST_MEM_ALLOC, "fi_dupinfo: no memory");
        }
        final long out = Memory.allocate(Long.BYTES);
        try {
            if (!all) {
                fillHints(hints);
            }
            if (provider != null) {
                Memory.putLong(Memory.getLong(hints + FiLayout.INFO_FABRIC_ATTR) + FiLayout.FABRIC_ATTR_PROV_NAME,
                    duplicate(provider));
            }
            final int rc = SignalGuard.around(() -> function("fi_getinfo").invokeInt(new Object[] {
                FiLayout.API_VERSION, Pointer.NULL, Pointer.NULL, 0L, new Pointer(hints), new Pointer(out)}));
            if (rc != 0 && rc != -FiLayout.ENODATA) {
                throw new NrtException(NrtStatus.FAILURE, "fi_getinfo of " + name + (provider == null ? "" : " for provider " + provider)
                    + " failed: " + -rc + " (" + errorText(rc) + ")");
            }
            return new InfoList(this, rc == 0 ? Memory.getLong(out) : 0);
        } finally {
            Memory.free(out);
            function("fi_freeinfo").invokeVoid(new Object[] {new Pointer(hints)});
        }
    }

    private static void fillHints(final long hints) {
        Memory.putLong(hints + FiLayout.INFO_CAPS, FiLayout.CAP_TAGGED);
        // Each operation has 64 bytes that the provider may use; ~0 would invite FI_BUFFERED_RECV.
        Memory.putLong(hints + FiLayout.INFO_MODE, FiLayout.MODE_CONTEXT | FiLayout.MODE_CONTEXT2);
        Memory.putInt(Memory.getLong(hints + FiLayout.INFO_EP_ATTR) + FiLayout.EP_ATTR_TYPE, FiLayout.EP_RDM);
        final long domain = Memory.getLong(hints + FiLayout.INFO_DOMAIN_ATTR);
        Memory.putInt(domain + FiLayout.DOMAIN_ATTR_MR_MODE,
            FiLayout.MR_LOCAL | FiLayout.MR_VIRT_ADDR | FiLayout.MR_ALLOCATED | FiLayout.MR_PROV_KEY);
        Memory.putInt(domain + FiLayout.DOMAIN_ATTR_THREADING, FiLayout.THREAD_DOMAIN);
        // Whoever tests or posts polls; a provider's own thread would fight with it for the processor.
        Memory.putInt(domain + FiLayout.DOMAIN_ATTR_DATA_PROGRESS, FiLayout.PROGRESS_MANUAL);
        Memory.putInt(domain + FiLayout.DOMAIN_ATTR_CONTROL_PROGRESS, FiLayout.PROGRESS_MANUAL);
    }

    /** A list from {@code fi_getinfo}, freed by {@link #close()}. */
    static final class InfoList implements AutoCloseable {
        private final Libfabric libfabric;
        private final long first;
        private boolean closed;

        InfoList(final Libfabric libfabric, final long first) {
            this.libfabric = libfabric;
            this.first = first;
        }

        /** The entries, valid until the list is closed. */
        List<FabricInfo> entries() {
            final List<FabricInfo> entries = new ArrayList<>();
            for (long at = first; at != 0; at = Memory.getLong(at + FiLayout.INFO_NEXT)) {
                entries.add(FabricInfo.read(at));
            }
            return entries;
        }

        @Override
        public void close() {
            if (!closed && first != 0) {
                libfabric.function("fi_freeinfo").invokeVoid(new Object[] {new Pointer(first)});
            }
            closed = true;
        }
    }
}
