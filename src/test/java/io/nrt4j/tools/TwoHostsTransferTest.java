package io.nrt4j.tools;

import static org.assertj.core.api.Assertions.assertThat;

import io.nrt4j.testing.Await;
import io.nrt4j.testing.ChildJvm;
import io.nrt4j.testing.NeedsLibfabric;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Two network namespaces that a pair of virtual interfaces joins play two hosts: no address of one is an address of the other. */
@Tag("slow")
@Timeout(400)
class TwoHostsTransferTest {
    private static final Duration LIMIT = Duration.ofSeconds(180);
    private static final String IP_A = "10.231.17.1";
    private static final String IP_B = "10.231.17.2";
    private static final String PORT = "21645";

    private final long pid = ProcessHandle.current().pid();
    private final String hostA = "nrt4j-a-" + pid;
    private final String hostB = "nrt4j-b-" + pid;
    private final String linkA = "nrta" + pid;
    private final String linkB = "nrtb" + pid;
    private final List<List<String>> undo = new ArrayList<>();

    @TempDir
    private Path temp;

    @BeforeEach
    void makeTwoHosts() {
        NeedsLibfabric.assume();
        final String refusal = firstRefusal();
        if (refusal != null) {
            System.out.println("SKIP: no two network namespaces (needs root and ip of iproute2): " + refusal);
        }
        Assumptions.assumeTrue(refusal == null, () -> "no network namespaces: " + refusal);
        // The kernel raises the carrier later, and libfabric does not offer an interface before.
        Await.until(LIMIT, () -> said(linkIn(hostA, linkA)) + said(linkIn(hostB, linkB)),
            () -> said(linkIn(hostA, linkA)).contains("state UP") && said(linkIn(hostB, linkB)).contains("state UP"));
    }

    private static List<String> linkIn(final String host, final String link) {
        return List.of("-n", host, "link", "show", "dev", link);
    }

    private String firstRefusal() {
        for (final String command : new String[] {
            "netns add " + hostA, "netns add " + hostB,
            "link add " + linkA + " netns " + hostA + " type veth peer name " + linkB + " netns " + hostB,
            "-n " + hostA + " addr add " + IP_A + "/24 dev " + linkA, "-n " + hostB + " addr add " + IP_B + "/24 dev " + linkB,
            "-n " + hostA + " link set " + linkA + " up", "-n " + hostB + " link set " + linkB + " up",
            "-n " + hostA + " link set lo up", "-n " + hostB + " link set lo up"}) {
            final String refusal = ip(List.of(command.split(" ")));
            if (refusal != null) {
                return "ip " + command + ": " + refusal;
            }
            if (command.startsWith("netns add ")) {
                undo.add(List.of("netns", "del", command.substring("netns add ".length())));
            }
        }
        return null;
    }

    /** Null when it went well. */
    private static String ip(final List<String> arguments) {
        final StringBuilder output = new StringBuilder();
        return run(arguments, output) == 0 ? null : output.toString();
    }

    private static String said(final List<String> arguments) {
        final StringBuilder output = new StringBuilder();
        run(arguments, output);
        return output.toString();
    }

    private static int run(final List<String> arguments, final StringBuilder output) {
        final List<String> command = new ArrayList<>(List.of("ip"));
        command.addAll(arguments);
        try {
            final Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
            output.append(new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8).strip());
            return process.waitFor(10, TimeUnit.SECONDS) ? process.exitValue() : -1;
        } catch (final IOException ex) {
            output.append(ex.getMessage());
        } catch (final InterruptedException ex) {
            Thread.currentThread().interrupt();
            output.append("interrupted");
        }
        return -1;
    }

    @AfterEach
    void removeTwoHosts() {
        undo.forEach(TwoHostsTransferTest::ip); // the interfaces go with them
    }

    private ChildJvm start(final String host, final String address, final String peer, final boolean listen, final List<String> more)
        throws IOException {
        final Path locks = Files.createDirectories(temp.resolve(host)); // two hosts have two
        return ChildJvm.startUnder(List.of("ip", "netns", "exec", host),
            List.of("-Xmx128m", "-Dnrt4j.kv.lockDirectory=" + locks, "-Dnrt4j.libfabric.address=" + address), Main.class,
            TwoEnds.arguments(PORT, peer, "transfer", listen, more));
    }

    @Test
    void aRealFileArrivesAsItWasSent() throws IOException {
        final Path file = Path.of(System.getProperty("java.home"), "lib", "modules");
        final String sum = TwoProcessTransferTest.sha256(file);
        // One names its interface, the other its address; the provider is the one that is chosen by default.
        try (ChildJvm receiver = start(hostB, linkB, IP_A, true, List.of("--out", temp.resolve("out").toString()));
            ChildJvm sender = start(hostA, IP_A, IP_B, false, List.of(file.toString()))) {
            Await.until(LIMIT, () -> sender.lines() + "\n" + receiver.lines(), () -> !sender.isAlive() && !receiver.isAlive());
            assertThat(List.of(sender.exitCode(LIMIT), receiver.exitCode(LIMIT)))
                .as("sender: %s%nreceiver: %s", sender.lines(), receiver.lines()).containsExactly(0, 0);
            for (final ChildJvm end : List.of(sender, receiver)) {
                assertThat(end.lines()).contains("         SHA-256 sent     " + sum, "         SHA-256 received " + sum);
            }
            assertThat(TwoProcessTransferTest.sha256(temp.resolve("out/modules"))).isEqualTo(sum);
        }
    }
}
