package io.nrt4j.kv;

import static org.assertj.core.api.Assertions.assertThat;

import io.nrt4j.NrtConfig;
import io.nrt4j.testing.BareHosts;
import io.nrt4j.testing.ChildJvm;
import io.nrt4j.testing.FreePorts;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Hosts that cannot be reached yet, and the two families of addresses. */
@Timeout(120)
class KvHostsTest {
    private static final Duration LIMIT = Duration.ofSeconds(30);
    private static final String IP_A = "10.231.18.1";
    private static final String IP_B = "10.231.18.2";
    private static final String IPV6_B = "fd00:231:18::2";
    private static final String PORT = "21646";
    private static final String GOT = "got hello";

    @TempDir
    private Path folder;

    private ChildJvm serve(final List<String> prefix, final String port, final String... options) {
        final ChildJvm server = ChildJvm.startUnder(prefix, List.of(options), KvHost.class, "serve", port, folder.toString());
        server.awaitLine("serves at ", LIMIT);
        return server;
    }

    private static ChildJvm get(final List<String> prefix, final String ip) {
        return ChildJvm.startUnder(prefix, List.of(), KvHost.class, "get", ip, PORT);
    }

    /** First the client has no network at all, then there is nobody with the server's address, then there is. */
    @Test
    @Tag("slow")
    void aHostThatCannotBeReachedYetIsTriedUntilItCan() {
        try (BareHosts hosts = BareHosts.assume(); ChildJvm client = get(hosts.on(0), IP_B)) {
            client.awaitLine("no network", line -> line.matches("waits: .*[Nn]etwork is unreachable.*"), LIMIT);
            hosts.run(0, "ip addr add " + IP_A + "/24 dev " + hosts.link(0));
            hosts.run(0, "ip link set " + hosts.link(0) + " up");
            hosts.run(1, "ip link set " + hosts.link(1) + " up");
            client.awaitLine("no such host", line -> line.matches("waits: .*([Nn]o route to host|[Hh]ost is unreachable).*"), LIMIT);
            assertThat(client.isAlive()).isTrue();
            hosts.run(1, "ip addr add " + IP_B + "/24 dev " + hosts.link(1));
            client.awaitLine("nobody listening yet", line -> line.matches("waits: .*[Rr]efused.*"), LIMIT);
            try (ChildJvm server = serve(hosts.on(1), PORT)) {
                client.awaitLine(GOT, LIMIT);
                assertThat(server.isAlive()).isTrue();
                assertThat(client.lines()).noneMatch(line -> line.startsWith("failed"));
            }
        }
    }

    @Test
    @Tag("slow")
    void byDefaultHostsAreReachedByBothFamilies() {
        try (BareHosts hosts = BareHosts.assume()) {
            for (int host = 0; host < 2; host++) {
                hosts.run(host, "ip addr add " + (host == 0 ? IP_A : IP_B) + "/24 dev " + hosts.link(host));
                hosts.run(host, "ip link set " + hosts.link(host) + " up");
            }
            hosts.run(0, "ip addr add fd00:231:18::1/64 dev " + hosts.link(0) + " nodad");
            hosts.run(1, "ip addr add " + IPV6_B + "/64 dev " + hosts.link(1) + " nodad");
            try (ChildJvm server = serve(hosts.on(1), PORT);
                ChildJvm overIpv4 = get(hosts.on(0), IP_B); ChildJvm overIpv6 = get(hosts.on(0), IPV6_B)) {
                overIpv4.awaitLine(GOT, LIMIT);
                overIpv6.awaitLine(GOT, LIMIT);
                assertThat(server.isAlive()).isTrue();
            }
        }
    }

    /** As with {@code sysctl net.ipv6.conf.all.disable_ipv6=1}: there are such sockets, but no such address, not even {@code ::1}. */
    @Test
    @Tag("slow")
    void whereIpv6IsSwitchedOffTheDefaultStillServes() {
        try (BareHosts hosts = BareHosts.assume()) {
            hosts.run(0, "sysctl -q -w net.ipv6.conf.all.disable_ipv6=1");
            try (ChildJvm server = serve(hosts.on(0), PORT); ChildJvm client = get(hosts.on(0), "127.0.0.1")) {
                client.awaitLine(GOT, LIMIT);
                assertThat(server.isAlive()).isTrue();
            }
        }
    }

    @Test
    void byDefaultBothLoopbackAddressesAnswer() throws IOException {
        assumeIpv6();
        final int port = FreePorts.next();
        try (KvLeader leader = KvLeader.start(NrtConfig.builder(Map.of(), Map.of()).bootstrapPort(port).kvLockDirectory(folder).build())) {
            assertThat(leader.isLeader()).isTrue();
            for (final String ip : List.of("::1", "127.0.0.1")) {
                assertThat(KvTesting.set(new InetSocketAddress(InetAddress.getByName(ip), port), "k", "v", KvOptions.DEFAULT)).isNotZero();
            }
        }
    }

    private static void assumeIpv6() {
        String refusal = null;
        try (ServerSocket probe = new ServerSocket(0, 1, InetAddress.getByName("::1"))) {
            assertThat(probe.isBound()).isTrue();
        } catch (final IOException ex) {
            refusal = ex.getMessage();
            System.out.println("SKIP: no IPv6 loopback address: " + refusal);
        }
        final String why = refusal;
        Assumptions.assumeTrue(refusal == null, () -> "no IPv6: " + why);
    }

    /** As where the system is built or started without it: there are no such sockets. */
    @Test
    void whereThereIsNoIpv6TheDefaultServesIpv4() {
        final int port = FreePorts.next();
        try (ChildJvm server = serve(List.of(), Integer.toString(port), "-Djava.net.preferIPv4Stack=true")) {
            assertThat(server.lines()).anyMatch(line -> line.contains("0.0.0.0"));
            assertThat(KvTesting.get(KvTesting.loopback(port), "key", false, KvOptions.DEFAULT)).isEqualTo("hello");
        }
    }
}
