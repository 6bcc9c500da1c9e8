package io.nrt4j.tools;

import io.nrt4j.testing.ChildJvm;
import io.nrt4j.testing.FreePorts;
import io.nrt4j.testing.NeedsLibfabric;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * A command in two processes of one host over libfabric: they share a key-value server.
 *
 * @param listener the listening end, LNC 1.
 * @param caller   the other one, LNC 0.
 */
record TwoEnds(ChildJvm listener, ChildJvm caller) implements AutoCloseable {
    /** Starts both ends; the listening one first, though either may be late. */
    static TwoEnds start(
        final String provider, final Path lockFolder, final String command, final List<String> listening, final List<String> calling) {
        final String port = Integer.toString(FreePorts.next());
        final List<String> options = List.of("-Xmx128m", "-Dnrt4j.kv.lockDirectory=" + lockFolder,
            "-Dnrt4j.libfabric.provider=" + provider, "-Dnrt4j.libfabric.address=" + NeedsLibfabric.addressOf(provider));
        final ChildJvm listener = ChildJvm.start(options, Main.class, arguments(port, "127.0.0.1", command, true, listening));
        return new TwoEnds(listener, ChildJvm.start(options, Main.class, arguments(port, "127.0.0.1", command, false, calling)));
    }

    static String[] arguments(
        final String port, final String peer, final String command, final boolean listen, final List<String> more) {
        final List<String> arguments = new ArrayList<>(List.of(command, "--transport", "libfabric", "--port", port, "--peer", peer,
            "--timeout", "40", "--peer-lnc", listen ? "0" : "1", "--lnc", listen ? "1" : "0"));
        if (listen) {
            arguments.add("--listen");
        }
        arguments.addAll(more);
        return arguments.toArray(String[]::new);
    }

    @Override
    public void close() {
        listener.close();
        caller.close();
    }
}
