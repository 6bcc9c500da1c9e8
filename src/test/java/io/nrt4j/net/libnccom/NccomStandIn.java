package io.nrt4j.net.libnccom;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.jna.Function;
import com.sun.jna.NativeLibrary;
import com.sun.jna.Pointer;
import io.nrt4j.NrtConfig;
import io.nrt4j.NrtSetting;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;

/**
 * The stand-in library of {@code src/test/native/nccom}, built by gcc into a temporary folder, once for the JVM, and told by
 * environment variables of C to misbehave. Public for the tests of other packages.
 *
 * <p>Its settings are the process's: tests that use them clear them with {@link #reset()}.
 */
public final class NccomStandIn {
    /** What {@link #live} counts. */
    public enum Live { COMMS, LISTENERS, MRS, GLOBALS, NETS }

    private static final Path SOURCES = Path.of(System.getProperty("nrt4j.test.projectDir", "."), "src", "test", "native", "nccom");
    private static final List<String> FILES = List.of("nccom_standin.c", "nccom_standin_net.c", "nccom_standin_proxy.c");
    private static final String PREFIX = "NCCOM_STANDIN_";
    private static final List<String> VARIABLES = List.of("COMPAT", "FAIL", "NULL_COMMS", "NULL_REQUESTS", "SLOW_TEST", "ROOM",
        "NO_DEVICE_MEMORY", "SOCKETS", "CONNECT_WAITS", "INIT_WAITS", "HOLD_REG", "RECORD", "STEAL_SIGNALS");
    private static Path folder;
    private static Path library;

    private NccomStandIn() {
    }

    /** Skips the test, visibly, where there is no C compiler. */
    public static void assumeGcc() {
        boolean there;
        try {
            there = new ProcessBuilder("gcc", "--version").redirectErrorStream(true)
                .redirectOutput(ProcessBuilder.Redirect.DISCARD).start().waitFor() == 0;
        } catch (final IOException ex) {
            there = false;
        } catch (final InterruptedException ex) {
            Thread.currentThread().interrupt();
            there = false;
        }
        if (!there) {
            System.out.println("SKIPPED, no C compiler: apt-get install gcc");
        }
        Assumptions.assumeTrue(there, "no gcc");
    }

    /** The library, built at the first call. */
    public static synchronized Path library() {
        if (library == null) {
            library = build("libnccom.so");
        }
        return library;
    }

    /** Builds another one, which is another library to the loader. */
    public static synchronized Path build(final String name, final String... options) {
        final Path file = folder().resolve(name);
        final List<String> command = new ArrayList<>(List.of("gcc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-fPIC",
            "-fvisibility=hidden", "-shared", "-o", file.toString()));
        FILES.forEach(source -> command.add(SOURCES.resolve(source).toString()));
        command.addAll(List.of(options));
        command.add("-lpthread");
        run(command);
        return file;
    }

    /** Builds a program from one source file. */
    public static synchronized Path program(final String source) {
        final Path file = folder().resolve(source.replace(".c", ""));
        run(List.of("gcc", "-std=gnu11", "-O2", "-Wall", "-Werror", "-o", file.toString(), SOURCES.resolve(source).toString(), "-ldl"));
        return file;
    }

    /** A file of its own in the folder. */
    public static synchronized Path file(final String name) {
        return folder().resolve(name);
    }

    private static Path folder() {
        if (folder == null) {
            try {
                folder = Files.createTempDirectory("nrt4j-nccom");
            } catch (final IOException ex) {
                throw new UncheckedIOException(ex);
            }
            Runtime.getRuntime().addShutdownHook(new Thread(() -> {
                try (Stream<Path> files = Files.walk(folder)) {
                    files.sorted(Comparator.reverseOrder()).forEach(file -> file.toFile().delete());
                } catch (final IOException ex) {
                    throw new UncheckedIOException(ex);
                }
            }));
        }
        return folder;
    }

    /** Runs a command that must succeed, and answers its output. */
    public static List<String> run(final List<String> command) {
        try {
            final Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
            final String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
            assertThat(process.waitFor(60, TimeUnit.SECONDS)).isTrue();
            assertThat(process.exitValue()).as(output).isZero();
            return output.lines().toList();
        } catch (final IOException ex) {
            throw new UncheckedIOException(ex);
        } catch (final InterruptedException ex) {
            Thread.currentThread().interrupt();
            throw new AssertionError(ex);
        }
    }

    // ---- configuration

    /** A configuration of the stand-in that looks at nothing else. */
    public static NrtConfig.Builder config() {
        return config(library());
    }

    /** A configuration of a library file. */
    public static NrtConfig.Builder config(final Path file) {
        return NrtConfig.builder(Map.of(), Map.of()).transport("libnccom")
            .set(NrtSetting.LIBNCCOM_PATH, file.toString())
            .set(NrtSetting.LIBNCCOM_NET_PATH, "/nowhere/libnccom-net.so");
    }

    // ---- misbehaviour and observation

    /** Sets NCCOM_STANDIN_name in the C environment; it counts from the next start of the network or {@link #configure()} on. */
    public static void set(final String name, final Object value) {
        assertThat(VARIABLES).contains(name);
        NativeLibrary.getProcess().getFunction("setenv").invokeInt(new Object[] {PREFIX + name, value.toString(), 1});
    }

    /** Takes all misbehaviour back and forgets the calls. */
    public static void reset() {
        VARIABLES.forEach(name ->
            NativeLibrary.getProcess().getFunction("unsetenv").invokeInt(new Object[] {PREFIX + name}));
        configure();
        function("standin_reset_calls").invokeVoid(new Object[0]);
    }

    /** Makes the library read its environment now. */
    public static void configure() {
        function("standin_configure").invokeVoid(new Object[0]);
    }

    /** Calls that were wrong, since it was loaded. */
    public static long violations() {
        return function("standin_violations").invokeLong(new Object[0]);
    }

    /** Objects that are open. */
    public static long live(final Live what) {
        return function("standin_live").invokeLong(new Object[] {what.ordinal()});
    }

    /** Calls of a function since the last reset. */
    public static long calls(final NccomSymbol symbol) {
        return function("standin_calls").invokeLong(new Object[] {symbol.symbol()});
    }

    /** The last call, when it records. */
    public static String lastCall() {
        return ((Pointer) function("standin_last_call").invoke(Pointer.class, new Object[0])).getString(0);
    }

    /** Asserts that nothing is open. */
    public static void assertNothingOpen() {
        for (final Live what : Live.values()) {
            assertThat(live(what)).as("open %s", what).isZero();
        }
    }

    private static Function function(final String name) {
        return NativeLibrary.getInstance(library().toString()).getFunction(name);
    }
}
