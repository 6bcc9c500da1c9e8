package io.nrt4j.net.libnccom;

import io.nrt4j.NrtConfig;
import io.nrt4j.net.NetTransport;
import io.nrt4j.net.NetTransportContract;
import io.nrt4j.net.NetTransports;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.extension.ExtendWith;

/** The contract suite over the stand-in; after each test nothing is open in it, and no call was wrong. */
@ExtendWith(StandInGuard.class)
abstract class LibnccomContract extends NetTransportContract {
    /** How the stand-in is set. */
    abstract void configureStandIn();

    @BeforeEach
    void setStandIn() {
        configureStandIn();
        NccomStandIn.configure();
    }

    @AfterEach
    void closeBoth() {
        near.close();
        far.close();
    }

    @Override
    protected NrtConfig config() {
        return NccomStandIn.config().build();
    }

    @Override
    protected NetTransport newTransport(final NrtConfig config) {
        return NetTransports.byName("libnccom").create(config);
    }
}
