package io.nrt4j.net.libnccom;

import io.nrt4j.NrtConfig;
import io.nrt4j.NrtException;
import io.nrt4j.net.NetTransport;
import io.nrt4j.net.NetTransportProvider;

/** Makes transports over libnccom. */
public final class LibnccomProvider implements NetTransportProvider {
    /** Made by {@link java.util.ServiceLoader}. */
    public LibnccomProvider() {
    }

    @Override
    public String name() {
        return LibnccomTransport.NAME;
    }

    /** Loads the library, starts its network, and does what an init does with it: the flush connection of LNC 0. */
    @Override
    public String unavailabilityCause(final NrtConfig config) {
        try (NetTransport transport = create(config)) {
            SelfTest.run(transport);
            return null;
        } catch (final NrtException ex) {
            return ex.getMessage();
        }
    }

    @Override
    public String describe(final NrtConfig config) {
        final Nccom nccom = NccomLoader.load(config.libnccomPath(), config.libnccomNetPath());
        return nccom.isLoaded() ? "CCOM " + nccom.version().text() + " (" + nccom.name() + "), memory type "
            + config.libnccomMemoryType() : nccom.error();
    }

    @Override
    public NetTransport create(final NrtConfig config) {
        return new LibnccomTransport(config);
    }
}
