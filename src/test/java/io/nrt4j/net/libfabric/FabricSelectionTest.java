package io.nrt4j.net.libfabric;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nrt4j.NrtConfig;
import io.nrt4j.NrtSetting;
import io.nrt4j.NrtException;
import io.nrt4j.net.NetTransport;
import io.nrt4j.net.NetTransports;
import java.util.Map;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** Loading, and the choice of provider and address. */
class FabricSelectionTest {
    @BeforeAll
    static void libfabricIsThere() {
        FabricPair.assumeLibfabric();
    }

    private static NrtConfig config(final String provider, final String address) {
        return NrtConfig.builder(Map.of(), Map.of()).set(NrtSetting.LIBFABRIC_PROVIDER, provider)
            .set(NrtSetting.LIBFABRIC_ADDRESS, address).build();
    }

    @Test
    void isFoundByName() {
        assertThat(NetTransports.byName("libfabric")).isInstanceOf(LibfabricProvider.class);
    }

    @Test
    void anAbsentLibrarySaysWhatToInstall() {
        final NrtConfig config = NrtConfig.builder(Map.of(), Map.of())
            .set(NrtSetting.LIBFABRIC_PATH, "/nowhere/libfabric.so.1").build();
        final LibfabricProvider provider = new LibfabricProvider();
        assertThat(provider.unavailabilityCause(config)).contains("/nowhere/libfabric.so.1").contains("apt-get install libfabric1");
        assertThat(provider.describe(config)).contains("apt-get install libfabric1");
        assertThatThrownBy(() -> provider.create(config)).isInstanceOf(NrtException.class).hasMessageContaining("install");
        assertThat(provider.unavailabilityCause(config("", ""))).isNull();
    }

    @Test
    void theDefaultReachesOtherHosts() {
        final Libfabric libfabric = Libfabric.load("");
        try (FabricSelection selection = FabricSelection.choose(libfabric, config("", ""))) {
            assertThat(selection.info().provider()).isNotIn("shm", "sockets");
        }
    }

    @Test
    void anUnknownProviderIsNamedBesideThoseThatExist() {
        assertThat(new LibfabricProvider().unavailabilityCause(config("carrier-pigeon", "")))
            .contains("'carrier-pigeon'").contains("tcp;ofi_rxm").contains("shm");
    }

    @Test
    void anAddressThatNoInterfaceHasIsNamedBesideThoseThatExist() {
        assertThat(new LibfabricProvider().unavailabilityCause(config("", "203.0.113.77")))
            .contains("203.0.113.77").contains("127.0.0.1");
        assertThat(new LibfabricProvider().unavailabilityCause(config("", "nonet0"))).contains("nonet0").contains("lo[");
    }

    @Test
    void anInterfaceOrAnAddressChoosesTheSource() {
        final Libfabric libfabric = Libfabric.load("");
        for (final String address : new String[] {"127.0.0.1", "lo"}) {
            try (FabricSelection selection = FabricSelection.choose(libfabric, config("tcp;ofi_rxm", address))) {
                assertThat(selection.info().source().isLoopbackAddress()).isTrue();
                assertThat(selection.control()).isEqualTo(selection.info().source());
            }
        }
    }

    @Test
    void describesWhatTheHostOffers() {
        assertThat(new LibfabricProvider().describe(config("", ""))).contains("libfabric 1.").contains("offers").contains("shm");
    }

    @Test
    void aTransportCanBeOpenedAndClosedManyTimes() {
        for (int i = 0; i < 10; i++) {
            try (NetTransport transport = new LibfabricProvider().create(config("tcp;ofi_rxm", "127.0.0.1"))) {
                assertThat(transport.maxMessageBytes()).isGreaterThan(1L << 31);
                assertThat(transport.needsProgress()).isFalse();
            }
        }
    }
}
