package io.nrt4j.net.libfabric;

import io.nrt4j.NrtConfig;
import io.nrt4j.net.NetTransport;
import io.nrt4j.net.NetTransportContract;
import org.junit.jupiter.api.BeforeAll;

/** The transport contract over libfabric's provider {@code shm}. */
class ShmContractTest extends NetTransportContract {
    @BeforeAll
    static void libfabricIsThere() {
        FabricPair.assumeLibfabric();
    }

    @Override
    protected NrtConfig config() {
        return FabricPair.config("shm");
    }

    @Override
    protected NetTransport newTransport(final NrtConfig config) {
        return new LibfabricProvider().create(config);
    }
}
