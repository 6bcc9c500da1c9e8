package io.nrt4j.tools;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.nrt4j.NrtConfig;
import io.nrt4j.net.NetTransportProvider;
import io.nrt4j.net.NetTransports;
import io.nrt4j.testing.ChildJvm;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Collectives with a process for each rank, over libfabric where it is installed. */
@Tag("slow")
@Timeout(value = 400, unit = TimeUnit.SECONDS)
class CollectiveProcessesTest {
    private static final Duration LIMIT = Duration.ofSeconds(180);
    private static final int RANKS = 4;

    @TempDir
    private Path folder;

    private final List<ChildJvm> children = new ArrayList<>();

    @BeforeEach
    void needsLibfabric() {
        final Optional<NetTransportProvider> provider =
            NetTransports.all().stream().filter(each -> each.name().equals("libfabric")).findFirst();
        assumeTrue(provider.isPresent(), "no transport libfabric in this build");
        final String cause = provider.orElseThrow().unavailabilityCause(NrtConfig.fromEnvironment());
        assumeTrue(cause == null, cause);
    }

    @AfterEach
    void end() {
        children.forEach(ChildJvm::close);
    }

    private Path file(final int size) throws Exception {
        final byte[] bytes = new byte[size];
        new Random(size).nextBytes(bytes);
        return Files.write(folder.resolve("data"), bytes);
    }

    private void start(final Path file, final String... options) {
        for (int rank = 0; rank < RANKS; rank++) {
            final List<String> args = new ArrayList<>(List.of("collective", "--transport", "libfabric", "-n", Integer.toString(RANKS),
                "--rank", Integer.toString(rank), "--rendezvous", folder.resolve("meeting").toString()));
            args.addAll(List.of(options));
            args.add(file.toString());
            children.add(ChildJvm.start(List.of("-Xmx128m"), Main.class, args.toArray(String[]::new)));
        }
    }

    @Test
    void fourProcessesGatherAndReduce() throws Exception {
        start(file(1_000_003), "-i", "5", "--timeout", "150");
        for (final ChildJvm child : children) {
            assertThat(child.exitCode(LIMIT)).as(() -> child.lines().toString()).isZero();
            assertThat(child.lines()).anyMatch(line -> line.startsWith("all-gather: 4 ranks") && line.endsWith("every byte right"))
                .anyMatch(line -> line.startsWith("all-reduce: 4 ranks") && line.endsWith("every byte right"));
        }
    }

    @Test
    void whenARankIsKilledTheOthersEndWithAnErrorInBoundedTime() throws Exception {
        start(file(200_000), "-i", "1000000", "--timeout", "20", "-o", "all-reduce");
        for (final ChildJvm child : children) {
            child.awaitLine("rank ", LIMIT);
        }
        children.get(2).kill();
        for (final int rank : new int[] {0, 1, 3}) {
            assertThat(children.get(rank).exitCode(LIMIT)).as(() -> children.get(rank).lines().toString()).isEqualTo(Main.FAILED);
            assertThat(children.get(rank).lines()).anyMatch(line -> line.startsWith("nrt4j: rank " + rank));
        }
    }
}
