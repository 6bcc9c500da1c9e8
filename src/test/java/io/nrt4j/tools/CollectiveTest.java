package io.nrt4j.tools;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

@Timeout(value = 60, unit = TimeUnit.SECONDS)
class CollectiveTest {
    @TempDir
    private Path folder;

    private String run(final int size, final String... options) throws Exception {
        final byte[] bytes = new byte[size];
        new Random(size).nextBytes(bytes);
        final Path file = Files.write(folder.resolve("data"), bytes);
        final StringWriter out = new StringWriter();
        final String[] args = new String[options.length + 1];
        System.arraycopy(options, 0, args, 0, options.length);
        args[options.length] = file.toString();
        final int code = new CommandLine(new CollectiveCommand()).setOut(new PrintWriter(out)).setErr(new PrintWriter(out)).execute(args);
        assertThat(code).as(out::toString).isZero();
        return out.toString();
    }

    @Test
    void fourRanksInOneProcess() throws Exception {
        final String text = run(1_000_003, "-i", "5", "--slice", "65536");
        System.out.println(text);
        assertThat(text).contains("all-gather: 4 ranks").contains("all-reduce: 4 ranks");
    }
}
