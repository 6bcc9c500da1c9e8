package io.nrt4j.tools;

import static org.assertj.core.api.Assertions.assertThat;

import io.nrt4j.testing.ChildJvm;
import io.nrt4j.testing.NeedsLibfabric;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.time.Duration;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** {@code nrt4j transfer} between two processes over libfabric: all that arrives, and what happens when an end fails. */
@Tag("slow")
@Timeout(400)
class TwoProcessTransferTest {
    /** How a failure says that the peer has died. */
    static final String DEATH = "ended, or closed|the control connection with \\S+ broke|connection with the peer breaks|provider: ";
    private static final Duration LIMIT = Duration.ofSeconds(120);
    /** From a peer's death to this end's exit; what is measured is far below. */
    private static final Duration SECONDS = Duration.ofSeconds(10);
    /** Far more than can be digested before the test acts; takes no room on the disk. */
    private static final long SPARSE_BYTES = 16L << 30;

    @TempDir
    private Path temp;

    @BeforeAll
    static void libfabricIsThere() {
        NeedsLibfabric.assume();
    }

    static String sha256(final Path path) throws IOException {
        try (var in = Files.newInputStream(path)) {
            final MessageDigest digest = MessageDigest.getInstance("SHA-256");
            final byte[] buffer = new byte[1 << 20];
            for (int n = in.read(buffer); n >= 0; n = in.read(buffer)) {
                digest.update(buffer, 0, n);
            }
            return HexFormat.of().formatHex(digest.digest());
        } catch (final NoSuchAlgorithmException ex) {
            throw new AssertionError(ex);
        }
    }

    private TwoEnds transfer(final String provider, final List<String> listening, final Object... calling) {
        return TwoEnds.start(provider, temp, "transfer", listening, java.util.Arrays.stream(calling).map(String::valueOf).toList());
    }

    private Path sparse() throws IOException {
        final Path file = temp.resolve("sparse");
        try (RandomAccessFile out = new RandomAccessFile(file.toFile(), "rw")) {
            out.setLength(SPARSE_BYTES);
        }
        return file;
    }

    @ParameterizedTest
    @CsvSource({"tcp;ofi_rxm,1M,8", "tcp;ofi_rxm,4K,128", "shm,1M,8", "shm,60000,64"})
    void filesArriveAsTheyWereSent(final String provider, final String chunk, final String inFlight) throws IOException {
        final Path folder = Files.createDirectories(temp.resolve("src/sub"));
        final Random random = new Random(3);
        for (final int size : new int[] {0, 1, 5000, 1 << 20, 3_000_001}) {
            final byte[] content = new byte[size];
            random.nextBytes(content);
            Files.write(folder.resolve("of " + size), content);
        }

        try (TwoEnds ends = transfer(provider, List.of("--out", temp.resolve("out").toString(), "--in-flight", inFlight),
            "--chunk", chunk, "--in-flight", inFlight, temp.resolve("src"))) {
            assertThat(ends.caller().exitCode(LIMIT)).as("%s", ends.caller().lines()).isZero();
            assertThat(ends.listener().exitCode(LIMIT)).as("%s", ends.listener().lines()).isZero();
            for (final int size : new int[] {0, 1, 5000, 1 << 20, 3_000_001}) {
                final String sum = sha256(folder.resolve("of " + size));
                assertThat(sha256(temp.resolve("out/src/sub/of " + size))).isEqualTo(sum);
                for (final ChildJvm end : List.of(ends.caller(), ends.listener())) {
                    assertThat(end.lines()).contains("         SHA-256 sent     " + sum, "         SHA-256 received " + sum);
                }
            }
        }
    }

    @ParameterizedTest
    @CsvSource({"tcp;ofi_rxm,listener", "tcp;ofi_rxm,caller", "shm,listener", "shm,caller"})
    void whenOneEndIsKilledTheOtherEndsInSecondsAndSaysWhy(final String provider, final String killed) throws IOException {
        try (TwoEnds ends = transfer(provider, List.of("--out", temp.resolve("out").toString()), "--chunk", "4M", sparse())) {
            final boolean receiver = killed.equals("listener");
            ends.listener().awaitLine("progress", line -> line.contains(" % "), LIMIT);
            (receiver ? ends.listener() : ends.caller()).kill();
            final long killedNs = System.nanoTime();
            final ChildJvm survivor = receiver ? ends.caller() : ends.listener();

            assertThat(survivor.exitCode(SECONDS)).as("%s", survivor.lines()).isEqualTo(1);
            System.out.printf("transfer over %s, %s killed: the other end ended %d ms after%n", provider, killed,
                (System.nanoTime() - killedNs) / 1_000_000);
            final String text = survivor.awaitLine("nrt4j: ", SECONDS);
            // The provider may notice before the control socket does.
            assertThat(text).contains("with peer 127.0.0.1 lnc " + (receiver ? 1 : 0)).containsPattern(DEATH);
            if (!receiver) {
                assertThat(temp.resolve("out").toFile().list()).as("nothing of it is kept").isEmpty();
            }
        }
    }

    /** Were it mapped, the next access in native code would be a SIGBUS, and the end of the JVM. */
    @ParameterizedTest
    @ValueSource(strings = {"tcp;ofi_rxm", "shm"})
    void aFileThatIsCutShortEndsBothEndsInGoodOrder(final String provider) throws IOException {
        final Path file = sparse();
        try (TwoEnds ends = transfer(provider, List.of(), "--chunk", "4M", file)) {
            ends.listener().awaitLine("progress", line -> line.contains(" % "), LIMIT);
            try (RandomAccessFile out = new RandomAccessFile(file.toFile(), "rw")) {
                out.setLength(1000);
            }

            assertThat(ends.caller().exitCode(SECONDS)).as("%s", ends.caller().lines()).isEqualTo(1);
            assertThat(ends.listener().exitCode(SECONDS)).as("%s", ends.listener().lines()).isEqualTo(1);
            assertThat(ends.caller().awaitLine("nrt4j: ", SECONDS)).contains("cannot read '" + file + "'");
            assertThat(ends.listener().awaitLine("nrt4j: ", SECONDS)).contains("gave up");
        }
    }

    @Test
    void whatLibfabricDoesNotHaveIsNamed() {
        try (ChildJvm child = ChildJvm.start(List.of("-Dnrt4j.libfabric.provider=pigeon"), Main.class,
            TwoEnds.arguments("4711", "127.0.0.1", "transfer", true, List.of()))) {
            assertThat(child.exitCode(LIMIT)).isEqualTo(1);
            assertThat(child.awaitLine("nrt4j: ", LIMIT)).contains("'pigeon'").contains("tcp;ofi_rxm");
        }
        try (ChildJvm child = ChildJvm.start(List.of("-Dnrt4j.libfabric.address=203.0.113.77"), Main.class,
            TwoEnds.arguments("4711", "127.0.0.1", "transfer", true, List.of()))) {
            assertThat(child.exitCode(LIMIT)).isEqualTo(1);
            assertThat(child.awaitLine("nrt4j: ", LIMIT)).contains("NRT4J_LIBFABRIC_ADDRESS='203.0.113.77'").contains("127.0.0.1");
        }
    }
}
