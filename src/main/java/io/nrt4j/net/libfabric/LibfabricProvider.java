package io.nrt4j.net.libfabric;

import io.nrt4j.NrtConfig;
import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.net.NetTransport;
import io.nrt4j.net.NetTransportProvider;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;

/** Makes transports over libfabric. */
public final class LibfabricProvider implements NetTransportProvider {
    /** Made by {@link java.util.ServiceLoader}. */
    public LibfabricProvider() {
    }

    @Override
    public String name() {
        return LibfabricTransport.NAME;
    }

    @Override
    public String unavailabilityCause(final NrtConfig config) {
        try {
            FabricSelection.choose(Libfabric.load(config.libfabricPath()), config).close();
            return null;
        } catch (final NrtException ex) {
            return ex.getMessage();
        } catch (final LinkageError ex) {
            return withoutJna(ex);
        }
    }

    @Override
    public String describe(final NrtConfig config) {
        try {
            final Libfabric libfabric = Libfabric.load(config.libfabricPath());
            final String head = "libfabric " + libfabric.versionText() + " (" + libfabric.name() + "), ";
            try (FabricSelection selection = FabricSelection.choose(libfabric, config);
                Libfabric.InfoList all = libfabric.infos(null, false)) {
                return head + "uses " + selection.info().describe() + "\noffers" + offers(all);
            } catch (final NrtException ex) {
                return head + ex.getMessage();
            }
        } catch (final NrtException ex) {
            return ex.getMessage();
        } catch (final LinkageError ex) {
            return withoutJna(ex);
        }
    }

    /** JNA does not come up where native access is denied to it, or without a folder for its library. */
    private static String withoutJna(final LinkageError error) {
        Throwable cause = error;
        while (cause.getCause() != null) {
            cause = cause.getCause();
        }
        return "JNA cannot be used (" + cause + "); from Java 24 on it may need the option --enable-native-access=ALL-UNNAMED";
    }

    /** One line for each usable provider, in its order, with the domains and source addresses that it has. */
    private static String offers(final Libfabric.InfoList all) {
        final Map<String, Set<String>> byProvider = new LinkedHashMap<>();
        for (final FabricInfo info : all.entries()) {
            if (info.usable()) {
                byProvider.computeIfAbsent(info.provider(), provider -> new LinkedHashSet<>())
                    .add(info.domain() + (info.source() == null ? "" : " " + info.source().getHostAddress()));
            }
        }
        final StringBuilder text = new StringBuilder();
        byProvider.forEach((provider, places) -> text.append("\n  ").append(provider).append(": ").append(String.join(", ", places)));
        return text.toString();
    }

    @Override
    public NetTransport create(final NrtConfig config) {
        try {
            return new LibfabricTransport(config);
        } catch (final LinkageError ex) {
            throw new NrtException(NrtStatus.FAILURE, withoutJna(ex), ex);
        }
    }
}
