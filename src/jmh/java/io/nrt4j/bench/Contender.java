package io.nrt4j.bench;

import io.nrt4j.tools.Main;
import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Something that measures all cases, in two processes at a time.
 *
 * @param name        for the table.
 * @param perCase     whether it measures one case a run; else all in one.
 * @param environment variables of its processes, over this one's; a null value removes one.
 * @param commands    makes the command of an end.
 */
record Contender(String name, boolean perCase, Map<String, String> environment, Commands commands) {
    private static final long LIMIT_S = 300;
    private static final Pattern NUMBER = Pattern.compile("[0-9.]+");

    /** Makes commands. */
    @FunctionalInterface
    interface Commands {
        /** The command of an end; {@code one} is null for a contender that measures all in one run. */
        List<String> of(boolean client, int port, Case one);
    }

    static Contender c(final Path binary, final String provider, final String address, final boolean largeBuffers) {
        final Map<String, String> environment = new HashMap<>();
        environment.put("FI_OFI_RXM_BUFFER_SIZE", largeBuffers ? "65536" : null);
        return new Contender(largeBuffers ? "C, 64 KiB rxm buffers" : "C", true, environment, (client, port, one) ->
            List.of(binary.toString(), client ? "client" : "server", provider, address, Integer.toString(port),
                Integer.toString(one.sizeBytes()), Integer.toString(one.count()), Integer.toString(one.warmUp()),
                Integer.toString(one.window())));
    }

    static Contender nrt4j(final String provider, final String address, final Path locks) {
        final Map<String, String> environment = new HashMap<>();
        environment.put("NRT4J_LIBFABRIC_PROVIDER", provider);
        environment.put("NRT4J_LIBFABRIC_ADDRESS", address);
        environment.put("NRT4J_KV_LOCK_DIRECTORY", locks.toString());
        return new Contender("nrt4j", false, environment, (client, port, one) -> {
            final List<String> command = java(Main.class, "perf", "--transport", "libfabric", "--port", Integer.toString(port),
                "--peer", "127.0.0.1", "--lnc", client ? "0" : "1", "--peer-lnc", client ? "1" : "0");
            command.addAll(client ? List.of("--json", "--latency", "8,4K,64K,1M", "--bandwidth", "1M") : List.of("--listen"));
            return command;
        });
    }

    static Contender ucx() {
        return new Contender("jucx over tcp", false, Map.of("UCX_TLS", "tcp,self", "UCX_NET_DEVICES", "lo"), (client, port, one) ->
            java(UcxYardstick.class, client ? "client" : "server", Integer.toString(port)));
    }

    static Contender nio() {
        return new Contender("NIO, blocking", false, Map.of(), (client, port, one) ->
            java(NioYardstick.class, client ? "client" : "server", Integer.toString(port)));
    }

    private static List<String> java(final Class<?> main, final String... arguments) {
        final List<String> command = new ArrayList<>(List.of(Path.of(System.getProperty("java.home"), "bin", "java").toString()));
        if (Runtime.version().feature() >= 24) {
            command.add("--enable-native-access=ALL-UNNAMED");
        }
        command.addAll(List.of("-cp", System.getProperty("java.class.path"), main.getName()));
        command.addAll(List.of(arguments));
        return command;
    }

    /** One round: the figure of each case. */
    Map<Case, Double> measure(final Ports ports) throws IOException, InterruptedException {
        final Map<Case, Double> figures = new HashMap<>();
        if (!perCase) {
            read(run(ports.next(), null), Case.ALL, figures);
        } else {
            for (final Case one : Case.ALL) {
                read(run(ports.next(), one), List.of(one), figures);
            }
        }
        return figures;
    }

    /** Ports that are not used twice in a row. */
    @FunctionalInterface
    interface Ports {
        /** The next one. */
        int next();
    }

    private void read(final String output, final List<Case> cases, final Map<Case, Double> figures) {
        for (final Case one : cases) {
            final int line = output.indexOf(one.key());
            final int at = line < 0 ? -1 : output.indexOf("\"" + one.figure() + "\":", line);
            final Matcher number = NUMBER.matcher(output);
            if (at < 0 || !number.find(at + one.figure().length() + 3)) {
                throw new IllegalStateException(name + " did not measure " + one + " but said: " + output);
            }
            figures.put(one, Double.parseDouble(number.group()));
        }
    }

    /** Runs both ends and answers what the client said. */
    private String run(final int port, final Case one) throws IOException, InterruptedException {
        final File serverOutput = Files.createTempFile("nrt4j-bench", ".server").toFile();
        final File clientOutput = Files.createTempFile("nrt4j-bench", ".client").toFile();
        Process server = null;
        Process client = null;
        try {
            server = start(commands.of(false, port, one), serverOutput);
            client = start(commands.of(true, port, one), clientOutput);
            final boolean ended = client.waitFor(LIMIT_S, TimeUnit.SECONDS) && server.waitFor(10, TimeUnit.SECONDS);
            final String said = Files.readString(clientOutput.toPath(), StandardCharsets.UTF_8);
            if (!ended || client.exitValue() != 0 || server.exitValue() != 0) {
                throw new IllegalStateException(name + (ended ? " failed" : " did not end") + ": " + said + "; its server said: "
                    + Files.readString(serverOutput.toPath(), StandardCharsets.UTF_8));
            }
            return said;
        } finally {
            for (final Process end : new Process[] {client, server}) {
                if (end != null) {
                    end.destroyForcibly();
                }
            }
            Files.deleteIfExists(serverOutput.toPath());
            Files.deleteIfExists(clientOutput.toPath());
        }
    }

    private Process start(final List<String> command, final File output) throws IOException {
        final ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(output);
        environment.forEach((key, value) -> {
            if (value == null) {
                builder.environment().remove(key);
            } else {
                builder.environment().put(key, value);
            }
        });
        return builder.start();
    }
}
