package io.nrt4j.testing;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;
import java.util.stream.Stream;

/**
 * A small JVM of its own with the test class path, for tests about processes: started, talked to by lines, stopped by signals.
 * Always destroyed by {@link #close()}. Its standard output and error both arrive as lines.
 *
 * <p>Threads: {@code lines} and {@code ended} are written by the reading thread and read by the test's, both under the monitor of
 * {@code lines}.
 */
public final class ChildJvm implements AutoCloseable {
    private static final int FIRST_JAVA_WITH_NATIVE_ACCESS_WARNING = 24;

    private final String name;
    private final Process process;
    private final Writer input;
    private final List<String> lines = new ArrayList<>();
    private final Thread reader;
    private boolean ended;
    /** First line that {@link #awaitLine} has not looked at; the test's thread only. */
    private int cursor;

    private ChildJvm(final String name, final Process process) {
        this.name = name;
        this.process = process;
        input = process.outputWriter(StandardCharsets.UTF_8);
        reader = new Thread(this::read, "child-" + process.pid());
        reader.setDaemon(true);
        reader.start();
    }

    /**
     * Starts a main class.
     *
     * @param mainClass what to run.
     * @param arguments its arguments.
     * @return the running child.
     */
    public static ChildJvm start(final Class<?> mainClass, final String... arguments) {
        return start(List.of(), mainClass, arguments);
    }

    /**
     * Starts a main class with JVM options, which win over this class's own.
     *
     * @param jvmOptions such as {@code -Xmx128m} or {@code -Dname=value}.
     * @param mainClass  what to run.
     * @param arguments  its arguments.
     * @return the running child.
     */
    public static ChildJvm start(final List<String> jvmOptions, final Class<?> mainClass, final String... arguments) {
        return startUnder(List.of(), jvmOptions, mainClass, arguments);
    }

    /**
     * Starts a main class under another command, which must replace itself by the JVM, such as {@code ip netns exec}.
     *
     * @param prefix     the other command and its arguments.
     * @param jvmOptions as above.
     * @param mainClass  what to run.
     * @param arguments  its arguments.
     * @return the running child.
     */
    public static ChildJvm startUnder(
        final List<String> prefix, final List<String> jvmOptions, final Class<?> mainClass, final String... arguments) {
        final List<String> command = new ArrayList<>(prefix);
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(List.of("-Xmx64m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto"));
        if (Runtime.version().feature() >= FIRST_JAVA_WITH_NATIVE_ACCESS_WARNING
            && jvmOptions.stream().noneMatch(option -> option.startsWith("--illegal-native-access"))) {
            command.add("--enable-native-access=ALL-UNNAMED");
        }
        command.addAll(jvmOptions);
        command.addAll(List.of("-cp", classPath(), mainClass.getName()));
        command.addAll(List.of(arguments));
        try {
            final ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
            return new ChildJvm(mainClass.getSimpleName(), builder.start());
        } catch (final IOException ex) {
            throw new UncheckedIOException(ex);
        }
    }

    /**
     * The class path that tests run with.
     *
     * @return also under Surefire, which hides it behind a jar with a manifest.
     */
    public static String classPath() {
        final String surefire = System.getProperty("surefire.test.class.path");
        return surefire != null ? surefire : System.getProperty("java.class.path");
    }

    private void read() {
        try (BufferedReader output = process.inputReader(StandardCharsets.UTF_8)) {
            for (String line = output.readLine(); line != null; line = output.readLine()) {
                synchronized (lines) {
                    lines.add(line);
                    lines.notifyAll();
                }
            }
        } catch (final IOException ex) {
            synchronized (lines) {
                lines.add("(output broke off: " + ex.getMessage() + ")");
            }
        } finally {
            synchronized (lines) {
                ended = true;
                lines.notifyAll();
            }
        }
    }

    /**
     * Process id.
     *
     * @return as the operating system counts.
     */
    public long pid() {
        return process.pid();
    }

    /**
     * Whether the process runs.
     *
     * @return false once it has ended.
     */
    public boolean isAlive() {
        return process.isAlive();
    }

    /**
     * Writes one line to the child's standard input.
     *
     * @param line without its end.
     */
    public void send(final String line) {
        try {
            input.write(line + "\n");
            input.flush();
        } catch (final IOException ex) {
            throw new UncheckedIOException(describe(), ex);
        }
    }

    /**
     * Waits for the next line that starts with a prefix; lines before it are passed over.
     *
     * @param prefix how the line starts.
     * @param limit  longest wait.
     * @return the line.
     */
    public String awaitLine(final String prefix, final Duration limit) {
        return awaitLine("a line that starts with '" + prefix + "'", line -> line.startsWith(prefix), limit);
    }

    /**
     * Waits for the next line of a kind; lines before it are passed over.
     *
     * @param what   said on failure.
     * @param wanted which line.
     * @param limit  longest wait.
     * @return the line.
     */
    public String awaitLine(final String what, final Predicate<String> wanted, final Duration limit) {
        final long deadlineNs = System.nanoTime() + limit.toNanos();
        synchronized (lines) {
            while (true) {
                while (cursor < lines.size()) {
                    final String line = lines.get(cursor++);
                    if (wanted.test(line)) {
                        return line;
                    }
                }
                final long leftMs = TimeUnit.NANOSECONDS.toMillis(deadlineNs - System.nanoTime());
                if (ended || leftMs <= 0) {
                    throw new AssertionError((ended ? "the child ended without " : "not within " + limit.toMillis() + " ms: ") + what
                        + "; " + describe());
                }
                waitForLines(leftMs);
            }
        }
    }

    private void waitForLines(final long millis) {
        try {
            lines.wait(millis);
        } catch (final InterruptedException ex) {
            Thread.currentThread().interrupt();
            throw new AssertionError("interrupted; " + describe(), ex);
        }
    }

    /**
     * All lines so far.
     *
     * @return a copy.
     */
    public List<String> lines() {
        synchronized (lines) {
            return List.copyOf(lines);
        }
    }

    /** Sends SIGKILL. The process may still be seen for a moment; {@link #exitCode} waits for its end. */
    public void kill() {
        process.destroyForcibly();
    }

    /** Sends SIGTERM. */
    public void terminate() {
        process.destroy();
    }

    /** Sends SIGSTOP: when this returns, each of the process's threads stands still; its sockets stay open. */
    public void freeze() {
        signal("STOP");
        // A thread that waits for a processor may take its turn before the signal is seen.
        Await.until(Duration.ofSeconds(60), () -> "not all threads stand still; " + describe(), this::standsStill);
    }

    private boolean standsStill() throws IOException {
        try (Stream<Path> tasks = Files.list(Path.of("/proc/" + pid() + "/task"))) {
            return tasks.allMatch(ChildJvm::isStopped);
        }
    }

    private static boolean isStopped(final Path task) {
        try {
            final String stat = Files.readString(task.resolve("stat"), StandardCharsets.ISO_8859_1);
            return stat.charAt(stat.lastIndexOf(')') + 2) == 'T';
        } catch (final IOException ex) {
            return !Files.exists(task); // ended meanwhile
        }
    }

    /** Sends SIGCONT. */
    public void thaw() {
        signal("CONT");
    }

    private void signal(final String signal) {
        try {
            final Process kill = new ProcessBuilder("kill", "-" + signal, Long.toString(pid())).redirectErrorStream(true).start();
            if (!kill.waitFor(10, TimeUnit.SECONDS) || kill.exitValue() != 0) {
                throw new IllegalStateException("kill -" + signal + " failed; " + describe());
            }
        } catch (final IOException ex) {
            throw new UncheckedIOException(ex);
        } catch (final InterruptedException ex) {
            Thread.currentThread().interrupt();
            throw new IllegalStateException(ex);
        }
    }

    /**
     * Waits for the child's end, and for the end of its output: {@link #lines()} has all of it afterwards.
     *
     * @param limit longest wait for each.
     * @return its exit code; 137 after SIGKILL, 143 after SIGTERM.
     */
    public int exitCode(final Duration limit) {
        try {
            if (!process.waitFor(limit.toMillis(), TimeUnit.MILLISECONDS)) {
                throw new AssertionError("still running after " + limit.toMillis() + " ms; " + describe());
            }
            reader.join(limit.toMillis());
            return process.exitValue();
        } catch (final InterruptedException ex) {
            Thread.currentThread().interrupt();
            throw new AssertionError("interrupted; " + describe(), ex);
        }
    }

    private String describe() {
        return "child " + name + " (pid " + pid() + (isAlive() ? ", running" : ", ended with " + process.exitValue()) + ") said "
            + lines();
    }

    @Override
    public void close() {
        process.destroyForcibly();
        try {
            process.waitFor(10, TimeUnit.SECONDS);
            reader.join(TimeUnit.SECONDS.toMillis(10));
        } catch (final InterruptedException ex) {
            Thread.currentThread().interrupt();
        }
    }
}
