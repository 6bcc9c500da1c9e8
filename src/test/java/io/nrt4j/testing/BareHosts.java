package io.nrt4j.testing;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Assumptions;

/**
 * Two network namespaces that a pair of virtual interfaces joins play two hosts. Nothing has an address yet, and everything but the
 * loopback interfaces is down. Removed by {@link #close()}.
 */
public final class BareHosts implements AutoCloseable {
    private final List<List<String>> undo = new ArrayList<>();
    private final String suffix = Long.toString(ProcessHandle.current().pid(), Character.MAX_RADIX);

    private BareHosts() {
    }

    /**
     * Makes the two, or skips the calling test, visibly, where that is not possible: it needs root, and {@code ip} of iproute2.
     *
     * @return to be closed.
     */
    public static BareHosts assume() {
        final BareHosts hosts = new BareHosts();
        final String refusal = hosts.firstRefusal();
        if (refusal != null) {
            hosts.close();
            System.out.println("SKIP: no two network namespaces (needs root and ip of iproute2): " + refusal);
        }
        Assumptions.assumeTrue(refusal == null, () -> "no network namespaces: " + refusal);
        return hosts;
    }

    private String firstRefusal() {
        for (final String command : new String[] {"netns add " + host(0), "netns add " + host(1),
            "link add " + link(0) + " netns " + host(0) + " type veth peer name " + link(1) + " netns " + host(1),
            "-n " + host(0) + " link set lo up", "-n " + host(1) + " link set lo up"}) {
            final StringBuilder output = new StringBuilder();
            if (run(List.of(("ip " + command).split(" ")), output) != 0) {
                return "ip " + command + ": " + output;
            }
            if (command.startsWith("netns add ")) {
                undo.add(List.of("ip", "netns", "del", command.substring("netns add ".length())));
            }
        }
        return null;
    }

    private String host(final int which) {
        return "nrt4j-" + (which == 0 ? "c" : "d") + "-" + suffix;
    }

    /**
     * Name of a host's interface.
     *
     * @param which 0 or 1.
     * @return at most 15 letters.
     */
    public String link(final int which) {
        return "nrt" + (which == 0 ? "c" : "d") + suffix;
    }

    /**
     * What a command must be started under to run on a host.
     *
     * @param which 0 or 1.
     * @return a command that replaces itself by what follows.
     */
    public List<String> on(final int which) {
        return List.of("ip", "netns", "exec", host(which));
    }

    /**
     * Runs a command on a host, which must succeed.
     *
     * @param which   0 or 1.
     * @param command words joined by blanks.
     */
    public void run(final int which, final String command) {
        final List<String> whole = new ArrayList<>(on(which));
        whole.addAll(List.of(command.split(" ")));
        final StringBuilder output = new StringBuilder();
        if (run(whole, output) != 0) {
            throw new AssertionError(whole + ": " + output);
        }
    }

    /** Answers the exit code, or -1, and appends what was printed. */
    static int run(final List<String> command, final StringBuilder output) {
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

    @Override
    public void close() {
        undo.forEach(command -> run(command, new StringBuilder())); // the interfaces go with them
    }
}
