package io.nrt4j;

import static org.assertj.core.api.Assertions.assertThat;

import io.nrt4j.testing.ChildJvm;
import io.nrt4j.testing.FreePorts;
import java.io.IOException;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.tools.JavaCompiler;
import javax.tools.StandardJavaFileManager;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What README.md shows first must work as it stands there. */
class ReadmeQuickStartTest {
    private static final Pattern BLOCK = Pattern.compile("<!-- quick-start[^>]*-->\\s*```java\\n(.*?)```", Pattern.DOTALL);
    private static final String PORT = "45645";

    @TempDir
    private Path temp;

    private static Path project() {
        return Path.of(System.getProperty("nrt4j.test.projectDir", "."));
    }

    @Test
    void theQuickStartCompilesAndRuns() throws IOException, InterruptedException {
        final String readme = Files.readString(project().resolve("README.md"));
        final Matcher block = BLOCK.matcher(readme);
        assertThat(block.find()).as("README.md has a quick-start block").isTrue();
        final String code = block.group(1);
        assertThat(code).as("the port that the test replaces").containsOnlyOnce(PORT);
        final Path source = Files.writeString(temp.resolve("QuickStart.java"), code.replace(PORT, String.valueOf(FreePorts.next())));

        compile(source);

        final Path output = temp.resolve("output");
        final Process process = new ProcessBuilder(
            Path.of(System.getProperty("java.home"), "bin", "java").toString(),
            "-Dnrt4j.kv.lockDirectory=" + temp, "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
            "-cp", temp + java.io.File.pathSeparator + ChildJvm.classPath(), "QuickStart")
            .redirectOutput(output.toFile())
            .redirectError(temp.resolve("errors").toFile())
            .start();
        try {
            assertThat(process.waitFor(120, TimeUnit.SECONDS)).as("it ends; so far it said " + Files.readString(output)).isTrue();
        } finally {
            process.destroyForcibly();
        }
        assertThat(process.exitValue()).as(Files.readString(temp.resolve("errors"))).isZero();
        assertThat(output).hasContent("hello, 1048576 bytes");
        assertThat(readme).as("README.md tells what it prints").contains("It prints `hello, 1048576 bytes`");
    }

    private void compile(final Path source) throws IOException {
        final JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        final StringWriter messages = new StringWriter();
        try (StandardJavaFileManager files = compiler.getStandardFileManager(null, null, StandardCharsets.UTF_8)) {
            final boolean compiled = compiler.getTask(messages, files, null,
                List.of("-d", temp.toString(), "-cp", ChildJvm.classPath(), "-proc:none", "--release", "17"), null,
                files.getJavaFileObjects(source)).call();
            assertThat(compiled).as(messages.toString()).isTrue();
        }
    }

    @Test
    void theTablesKnowEverySetting() throws IOException {
        final String readme = Files.readString(project().resolve("README.md"));
        for (final NrtSetting setting : NrtSetting.values()) {
            assertThat(readme).contains("| `" + setting.variable() + "` | `" + setting.property() + "` |");
        }
    }
}
