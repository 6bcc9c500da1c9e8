package io.nrt4j.net.libnccom;

import static org.assertj.core.api.Assertions.assertThat;

import io.nrt4j.NrtConfig;
import io.nrt4j.net.NetTransport;
import io.nrt4j.net.NetTransportContract;
import io.nrt4j.net.NetTransports;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;

/** The contract suite over the stand-in; after each test nothing is open in it, and no call was wrong. */
abstract class LibnccomContract extends NetTransportContract {
    private long violationsBefore;

    @BeforeAll
    static void compilerIsThere() {
        NccomStandIn.assumeGcc();
    }

    /** How the stand-in is set. */
    abstract void configureStandIn();

    @BeforeEach
    void setStandIn() {
        NccomStandIn.reset();
        configureStandIn();
        NccomStandIn.configure();
        violationsBefore = NccomStandIn.violations();
    }

    @AfterEach
    void theLibraryWasCalledRightly() {
        near.close();
        far.close();
        assertThat(NccomStandIn.violations()).isEqualTo(violationsBefore);
        NccomStandIn.reset();
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
