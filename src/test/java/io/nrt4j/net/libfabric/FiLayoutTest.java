package io.nrt4j.net.libfabric;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.reflect.Field;
import java.lang.reflect.Modifier;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The offsets and constants of {@link FiLayout} against the installed headers. */
class FiLayoutTest {
    /** Ours alone: not in the headers. */
    private static final List<String> OWN = List.of("API_VERSION", "CQ_ERR_ROOM");

    @Test
    void offsetsAreThoseOfTheHeaders(@TempDir final Path folder) throws Exception {
        if (!Files.exists(Path.of("/usr/include/rdma/fabric.h"))) {
            System.out.println("SKIPPED, no libfabric headers: apt-get install libfabric-dev gcc");
        }
        Assumptions.assumeTrue(Files.exists(Path.of("/usr/include/rdma/fabric.h")), "no libfabric headers");
        final Path source = Path.of(System.getProperty("nrt4j.test.projectDir", "."), "src", "test", "native", "fi_layout.c");
        final Path program = folder.resolve("fi_layout");
        run("gcc", "-Wall", "-Werror", "-o", program.toString(), source.toString());
        final Map<String, Long> native0 = new TreeMap<>();
        for (final String line : run(program.toString())) {
            final String[] sides = line.split("=");
            final Long before = native0.put(sides[0], Long.valueOf(sides[1]));
            assertThat(before == null || before.equals(native0.get(sides[0]))).as(line).isTrue();
        }
        final Map<String, Long> java = new TreeMap<>();
        for (final Field field : FiLayout.class.getDeclaredFields()) {
            if (Modifier.isStatic(field.getModifiers()) && !field.isSynthetic() && !OWN.contains(field.getName())) {
                java.put(field.getName(), ((Number) field.get(null)).longValue());
            }
        }
        assertThat(java).hasSizeGreaterThan(80).isEqualTo(native0);
    }

    private static List<String> run(final String... command) throws Exception {
        final Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        final String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertThat(process.waitFor(60, TimeUnit.SECONDS)).isTrue();
        assertThat(process.exitValue()).as(output).isZero();
        return new ArrayList<>(output.lines().toList());
    }
}
