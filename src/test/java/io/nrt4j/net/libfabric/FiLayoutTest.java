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

/** The offsets and constants of {@link FiLayout} and {@link TcpSocket} against the installed headers. */
class FiLayoutTest {
    /** Ours alone: not in the headers. */
    private static final List<String> OWN = List.of("API_VERSION", "CQ_ERR_ROOM", "ADDRESS_ROOM", "INFO_ROOM");

    @Test
    void offsetsAreThoseOfTheHeaders(@TempDir final Path folder) throws Exception {
        if (!Files.exists(Path.of("/usr/include/rdma/fabric.h"))) {
            System.out.println("SKIPPED, no libfabric headers: apt-get install libfabric-dev gcc");
        }
        Assumptions.assumeTrue(Files.exists(Path.of("/usr/include/rdma/fabric.h")), "no libfabric headers");
        final Map<String, Long> ours = constantsOf(FiLayout.class);
        assertThat(ours).hasSizeGreaterThan(80).isEqualTo(headers("fi_layout", folder));
    }

    @Test
    void socketsAreThoseOfTheHeaders(@TempDir final Path folder) throws Exception {
        Assumptions.assumeTrue(Files.exists(Path.of("/usr/include/netinet/tcp.h")), "no C headers: apt-get install gcc libc6-dev");
        final Map<String, Long> ours = constantsOf(TcpSocket.class);
        assertThat(ours).hasSize(12).isEqualTo(headers("tcp_layout", folder));
    }

    private static Map<String, Long> headers(final String name, final Path folder) throws Exception {
        final Path source = Path.of(System.getProperty("nrt4j.test.projectDir", "."), "src", "test", "native", name + ".c");
        final Path program = folder.resolve(name);
        run("gcc", "-Wall", "-Werror", "-o", program.toString(), source.toString());
        final Map<String, Long> native0 = new TreeMap<>();
        for (final String line : run(program.toString())) {
            final String[] sides = line.split("=");
            final Long before = native0.put(sides[0], Long.valueOf(sides[1]));
            assertThat(before == null || before.equals(native0.get(sides[0]))).as(line).isTrue();
        }
        return native0;
    }

    private static Map<String, Long> constantsOf(final Class<?> type) throws IllegalAccessException {
        final Map<String, Long> constants = new TreeMap<>();
        for (final Field field : type.getDeclaredFields()) {
            if (Modifier.isStatic(field.getModifiers()) && field.getType().isPrimitive() && !OWN.contains(field.getName())) {
                field.setAccessible(true);
                constants.put(field.getName(), ((Number) field.get(null)).longValue());
            }
        }
        return constants;
    }

    private static List<String> run(final String... command) throws Exception {
        final Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        final String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        assertThat(process.waitFor(60, TimeUnit.SECONDS)).isTrue();
        assertThat(process.exitValue()).as(output).isZero();
        return new ArrayList<>(output.lines().toList());
    }
}
