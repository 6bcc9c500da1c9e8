package io.nrt4j.net.libnccom;

import com.sun.jna.Memory;
import io.nrt4j.NrtConfig;
import io.nrt4j.NrtSetting;
import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.net.signals.SignalGuard;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.Map;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Opens the collective library: version first, then the other 36 functions, all or none, then softly its net plug-in.
 *
 * <p>What came of it stays for the life of the process, one library for each file name: a table that can be called, or an empty
 * one with the sticky text of the first error. A library that is refused is closed again.
 *
 * <p>Threads: any; {@code LOADED} is read and written under the class's lock.
 *
 * <p>Ports {@code ncclInit} and its {@code nccl_init_error}.
 */
final class NccomLoader {
    static final String DEFAULT_NAME = "libnccom.so";
    static final String DEFAULT_NET_NAME = "libnccom-net.so";

    private static final Logger LOG = LoggerFactory.getLogger(NccomLoader.class);
    private static final Map<String, Nccom> LOADED = new HashMap<>();

    private NccomLoader() {
    }

    /**
     * The library that a configuration names.
     *
     * @return a table that is loaded.
     * @throws NrtException FAILURE with the sticky error.
     */
    static Nccom require(final NrtConfig config) {
        final Nccom nccom = load(config.libnccomPath(), config.libnccomNetPath());
        if (!nccom.isLoaded()) {
            throw new NrtException(NrtStatus.FAILURE, nccom.error());
        }
        return nccom;
    }

    /**
     * Loads once for each name; what came of it, also a failure, is remembered.
     *
     * @param path    file, or empty for the system's.
     * @param netPath file of the net plug-in, or empty for the system's; the first load of a library decides.
     * @return never null.
     */
    static Nccom load(final String path, final String netPath) {
        final String name = path.isEmpty() ? DEFAULT_NAME : path;
        synchronized (LOADED) {
            return LOADED.computeIfAbsent(name, file -> {
                final Nccom nccom = SignalGuard.around(() -> open(file));
                if (nccom.isLoaded()) {
                    LOG.info("Using CCOM {}", nccom.version().text());
                    openPlugIn(netPath);
                } else {
                    // To look whether it is there is no error; who needs it is told by the call that fails, which logs it as one.
                    LOG.info("{}", nccom.error());
                }
                return nccom;
            });
        }
    }

    private static Nccom open(final String name) {
        final long handle;
        try {
            handle = DynamicLinker.open(name);
        } catch (final UnsatisfiedLinkError ex) {
            return Nccom.failed(name, name + " cannot be loaded (" + ex.getMessage() + "): " + hint(name, ex.getMessage()));
        }
        final Map<NccomSymbol, Long> table = new EnumMap<>(NccomSymbol.class);
        String error = null;
        NccomVersion version = null;
        for (final NccomSymbol symbol : NccomSymbol.values()) {
            final long address = DynamicLinker.find(handle, symbol.symbol());
            if (address == 0) {
                error = name + " has no function " + symbol.symbol() + ": it is not the libnccom of this runtime's version";
                break;
            }
            table.put(symbol, address);
            if (symbol == NccomSymbol.GET_VERSION_INFO) {
                version = probe(address);
                error = refusal(name, version);
                if (error != null) {
                    break;
                }
            }
        }
        if (error != null) {
            DynamicLinker.close(handle);
            return Nccom.failed(name, error);
        }
        return Nccom.loaded(name, table, version);
    }

    private static NccomVersion probe(final long address) {
        try (Memory info = new Memory(NccomVersion.BYTES); NativeCall call = new NativeCall()) {
            info.clear();
            call.argument(0, com.sun.jna.Pointer.nativeValue(info));
            call.argument(1, NccomVersion.BYTES);
            call.invoke(NccomSymbol.GET_VERSION_INFO.callInterface(), address);
            return NccomVersion.read(info);
        }
    }

    private static String refusal(final String name, final NccomVersion version) {
        return version.isCompatible() ? null : name + " is CCOM " + version.text() + " with compatibility id "
            + Long.toUnsignedString(version.compatibilityId()) + " instead of " + NccomVersion.COMPATIBLE
            + ": install the aws-neuronx-collectives of runtime 2.31";
    }

    private static String hint(final String name, final String text) {
        if (text.contains("libnrt.so")) {
            return "install aws-neuronx-runtime-lib, and put its folder (/opt/aws/neuron/lib) into LD_LIBRARY_PATH";
        }
        return name.equals(DEFAULT_NAME)
            ? "install aws-neuronx-collectives and put its folder (/opt/aws/neuron/lib) into LD_LIBRARY_PATH, or name the file with "
                + NrtSetting.LIBNCCOM_PATH.variable()
            : "see " + NrtSetting.LIBNCCOM_PATH.variable();
    }

    /** Its absence is no error: libnccom can be built with its network inside. */
    private static void openPlugIn(final String netPath) {
        final String name = netPath.isEmpty() ? DEFAULT_NET_NAME : netPath;
        try {
            SignalGuard.around(() -> DynamicLinker.open(name));
            LOG.info("Using CCOM net plug-in {}", name);
        } catch (final UnsatisfiedLinkError ex) {
            if (netPath.isEmpty()) {
                LOG.info("No CCOM net plug-in: {}", ex.getMessage());
            } else {
                LOG.warn("The CCOM net plug-in that {} names cannot be loaded: {}",
                    NrtSetting.LIBNCCOM_NET_PATH.variable(), ex.getMessage());
            }
        }
    }
}
