package io.nrt4j.tools;

import io.nrt4j.NrtConfig;
import io.nrt4j.NrtException;
import io.nrt4j.net.NetTransportProvider;
import io.nrt4j.net.NetTransports;
import io.nrt4j.sendrecv.NrtAsyncSendRecv;
import java.io.PrintWriter;
import java.util.Map;
import java.util.concurrent.Callable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Spec;

/** {@code nrt4j info}: what this installation is, what it is configured to, and what it can use here. */
@Command(
    name = "info",
    description = "Prints version, limits, configuration with the source of each value, and the transports.",
    mixinStandardHelpOptions = true,
    versionProvider = Main.Version.class)
final class InfoCommand implements Callable<Integer> {
    @Spec
    private CommandSpec spec;

    @Override
    public Integer call() {
        final PrintWriter out = spec.commandLine().getOut();
        out.println("nrt4j      " + Main.Version.text());
        out.println("JDK        " + System.getProperty("java.runtime.version") + ", " + System.getProperty("java.vm.name"));
        out.println("System     " + System.getProperty("os.name") + " " + System.getProperty("os.version") + ", "
            + System.getProperty("os.arch") + ", " + Runtime.getRuntime().availableProcessors() + " processors");
        out.flush();
        NrtException bad = null;
        NrtConfig config;
        try {
            config = NrtConfig.fromEnvironment();
        } catch (final NrtException ex) {
            // The transports are worth showing all the same.
            bad = ex;
            config = NrtConfig.builder(Map.of(), Map.of()).build();
        }
        printLimits(out, config);
        out.println();
        out.println("Configuration");
        if (bad == null) {
            config.describe().forEach(line -> out.println("  " + line));
        } else {
            out.println("  is refused: " + bad.getMessage());
        }
        out.println();
        out.println("Transports");
        for (final NetTransportProvider provider : NetTransports.all()) {
            printTransport(out, provider, config);
        }
        out.flush();
        if (bad != null) {
            throw bad;
        }
        NetTransports.byName(config.transport()); // refuses a name that none has
        return Main.OK;
    }

    private static void printLimits(final PrintWriter out, final NrtConfig config) {
        final int[] comms = new int[1];
        final int[] pending = new int[1];
        try (NrtAsyncSendRecv engine = new NrtAsyncSendRecv(config, NetTransports.all().get(0))) {
            engine.getMaxNumCommunicatorsPerLnc(comms);
            engine.getMaxNumPendingRequest(pending);
        }
        out.println();
        out.println("Limits");
        out.println("  LNCs of a process                    " + NrtConfig.MAX_LNCS + " (0 to " + (NrtConfig.MAX_LNCS - 1) + ")");
        out.println("  communicators of an LNC              " + comms[0]);
        out.println("  pending requests of a communicator   " + pending[0]);
    }

    private static void printTransport(final PrintWriter out, final NetTransportProvider provider, final NrtConfig config) {
        String cause;
        try {
            cause = provider.unavailabilityCause(config);
            out.printf("  %-10s %s%n", provider.name(), cause == null ? "available" : "not available: " + cause);
            if (cause == null) {
                out.println("             " + provider.describe(config).replace("\n", "\n             "));
            }
        } catch (final RuntimeException | LinkageError ex) {
            out.printf("  %-10s not available: %s%n", provider.name(), ex);
        }
    }
}
