package io.nrt4j.tools;

import static org.assertj.core.api.Assertions.assertThat;

import io.nrt4j.testing.Await;
import io.nrt4j.testing.ChildJvm;
import io.nrt4j.testing.NeedsLibfabric;
import io.nrt4j.testing.TwoHosts;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
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
    private static final String PORT = "21645";

    private TwoHosts hosts;

    @TempDir
    private Path temp;

    @BeforeEach
    void makeTwoHosts() {
        NeedsLibfabric.assume();
        hosts = new TwoHosts();
    }

    @AfterEach
    void removeTwoHosts() {
        if (hosts != null) {
            hosts.close();
        }
    }

    private ChildJvm start(final List<String> host, final String address, final String peer, final boolean listen, final List<String> more)
        throws IOException {
        final Path locks = Files.createDirectories(temp.resolve(peer)); // two hosts have two
        return ChildJvm.startUnder(host,
            List.of("-Xmx128m", "-Dnrt4j.kv.lockDirectory=" + locks, "-Dnrt4j.libfabric.address=" + address), Main.class,
            TwoEnds.arguments(PORT, peer, "transfer", listen, more));
    }

    @Test
    void aRealFileArrivesAsItWasSent() throws IOException {
        final Path file = Path.of(System.getProperty("java.home"), "lib", "modules");
        final String sum = TwoProcessTransferTest.sha256(file);
        // One names its interface, the other its address; the provider is the one that is chosen by default.
        try (ChildJvm receiver = start(hosts.onB(), hosts.linkB(), TwoHosts.IP_A, true, List.of("--out", temp.resolve("out").toString()));
            ChildJvm sender = start(hosts.onA(), TwoHosts.IP_A, TwoHosts.IP_B, false, List.of(file.toString()))) {
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
