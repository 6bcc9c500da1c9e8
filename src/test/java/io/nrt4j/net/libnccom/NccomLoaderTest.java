package io.nrt4j.net.libnccom;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nrt4j.NrtConfig;
import io.nrt4j.NrtSetting;
import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.sendrecv.NrtAsyncSendRecv;
import io.nrt4j.testing.FreePorts;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What cannot be loaded: each cause is one line in the exception, from the provider, and in init, which answers FAILURE. */
class NccomLoaderTest {
    @TempDir
    private Path folder;

    @BeforeAll
    static void compilerIsThere() {
        NccomStandIn.assumeGcc();
    }

    @AfterEach
    void reset() {
        NccomStandIn.reset();
    }

    private static NrtConfig config(final Path file) {
        return NccomStandIn.config(file).build();
    }

    /** The cause, the same from all who are asked, without a line break. */
    private void assertCause(final NrtConfig.Builder builder, final String... parts) {
        final NrtConfig config = builder.asyncSendRecvEnabled(true).bootstrapPort(FreePorts.next()).kvLockDirectory(folder)
            .kvBindAddress("127.0.0.1").build();
        final LibnccomProvider provider = new LibnccomProvider();
        final String cause = provider.unavailabilityCause(config);
        assertThat(cause).contains(parts).doesNotContain("\n");
        try (NrtAsyncSendRecv engine = new NrtAsyncSendRecv(config, provider)) {
            assertThat(engine.init(0)).isEqualTo(NrtStatus.FAILURE);
            assertThat(engine.lastError()).contains(parts);
        }
    }

    private void assertNotLoaded(final Path file, final String... parts) {
        assertCause(NccomStandIn.config(file), parts);
        assertThatThrownBy(() -> new LibnccomProvider().create(config(file))).isInstanceOfSatisfying(NrtException.class,
            ex -> assertThat(ex.status()).isEqualTo(NrtStatus.FAILURE)).hasMessageContainingAll(parts);
        assertThat(new LibnccomProvider().describe(config(file))).contains(parts);
    }

    @Test
    void aFileThatIsNotThere() {
        assertNotLoaded(folder.resolve("libnccom.so"), "cannot be loaded", "No such file or directory", "NRT4J_LIBNCCOM_PATH");
    }

    @Test
    void theSystemsOwnNameSaysWhatToInstall() {
        final NrtConfig config = NrtConfig.builder(java.util.Map.of(), java.util.Map.of()).build();
        final String cause = new LibnccomProvider().unavailabilityCause(config);
        if (cause != null) {
            assertThat(cause).contains("libnccom.so", "aws-neuronx-collectives", "NRT4J_LIBNCCOM_PATH").doesNotContain("\n");
        }
    }

    @Test
    void aFileThatIsNoLibrary() throws IOException {
        final Path file = folder.resolve("text.so");
        Files.writeString(file, "this is not a library, but it is long enough to have a header of sixty-four bytes and more\n");
        assertNotLoaded(file, "cannot be loaded", "invalid ELF header");
    }

    @Test
    void aDependencyThatIsMissingIsNamedInTheLoadersOwnWords() throws IOException {
        final Path runtime = folder.resolve("libnrt.so.1");
        final Path source = folder.resolve("empty.c");
        Files.writeString(source, "int nrt_of_the_test;\n");
        NccomStandIn.run(List.of("gcc", "-shared", "-fPIC", "-Wl,-soname,libnrt.so.1", "-o", runtime.toString(), source.toString()));
        final Path file = NccomStandIn.build("libnccom-with-nrt.so", "-Wl,--no-as-needed", runtime.toString());
        Files.delete(runtime);
        assertNotLoaded(file, "libnrt.so.1: cannot open shared object file", "aws-neuronx-runtime-lib");
    }

    @Test
    void anotherCompatibilityId() {
        NccomStandIn.set("COMPAT", 88);
        final Path file = NccomStandIn.build("libnccom-88.so");
        assertNotLoaded(file, "2.31.24.0-57a4d1n00", "compatibility id 88 instead of 89");
        assertIsClosed(file);
    }

    /** The 25th function in the order of the look-up. */
    @Test
    void oneFunctionMissingEmptiesTheWholeTable() {
        assertThat(NccomSymbol.values()[24]).isEqualTo(NccomSymbol.NET_LISTEN);
        final Path file = NccomStandIn.build("libnccom-without-25.so", "-DneuronNetListen=hidden_listen");
        assertNotLoaded(file, "has no function neuronNetListen");
        assertIsClosed(file);
        final Nccom nccom = NccomLoader.load(file.toString(), "");
        try (NativeCall call = new NativeCall()) {
            assertThat(nccom.neuronInitNet(call, 0)).isEqualTo(1);
            assertThat(nccom.neuronNetTest(call, 8, call.outAddress(0), call.outAddress(1))).isEqualTo(1);
            assertThat(nccom.neuronNetIsend(call, 8, 8, 1, 8, call.outAddress(0))).isEqualTo(1);
            assertThat(nccom.neuronNetworkProxyProgress(call, 8, 0, 0, call.outAddress(0), call.outAddress(1))).isEqualTo(1);
            nccom.neuronGetVersionInfo(call, call.outAddress(0), NccomVersion.BYTES);
            assertThat(call.out(0)).isZero();
        }
        assertThat(nccom.isLoaded()).isFalse();
    }

    private static void assertIsClosed(final Path file) {
        try {
            assertThat(Files.readString(Path.of("/proc/self/maps"))).doesNotContain(file.getFileName().toString());
        } catch (final IOException ex) {
            throw new AssertionError(ex);
        }
    }

    @Test
    void theFirstErrorSticks() {
        NccomStandIn.set("COMPAT", 90);
        final Path file = NccomStandIn.build("libnccom-90.so");
        assertNotLoaded(file, "compatibility id 90");
        NccomStandIn.reset();
        assertNotLoaded(file, "compatibility id 90");
    }

    @Test
    void aNetworkThatDoesNotStart() {
        NccomStandIn.set("FAIL", "neuronInitNet:1+:6");
        assertCause(NccomStandIn.config().set(NrtSetting.ROOT_COMM_ID, "10.0.0.1:4000"),
            "neuronInitNet with root communicator id 10.0.0.1:4000 answered 6 (HW_ERROR)");
        NccomStandIn.reset();
        assertThat(new LibnccomProvider().unavailabilityCause(NccomStandIn.config().build())).isNull();
        NccomStandIn.assertNothingOpen();
    }

    @Test
    void aHostThatCannotRegisterDeviceMemoryNeedsTheOtherType() {
        NccomStandIn.set("NO_DEVICE_MEMORY", 1);
        assertCause(NccomStandIn.config(), "flush buffer", "neuronNetRegMrOG", "with type 4", "answered 1 (FAILURE)",
            "NRT4J_LIBNCCOM_MEMORY_TYPE=1");
        NccomStandIn.assertNothingOpen();
        assertThat(new LibnccomProvider().unavailabilityCause(
            NccomStandIn.config().set(NrtSetting.LIBNCCOM_MEMORY_TYPE, "1").build())).isNull();
        NccomStandIn.assertNothingOpen();
    }

    @Test
    void aHostWithoutAnInterface() {
        NccomStandIn.set("FAIL", "neuronPreferredNcRidNic:1+");
        assertCause(NccomStandIn.config(), "neuronPreferredNcRidNic for lnc 0 answered 1 (FAILURE)");
        NccomStandIn.assertNothingOpen();
    }

    @Test
    void whatIsLoadedTellsItsVersion() {
        final NrtConfig config = NccomStandIn.config().build();
        assertThat(new LibnccomProvider().unavailabilityCause(config)).isNull();
        assertThat(new LibnccomProvider().describe(config)).startsWith("CCOM 2.31.24.0-57a4d1n00 (").endsWith("memory type 4");
        NccomStandIn.assertNothingOpen();
    }
}
