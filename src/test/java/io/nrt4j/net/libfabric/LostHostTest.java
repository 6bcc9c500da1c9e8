package io.nrt4j.net.libfabric;

import static org.assertj.core.api.Assertions.assertThat;

import io.nrt4j.testing.Await;
import io.nrt4j.testing.ChildJvm;
import io.nrt4j.testing.TwoHosts;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Hosts that vanish, networks that part and heal. The bound is 3 s here, where it is 15 s otherwise. */
@Tag("slow")
@Timeout(120)
class LostHostTest {
    private static final int MIB = 1 << 20;
    private static final Duration LIMIT = Duration.ofSeconds(30);
    private static final int BOUND_S = 3;
    /** The bound, two looks, and what a loaded machine needs. */
    private static final Duration NOTICED = Duration.ofSeconds(BOUND_S + 2 + 2);

    @BeforeAll
    static void libfabricIsThere() {
        FabricPair.assumeLibfabric();
    }

    private static ChildJvm child(final List<String> host, final String address) {
        final ChildJvm child = ChildJvm.startUnder(host, List.of("-Xmx512m", "-XX:MaxDirectMemorySize=1g",
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Dnrt4j.libfabric.lostHostSeconds=" + BOUND_S,
            "-Dnrt4j.libfabric.address=" + address), FabricChild.class, "tcp;ofi_rxm");
        child.awaitLine("ready", LIMIT);
        return child;
    }

    /** Connects a communicator from the second child to the first. */
    private static void connect(final ChildJvm receiver, final ChildJvm sender) {
        receiver.send("listen");
        sender.send("connect " + receiver.awaitLine("handle ", LIMIT).substring("handle ".length()));
        receiver.awaitLine("accepted", LIMIT);
        sender.awaitLine("connected", LIMIT);
    }

    private static void assertNoticed(final ChildJvm receiver, final long startNs) {
        assertThat(receiver.awaitLine("first failure: ", NOTICED)).contains(TwoHosts.IP_B);
        assertThat(receiver.awaitLine("done ", Duration.ofSeconds(2))).isEqualTo("done 0 failed 4");
        assertThat(Duration.ofNanos(System.nanoTime() - startNs)).isBetween(Duration.ofSeconds(BOUND_S - 2), NOTICED);
    }

    @Test
    void aHostThatVanishesFailsItsReceives() {
        try (TwoHosts hosts = new TwoHosts(); ChildJvm receiver = child(hosts.onA(), TwoHosts.IP_A);
            ChildJvm sender = child(hosts.onB(), TwoHosts.IP_B)) {
            connect(receiver, sender);
            receiver.send("recv 4 " + MIB);
            receiver.awaitLine("posted 4", LIMIT);
            final long startNs = System.nanoTime();
            hosts.loseB();
            assertNoticed(receiver, startNs);
        }
    }

    /** While a frame is not acknowledged, the kernel sends no keep-alives, and tries again for a quarter of an hour. */
    @Test
    void aHostThatVanishesFailsItsReceivesWhileAFrameIsOnItsWay() {
        try (TwoHosts hosts = new TwoHosts(); ChildJvm receiver = child(hosts.onA(), TwoHosts.IP_A);
            ChildJvm sender = child(hosts.onB(), TwoHosts.IP_B)) {
            connect(receiver, sender);
            receiver.send("spare");
            receiver.awaitLine("set aside", LIMIT);
            sender.send("spare");
            sender.awaitLine("set aside", LIMIT);
            connect(receiver, sender);
            receiver.send("recv 4 " + MIB);
            receiver.awaitLine("posted 4", LIMIT);
            final long startNs = System.nanoTime();
            hosts.loseB();
            receiver.send("close");
            receiver.awaitLine("closed", LIMIT);
            assertNoticed(receiver, startNs);
        }
    }

    @Test
    void aPartitionThatHealsTouchesNoMemoryThatWasGivenBack() {
        try (TwoHosts hosts = new TwoHosts(); ChildJvm receiver = child(hosts.onA(), TwoHosts.IP_A);
            ChildJvm sender = child(hosts.onB(), TwoHosts.IP_B)) {
            hosts.slowDown();
            connect(receiver, sender);
            receiver.send("recv 1 " + 64 * MIB);
            receiver.awaitLine("posted 1", LIMIT);
            sender.send("send 1 " + 64 * MIB);
            sender.awaitLine("posted 1", LIMIT);
            receiver.awaitLine("part arrived", LIMIT);
            hosts.part();
            assertThat(receiver.awaitLine("first failure: ", NOTICED)).doesNotContain("may still be touched");
            assertThat(receiver.awaitLine("done ", LIMIT)).isEqualTo("done 0 failed 1");
            receiver.send("refill");
            receiver.awaitLine("refilled", LIMIT);
            hosts.heal();
            assertThat(sender.awaitLine("done ", LIMIT)).isEqualTo("done 0 failed 1");
            // What the sender's kernel still had has arrived, or was refused.
            Await.until(LIMIT, () -> String.join("\n", hosts.connectionsOfB()),
                () -> hosts.connectionsOfB().stream()
                    .noneMatch(line -> Long.parseLong(line.split(" ")[2]) > 0 && !line.startsWith("LISTEN")));
            receiver.send("changed");
            assertThat(receiver.awaitLine("changed ", LIMIT)).isEqualTo("changed false");
        }
    }

    /** Its kernel acknowledges what it can take, and that it can take no more. */
    @Test
    void aStoppedProcessIsNotALostHostHoweverMuchWaitsForIt() {
        try (ChildJvm receiver = child(List.of(), "127.0.0.1"); ChildJvm sender = child(List.of(), "127.0.0.1")) {
            connect(receiver, sender);
            receiver.send("recv 1 " + 2 * MIB);
            receiver.awaitLine("posted 1", LIMIT);
            final long startNs = System.nanoTime();
            sender.freeze();
            receiver.send("flood");
            receiver.awaitLine("flooded", LIMIT);
            Await.until(LIMIT, () -> String.join("\n", receiver.lines()),
                () -> Duration.ofNanos(System.nanoTime() - startNs).compareTo(NOTICED.plusSeconds(BOUND_S)) > 0);
            sender.thaw();
            sender.send("send 1 " + 2 * MIB);
            assertThat(receiver.awaitLine("done ", LIMIT)).isEqualTo("done 1 failed 0");
        }
    }
}
