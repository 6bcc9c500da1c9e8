package io.nrt4j.net.libfabric;

import io.nrt4j.NrtConfig;
import io.nrt4j.NrtException;
import io.nrt4j.net.NetTransport;
import io.nrt4j.net.NetTransportProvider;
import java.util.stream.Collectors;

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
        }
    }

    @Override
    public String describe(final NrtConfig config) {
        try {
            final Libfabric libfabric = Libfabric.load(config.libfabricPath());
            final String head = "libfabric " + libfabric.versionText() + " (" + libfabric.name() + "), ";
            try (FabricSelection selection = FabricSelection.choose(libfabric, config);
                Libfabric.InfoList all = libfabric.infos(null, false)) {
                return head + "uses " + selection.info().describe() + "; offers " + all.entries().stream()
                    .filter(FabricInfo::usable).map(FabricInfo::describe).distinct().collect(Collectors.joining(", "));
            } catch (final NrtException ex) {
                return head + ex.getMessage();
            }
        } catch (final NrtException ex) {
            return ex.getMessage();
        }
    }

    @Override
    public NetTransport create(final NrtConfig config) {
        return new LibfabricTransport(config);
    }
}
