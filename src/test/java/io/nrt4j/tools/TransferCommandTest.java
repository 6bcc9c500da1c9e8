package io.nrt4j.tools;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeFalse;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.nrt4j.net.loopback.FaultPlan;
import io.nrt4j.sendrecv.NrtAsyncSendRecv;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.time.Duration;
import java.util.HexFormat;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** {@code nrt4j transfer} with real files, through two whole engines. */
@Timeout(200)
class TransferCommandTest {
    @TempDir
    private Path temp;

    private Path write(final String name, final int bytes) throws IOException {
        final Path path = temp.resolve("src").resolve(name);
        Files.createDirectories(path.getParent());
        final byte[] content = new byte[bytes];
        new Random(bytes).nextBytes(content);
        return Files.write(path, content);
    }

    private static String sha256(final Path path) throws IOException {
        try {
            return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(Files.readAllBytes(path)));
        } catch (final NoSuchAlgorithmException ex) {
            throw new AssertionError(ex);
        }
    }

    /** Relative name to digest of every regular file below, hidden folders included. */
    private static Map<String, String> contents(final Path folder) throws IOException {
        final Map<String, String> contents = new TreeMap<>();
        try (Stream<Path> paths = Files.walk(folder)) {
            for (final Path path : paths.filter(Files::isRegularFile).toList()) {
                contents.put(folder.relativize(path).toString(), sha256(path));
            }
        }
        return contents;
    }

    @Test
    void aFileArrivesAndBothDigestsArePrinted() throws IOException {
        final Path file = write("one.bin", 5_000_001);

        final CommandRun run = CommandRun.of("transfer", "--chunk", "1M", "--out", temp.resolve("out"), file);

        assertThat(run.err()).isEmpty();
        assertThat(run.exitCode()).isZero();
        assertThat(run.out())
            .contains("OK       5,000,001 bytes  one.bin")
            .contains("SHA-256 sent     " + sha256(file))
            .contains("SHA-256 received " + sha256(file))
            .contains("GB/s");
        assertThat(contents(temp.resolve("out"))).isEqualTo(Map.of("one.bin", sha256(file)));
    }

    @ParameterizedTest
    @ValueSource(strings = {"1:4K", "128:64K", "8:16M", "3:1K"})
    void foldersWithAllKindsOfFilesArriveTheSame(final String way) throws IOException {
        write("empty", 0);
        write("a/first empty", 0);
        write("a/b/c/deep", 1);
        write("a/b/c/zzz empty", 0);
        write("name with spaces & ?%#+;'\"", 4096);
        write("exactly two chunks", 8192);
        write("\u00fcml\u00e4ut/\u65e5\u672c\u8a9e \ud83d\ude80", 70_000);
        write("mapped", 3 << 20);
        write("mapped and odd", (1 << 20) + 1);
        for (int i = 0; i < 300; i++) {
            write("many/" + i, i);
        }
        Files.createSymbolicLink(temp.resolve("src/link to a file"), temp.resolve("src/mapped"));
        Files.createSymbolicLink(temp.resolve("src/link to a folder"), temp.resolve("src/a"));
        final String[] parts = way.split(":");

        final CommandRun run = CommandRun.of("transfer", "--in-flight", parts[0], "--chunk", parts[1],
            "--out", temp.resolve("out"), temp.resolve("src"));

        assertThat(run.err()).isEmpty();
        assertThat(run.exitCode()).isZero();
        assertThat(run.out()).contains(": 313 files, ");
        final Map<String, String> expected = contents(temp.resolve("src"));
        // Links are followed: what they lead to arrives as files.
        expected.put("link to a folder/first empty", sha256(temp.resolve("src/empty")));
        expected.put("link to a folder/b/c/deep", sha256(temp.resolve("src/a/b/c/deep")));
        expected.put("link to a folder/b/c/zzz empty", sha256(temp.resolve("src/empty")));
        assertThat(contents(temp.resolve("out/src"))).isEqualTo(expected);
        assertThat(temp.resolve("out").toFile().list()).containsExactly("src");
    }

    @Test
    void onlyEmptyFiles() throws IOException {
        final CommandRun run = CommandRun.of("transfer", "--out", temp.resolve("out"), write("x", 0), write("y", 0));

        assertThat(run.exitCode()).as(run.err()).isZero();
        assertThat(contents(temp.resolve("out"))).containsOnlyKeys("x", "y");
    }

    @Test
    void withoutOutNothingIsWritten() throws IOException {
        final Path file = write("x", 100);

        assertThat(CommandRun.of("transfer", file).exitCode()).isZero();
        assertThat(contents(temp)).containsOnlyKeys("src/x");
    }

    @Test
    void aFileThatIsThereIsReplacedAndALinkIsNotFollowed() throws IOException {
        final Path file = write("x", 100);
        final Path precious = Files.writeString(temp.resolve("precious"), "do not touch");
        Files.createDirectories(temp.resolve("out"));
        Files.createSymbolicLink(temp.resolve("out/x"), precious);

        assertThat(CommandRun.of("transfer", "--out", temp.resolve("out"), file).exitCode()).isZero();

        assertThat(precious).hasContent("do not touch");
        assertThat(Files.isSymbolicLink(temp.resolve("out/x"))).isFalse();
        assertThat(sha256(temp.resolve("out/x"))).isEqualTo(sha256(file));
    }

    @Test
    void aLinkInTheTargetDoesNotLeadOutOfIt() throws IOException {
        write("sub/x", 100);
        final Path outside = Files.createDirectories(temp.resolve("outside"));
        Files.createDirectories(temp.resolve("out/src"));
        Files.createSymbolicLink(temp.resolve("out/src/sub"), outside);

        final CommandRun run = CommandRun.of("transfer", "--out", temp.resolve("out"), temp.resolve("src"));

        assertThat(run.exitCode()).isEqualTo(1);
        assertThat(run.err()).contains("src/sub/x").contains("is no folder");
        assertThat(outside).isEmptyDirectory();
        assertThat(temp.resolve("out").toFile().list()).containsExactly("src");
    }

    @Test
    void aFlippedBitIsAMismatchAndTheFileIsNotKept() throws IOException {
        write("good", 10_000);
        final Path bad = write("bad", 12_345);

        final CommandRun run = CommandRun.of(
            config -> new NrtAsyncSendRecv(config, new WrappedLoopback(null, 12_345)),
            "transfer", "--out", temp.resolve("out"), temp.resolve("src"));

        assertThat(run.exitCode()).isEqualTo(1);
        assertThat(run.out())
            .contains("OK       10,000 bytes  src/good")
            .contains("MISMATCH 12,345 bytes  src/bad")
            .contains("SHA-256 sent     " + sha256(bad))
            .contains("1 of 2 files did not arrive as they were sent");
        assertThat(contents(temp.resolve("out"))).containsOnlyKeys("src/good");
    }

    @ParameterizedTest
    @ValueSource(strings = {"ISEND", "IRECV", "TEST", "REG_MR", "CONNECT", "LISTEN"})
    void aTransportThatFailsEndsItWithTheReason(final String operation) throws IOException {
        final Path file = write("x", 1 << 20);
        for (final int nth : new int[] {3, 12}) {
            final FaultPlan plan = new FaultPlan().fail(FaultPlan.Operation.valueOf(operation), nth, "the cable is cut");

            final CommandRun run = CommandRun.of(config -> new NrtAsyncSendRecv(config, new WrappedLoopback(plan, -1)),
                "transfer", "--timeout", "5", "--chunk", "64K", "--out", temp.resolve("out"), file);

            if (plan.calls(FaultPlan.Operation.valueOf(operation)) >= nth) {
                assertThat(run.exitCode()).as(operation + " " + nth).isEqualTo(1);
                assertThat(run.err()).contains("the cable is cut").contains("lnc ");
                assertThat(temp.resolve("out").toFile().list()).as(operation + " " + nth).isNullOrEmpty();
            }
        }
    }

    @Test
    void aTransferThatStopsMovingEndsAtItsTimeLimit() throws IOException {
        final Path file = write("x", 1 << 20);
        final FaultPlan plan = new FaultPlan().completeAfterTests(FaultPlan.Operation.ISEND, Integer.MAX_VALUE);
        final long startNs = System.nanoTime();

        final CommandRun run = CommandRun.of(config -> new NrtAsyncSendRecv(config, new WrappedLoopback(plan, -1)),
            "transfer", "--timeout", "1", file);

        assertThat(Duration.ofNanos(System.nanoTime() - startNs)).isLessThan(Duration.ofSeconds(20));
        assertThat(run.exitCode()).isEqualTo(1);
        assertThat(run.err()).contains("nothing moved for 1").contains("with peer 127.0.0.").contains("CONNECTED");
    }

    /** Fails when the kernel chooses the port, which is then among those that it may give to a client the next moment. */
    @Test
    void thePortOfBothEndsIsNoneThatTheKernelGivesToClients() throws IOException {
        final Path range = Path.of("/proc/sys/net/ipv4/ip_local_port_range");
        assumeTrue(Files.exists(range), "no Linux");
        final int first = Integer.parseInt(Files.readAllLines(range).get(0).split("\\s+")[0]);
        assumeTrue(first >= 32_768, "another range than the default one");
        for (int i = 0; i < 20; i++) {
            assertThat(EmbeddedPair.freePort("127.0.0.1", "127.0.0.2")).isBetween(1024, first - 1);
        }
    }

    @Test
    void nothingIsLeftBehind() throws IOException {
        final Path file = write("x", 3 << 20);
        final Set<Thread> before = Thread.getAllStackTraces().keySet(); // an earlier test's may end meanwhile

        CommandRun.of("transfer", file);

        assertThat(Thread.getAllStackTraces().keySet().stream().filter(thread -> !before.contains(thread) && thread.isAlive())
            .map(Thread::getName)).as("threads that are new").noneMatch(name ->
                name.startsWith("nrt4j-sr") || name.startsWith("nrt4j-kv") || name.startsWith("nrt4j-digest"));
    }

    @Test
    void whatCannotBeSentIsNamed() throws IOException {
        write("fine", 10);
        final Path dangling = Files.createSymbolicLink(temp.resolve("src/dangling"), temp.resolve("nowhere"));
        refused("'" + dangling + "': there is no such file", temp.resolve("src"));
        Files.delete(dangling);

        final Path loop = Files.createSymbolicLink(temp.resolve("src/loop"), temp.resolve("src"));
        refused("'" + loop + "': it is a symbolic link that leads back", temp.resolve("src"));
        Files.delete(loop);

        refused("no such file", temp.resolve("missing"));
        refused("neither a file nor a folder", Path.of("/dev/null"));
        refused("there is no file to send", Files.createDirectory(temp.resolve("nothing")));
        refused("same name", temp.resolve("src/fine"), temp.resolve("src/fine"));
    }

    private static void refused(final String reason, final Path... sources) {
        final Object[] args = new Object[sources.length + 1];
        args[0] = "transfer";
        System.arraycopy(sources, 0, args, 1, sources.length);
        final CommandRun run = CommandRun.of(args);
        assertThat(run.exitCode()).as(reason).isEqualTo(1);
        assertThat(run.err()).startsWith("nrt4j: ").contains(reason);
    }

    @Test
    void aFileWithoutPermissionIsNamed() throws IOException {
        final Path secret = write("secret", 10);
        Files.setPosixFilePermissions(secret, PosixFilePermissions.fromString("---------"));
        assumeFalse(Files.isReadable(secret), "whoever runs this may read everything");

        refused("'" + secret + "': it cannot be read: permission denied", temp.resolve("src"));
    }

    @Test
    void aFileThatChangesItsSizeIsNamed() throws IOException {
        final Path file = write("grows", 1000);
        final CommandRun run = CommandRun.of(config -> {
            try (RandomAccessFile writer = new RandomAccessFile(file.toFile(), "rw")) {
                writer.setLength(2000); // between the look at the folder and the transfer
            } catch (final IOException ex) {
                throw new AssertionError(ex);
            }
            return new NrtAsyncSendRecv(config);
        }, "transfer", "--timeout", "5", file);

        assertThat(run.exitCode()).isEqualTo(1);
        assertThat(run.err()).contains("'" + file + "': it changed from 1000 to 2000 bytes");
        assertThat(run.err()).contains("also: ").contains("gave up");
    }

    @Test
    void aTargetThatCannotBeWrittenToIsNamed() throws IOException {
        final Path file = write("x", 10);

        final CommandRun run = CommandRun.of("transfer", "--timeout", "5", "--out", file, file);

        assertThat(run.exitCode()).isEqualTo(1);
        assertThat(run.err()).contains("cannot write to '" + file + "'");
    }

    @ParameterizedTest
    @ValueSource(strings = {
        "transfer",
        "transfer --in-flight 0 F",
        "transfer --in-flight 129 F",
        "transfer --in-flight x F",
        "transfer --chunk 0 F",
        "transfer --chunk 2G F",
        "transfer --chunk 1T F",
        "transfer --chunk -1 F",
        "transfer --timeout 0 F",
        "transfer --transport pigeon F",
        "transfer --port 0 F",
        "transfer --port 65536 F",
        "transfer --lnc 128 F",
        "transfer --lnc -1 F",
        "transfer --peer-lnc 128 F",
        "transfer --peer 10.0.0.1 F",
        "transfer --peer 10.0.0.1 --peer-lnc 1 --port 4711 F",
        "transfer --listen --peer 10.0.0.1 --peer-lnc 0 --port 4711",
        "transfer --listen --peer 10.0.0.1 --peer-lnc 0 --port 4711 F",
        "transfer --listen",
        "transfer --peer 10.0.0.1 --peer-lnc 1 --out O F",
        "transfer --nonsense F",
        "fly",
        ""})
    void wrongUsageIsRefused(final String line) {
        final CommandRun run = CommandRun.of((Object[]) (line.isEmpty() ? new String[0] : line.split(" ")));

        assertThat(run.exitCode()).isEqualTo(2);
        assertThat(run.err()).contains("--help");
    }

    @Test
    void loopbackBetweenTwoProcessesIsRefusedWithTheReason() {
        assertThat(CommandRun.of("transfer", "--peer", "10.0.0.2", "--peer-lnc", "1", "--port", "4711", "F").err())
            .contains("the transport loopback joins engines of one process only");
    }

    @Test
    void helpAndVersion() {
        assertThat(CommandRun.of("--help").out()).contains("transfer").contains("info").contains("Exit codes");
        assertThat(CommandRun.of("transfer", "--help").exitCode()).isZero();
        assertThat(CommandRun.of("--version").out()).startsWith("nrt4j ");
    }

    @Test
    void namesAreBytesWhateverTheyMean() {
        final byte[] odd = "a/%41 \u00fc\ud83d\ude80".getBytes(StandardCharsets.UTF_8);
        final Path path = FileNames.below(temp, odd);

        assertThat(FileNames.absolute(path)).endsWith(odd);
        assertThat(path.startsWith(temp)).isTrue();
    }
}
