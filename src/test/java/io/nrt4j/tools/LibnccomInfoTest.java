package io.nrt4j.tools;

import static org.assertj.core.api.Assertions.assertThat;

import io.nrt4j.net.libnccom.NccomStandIn;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** What {@code nrt4j info} says of libnccom. */
class LibnccomInfoTest {
    private static final String PATH = "nrt4j.libnccom.path";
    private static final String TYPE = "nrt4j.libnccom.memoryType";

    @BeforeAll
    static void compilerIsThere() {
        NccomStandIn.assumeGcc();
    }

    @AfterEach
    void clear() {
        System.clearProperty(PATH);
        System.clearProperty(TYPE);
        NccomStandIn.reset();
    }

    private static String line() {
        final CommandRun run = CommandRun.of("info");
        assertThat(run.exitCode()).isZero();
        final String[] lines = run.out().split("\n");
        for (int i = 0; i < lines.length; i++) {
            if (lines[i].startsWith("  libnccom ")) {
                return lines[i] + (lines[i].contains("not available") ? "" : lines[i + 1]);
            }
        }
        throw new AssertionError(run.out());
    }

    @Test
    void aLibraryThatWorks() {
        System.setProperty(PATH, NccomStandIn.library().toString());
        assertThat(line()).containsPattern("libnccom +available +CCOM 2\\.31\\.24\\.0-57a4d1n00 \\(.*libnccom\\.so\\), memory type 4");
    }

    @Test
    void aLibraryThatIsMissing() {
        System.setProperty(PATH, "/nowhere/libnccom.so");
        assertThat(line()).contains("not available: /nowhere/libnccom.so cannot be loaded", "No such file or directory");
    }

    @Test
    void aHostThatCannotRegisterDeviceMemory() {
        System.setProperty(PATH, NccomStandIn.library().toString());
        NccomStandIn.set("NO_DEVICE_MEMORY", 1);
        assertThat(line()).contains("not available: flush buffer: neuronNetRegMrOG of 4 bytes", "NRT4J_LIBNCCOM_MEMORY_TYPE=1");
        System.setProperty(TYPE, "1");
        assertThat(line()).contains("available", "memory type 1");
    }

    @Test
    void aNetworkThatDoesNotStart() {
        System.setProperty(PATH, NccomStandIn.library().toString());
        NccomStandIn.set("FAIL", "neuronInitNet:1+");
        assertThat(line()).contains("not available: neuronInitNet without a root communicator id answered 1 (FAILURE)");
    }
}
