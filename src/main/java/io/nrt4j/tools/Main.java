package io.nrt4j.tools;

import java.io.PrintWriter;
import java.util.concurrent.Callable;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.IVersionProvider;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.ScopeType;
import picocli.CommandLine.Spec;

/** The command line: {@code java -jar nrt4j-<version>-tools.jar COMMAND}. */
@Command(
    name = "nrt4j",
    description = "Point-to-point tensor transfer between accelerator cores and hosts.",
    mixinStandardHelpOptions = true,
    versionProvider = Main.Version.class,
    exitCodeListHeading = "%nExit codes:%n",
    exitCodeList = {"0:all is well", "1:it failed, or what arrived is not what was sent", "2:wrong usage"})
public final class Main implements Callable<Integer> {
    /** All is well. */
    static final int OK = 0;
    /** The command failed. */
    static final int FAILED = 1;
    /** The command was called in a wrong way. */
    static final int USAGE = 2;

    private static final String LOG_LEVEL = "org.slf4j.simpleLogger.defaultLogLevel";

    @Spec
    private CommandSpec spec;

    /** Parsed before by {@link #setLogLevel}; here for the help, and for stack traces. */
    @Option(
        names = {"-v", "--verbose"},
        scope = ScopeType.INHERIT,
        description = "Log what the engine does to standard error; -vv logs every state change.")
    private boolean[] verbose = {};

    private Main() {
    }

    /** Version as the jar's manifest has it. */
    static final class Version implements IVersionProvider {
        @Override
        public String[] getVersion() {
            return new String[] {"nrt4j " + text()};
        }

        static String text() {
            final String version = Main.class.getPackage().getImplementationVersion();
            return version == null ? "(not from a jar)" : version;
        }
    }

    /**
     * Runs a command and ends the process with its exit code.
     *
     * @param args command and options.
     */
    public static void main(final String[] args) {
        setLogLevel(args);
        System.exit(commandLine(EngineFactory.DEFAULT).execute(args));
    }

    /** The logging library reads its level once, when the first logger is made: that is before the options are parsed. */
    private static void setLogLevel(final String[] args) {
        int level = 0;
        for (final String arg : args) {
            if (arg.equals("--verbose")) {
                level++;
            } else if (arg.matches("-v+")) {
                level += arg.length() - 1;
            }
        }
        if (System.getProperty(LOG_LEVEL) == null) {
            System.setProperty(LOG_LEVEL, level == 0 ? "warn" : level == 1 ? "info" : "debug");
        }
    }

    /** The commands; a test hands in engines over transports of its own. */
    static CommandLine commandLine(final EngineFactory engines) {
        final Main main = new Main();
        final CommandLine commands = new CommandLine(main)
            .addSubcommand(new TransferCommand(engines))
            .addSubcommand(new CollectiveCommand())
            .addSubcommand(new PerfCommand(engines))
            .addSubcommand(new InfoCommand());
        return commands
            .setCaseInsensitiveEnumValuesAllowed(true)
            .setParameterExceptionHandler((ex, parsed) -> {
                final CommandLine command = ex.getCommandLine();
                final PrintWriter err = command.getErr();
                err.println("nrt4j: " + ex.getMessage());
                CommandLine.UnmatchedArgumentException.printSuggestions(ex, err);
                err.println("see '" + command.getCommandSpec().qualifiedName() + " --help'");
                err.flush();
                return USAGE;
            })
            .setExecutionExceptionHandler((ex, commandLine, parsed) -> {
                final PrintWriter err = commandLine.getErr();
                err.println("nrt4j: " + (ex.getMessage() == null ? ex : ex.getMessage()));
                for (final Throwable other : ex.getSuppressed()) {
                    err.println("  also: " + (other.getMessage() == null ? other : other.getMessage()));
                }
                if (main.verbose.length > 0) {
                    ex.printStackTrace(err);
                }
                err.flush();
                return FAILED;
            });
    }

    @Override
    public Integer call() {
        spec.commandLine().usage(spec.commandLine().getErr());
        return USAGE;
    }
}
