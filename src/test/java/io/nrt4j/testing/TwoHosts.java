package io.nrt4j.testing;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Assumptions;

/**
 * Two network namespaces that a pair of virtual interfaces joins: they play two hosts, and no address of one is an address of the other.
 * Needs root and iproute2; a test that asks for them is skipped, visibly, where they cannot be made.
 */
public final class TwoHosts implements AutoCloseable {
    /** Addresses of the two. */
    public static final String IP_A = "10.231.17.1";
    public static final String IP_B = "10.231.17.2";

    private static final Duration LIMIT = Duration.ofSeconds(30);

    private final long pid = ProcessHandle.current().pid();
    private final String hostA = "nrt4j-a-" + pid;
    private final String hostB = "nrt4j-b-" + pid;
    private final String linkA = "nrta" + pid;
    private final String linkB = "nrtb" + pid;
    private final List<List<String>> undo = new ArrayList<>();

    /** Makes them, or skips the test. */
    public TwoHosts() {
        final String refusal = firstRefusal();
        if (refusal != null) {
            close();
            System.out.println("SKIP: no two network namespaces (needs root and ip of iproute2): " + refusal);
        }
        Assumptions.assumeTrue(refusal == null, () -> "no network namespaces: " + refusal);
        // The kernel raises the carrier later, and libfabric does not offer an interface before.
        Await.until(LIMIT, () -> said(shown(hostA, linkA)) + said(shown(hostB, linkB)),
            () -> said(shown(hostA, linkA)).contains("state UP") && said(shown(hostB, linkB)).contains("state UP"));
    }

    private static List<String> shown(final String host, final String link) {
        return List.of("ip", "-n", host, "link", "show", "dev", link);
    }

    private String firstRefusal() {
        for (final String command : new String[] {
            "ip netns add " + hostA, "ip netns add " + hostB,
            "ip link add " + linkA + " netns " + hostA + " type veth peer name " + linkB + " netns " + hostB,
            "ip -n " + hostA + " addr add " + IP_A + "/24 dev " + linkA, "ip -n " + hostB + " addr add " + IP_B + "/24 dev " + linkB,
            "ip -n " + hostA + " link set " + linkA + " up", "ip -n " + hostB + " link set " + linkB + " up",
            "ip -n " + hostA + " link set lo up", "ip -n " + hostB + " link set lo up"}) {
            final String refusal = refusalOf(command);
            if (refusal != null) {
                return command + ": " + refusal;
            }
            if (command.startsWith("ip netns add ")) {
                undo.add(List.of("ip", "netns", "del", command.substring("ip netns add ".length())));
            }
        }
        return null;
    }

    /** Null when it went well. */
    private static String refusalOf(final String command) {
        final StringBuilder output = new StringBuilder();
        return BareHosts.run(List.of(command.split(" ")), output) == 0 ? null : output.toString();
    }

    private static void must(final String command) {
        final String refusal = refusalOf(command);
        if (refusal != null) {
            throw new AssertionError(command + ": " + refusal);
        }
    }

    private static String said(final List<String> command) {
        final StringBuilder output = new StringBuilder();
        BareHosts.run(command, output);
        return output.toString();
    }

    /**
     * What a command must stand behind to run on the first host.
     *
     * @return command and arguments.
     */
    public List<String> onA() {
        return List.of("ip", "netns", "exec", hostA);
    }

    /**
     * The same for the second.
     *
     * @return command and arguments.
     */
    public List<String> onB() {
        return List.of("ip", "netns", "exec", hostB);
    }

    /**
     * Interface of the second host.
     *
     * @return its name.
     */
    public String linkB() {
        return linkB;
    }

    /** Makes what the second host sends slow, so that a transfer is under way for a while; or skips the test. */
    public void slowDown() {
        final String refusal = refusalOf("tc -n " + hostB + " qdisc add dev " + linkB + " root tbf rate 100mbit burst 256k latency 100ms");
        if (refusal != null) {
            System.out.println("SKIP: the link cannot be made slow (needs tc of iproute2, and sch_tbf): " + refusal);
        }
        Assumptions.assumeTrue(refusal == null, () -> "no tbf: " + refusal);
    }

    /** The second host is gone: nothing answers any more, and nobody is told. */
    public void loseB() {
        must("ip -n " + hostB + " addr flush dev " + linkB);
    }

    /** Nothing passes between the two, until {@link #heal}. */
    public void part() {
        must("ip -n " + hostB + " link set " + linkB + " down");
        must("ip -n " + hostA + " link set " + linkA + " down");
    }

    /** Ends {@link #part}. */
    public void heal() {
        must("ip -n " + hostB + " link set " + linkB + " up");
        must("ip -n " + hostA + " link set " + linkA + " up");
    }

    /**
     * TCP connections of the second host, also those that no process has any more.
     *
     * @return a line each: state, bytes that wait to be read, bytes that are not acknowledged, local, remote.
     */
    public List<String> connectionsOfB() {
        final List<String> command = new ArrayList<>(onB());
        command.addAll(List.of("ss", "-Htan"));
        return said(command).lines().map(line -> line.strip().replaceAll(" +", " ")).toList();
    }

    @Override
    public void close() {
        undo.forEach(command -> BareHosts.run(command, new StringBuilder())); // the interfaces go with them
    }
}
