package io.nrt4j.tools;

import static org.assertj.core.api.Assertions.assertThat;

import io.nrt4j.testing.NeedsLibfabric;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** {@code nrt4j info}. */
class InfoCommandTest {
    private static final String PORT = "nrt4j.asyncSendRecv.bootstrapPort";
    private static final String TRANSPORT = "nrt4j.transport";
    private static final String PATH = "nrt4j.libfabric.path";

    @AfterEach
    void clear() {
        System.clearProperty(PORT);
        System.clearProperty(PATH);
        System.clearProperty(TRANSPORT);
    }

    @Test
    void itTellsWhatThereIs() {
        System.setProperty(PORT, "4711");

        final CommandRun run = CommandRun.of("info");

        assertThat(run.exitCode()).isZero();
        assertThat(run.out())
            .contains(System.getProperty("java.runtime.version"))
            .contains(System.getProperty("os.arch"))
            .containsPattern("LNCs of a process +128")
            .containsPattern("communicators of an LNC +128")
            .containsPattern("pending requests of a communicator +128")
            .contains("NEURON_RT_ASYNC_SENDRECV_BOOTSTRAP_PORT=4711 (system property " + PORT + ")")
            .contains("NRT4J_CLOSE_TIMEOUT_MS=5000 (")
            .containsPattern("loopback +available");
    }

    @Test
    void itTellsWhatLibfabricOffers() {
        NeedsLibfabric.assume();

        assertThat(CommandRun.of("info").out())
            .containsPattern("libfabric +available\\R +libfabric 1\\.[0-9]+ \\(.*\\), uses .*\\R +offers\\R")
            .containsPattern("(?m)^ +tcp;ofi_rxm: .*lo 127\\.0\\.0\\.1");
    }

    @Test
    void anAbsentLibfabricCostsTheRestNothing() {
        System.setProperty(PATH, "/nowhere/libfabric.so.1");

        final CommandRun run = CommandRun.of("info");

        assertThat(run.exitCode()).isZero();
        assertThat(run.out()).containsPattern("libfabric +not available: .*/nowhere/libfabric.so.1.*apt-get install libfabric1")
            .containsPattern("loopback +available");
    }

    @Test
    void aRefusedConfigurationIsShownBesideTheRest() {
        System.setProperty(PORT, "abc");

        final CommandRun run = CommandRun.of("info");

        assertThat(run.exitCode()).isEqualTo(1);
        assertThat(run.out()).contains("is refused: NEURON_RT_ASYNC_SENDRECV_BOOTSTRAP_PORT='abc'").contains("loopback");
        assertThat(run.err()).contains("NEURON_RT_ASYNC_SENDRECV_BOOTSTRAP_PORT='abc'");
    }

    @Test
    void aTransportThatIsNoneIsSaidBesideTheRest() {
        System.setProperty(TRANSPORT, "carrier-pigeon");

        final CommandRun run = CommandRun.of("info");

        assertThat(run.exitCode()).isEqualTo(1);
        assertThat(run.out()).contains("NRT4J_TRANSPORT=carrier-pigeon").containsPattern("loopback +available");
        assertThat(run.err()).contains("no transport is called 'carrier-pigeon'; there are libfabric, libnccom, loopback");
    }
}
