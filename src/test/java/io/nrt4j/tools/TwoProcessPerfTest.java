package io.nrt4j.tools;

import static org.assertj.core.api.Assertions.assertThat;

import io.nrt4j.testing.NeedsLibfabric;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** {@code nrt4j perf} between two processes over libfabric. */
@Tag("slow")
@Timeout(400)
class TwoProcessPerfTest {
    private static final Duration LIMIT = Duration.ofSeconds(120);

    @TempDir
    private Path temp;

    @BeforeAll
    static void libfabricIsThere() {
        NeedsLibfabric.assume();
    }

    @ParameterizedTest
    @ValueSource(strings = {"tcp;ofi_rxm", "shm"})
    void everyKindOfMeasurement(final String provider) {
        try (TwoEnds ends = TwoEnds.start(provider, temp, "perf", List.of(),
            List.of("--json", "--latency", "8,64K,1M", "--bandwidth", "1M", "--iterations", "20", "--warm-up", "5"))) {
            assertThat(ends.caller().exitCode(LIMIT)).as("%s", ends.caller().lines()).isZero();
            assertThat(ends.listener().exitCode(LIMIT)).as("%s", ends.listener().lines()).isZero();
            assertThat(ends.caller().lines()).hasSize(4).allMatch(line -> line.startsWith("{\"transport\":\"libfabric\",\"mode\":\""));
            assertThat(ends.listener().lines()).isEmpty();
        }
        try (TwoEnds ends = TwoEnds.start(provider, temp, "perf", List.of(), List.of("--kv", "--json", "--layers", "4", "--blocks", "64",
            "--iterations", "2", "--block-size", "16K,256K"))) {
            assertThat(ends.caller().exitCode(LIMIT)).as("%s", ends.caller().lines()).isZero();
            assertThat(ends.listener().exitCode(LIMIT)).as("%s", ends.listener().lines()).isZero();
            assertThat(ends.caller().lines()).hasSize(2).allMatch(line -> line.contains("\"mode\":\"kv\""));
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"listener", "caller"})
    void whenOneEndIsKilledTheOtherEndsInSeconds(final String killed) {
        try (TwoEnds ends = TwoEnds.start("tcp;ofi_rxm", temp, "perf", List.of(),
            List.of("--json", "--latency", "8,16M", "--iterations", "2000", "--warm-up", "0"))) {
            // The first measurement is short even where many share the processors, the second long even where nobody does.
            ends.caller().awaitLine("{", LIMIT);
            (killed.equals("listener") ? ends.listener() : ends.caller()).kill();
            final var survivor = killed.equals("listener") ? ends.caller() : ends.listener();
            assertThat(survivor.exitCode(Duration.ofSeconds(10))).as("%s", survivor.lines()).isEqualTo(1);
            // The provider may notice before the control socket does.
            assertThat(survivor.awaitLine("nrt4j: ", LIMIT)).containsPattern(TwoProcessTransferTest.DEATH);
        }
    }
}
