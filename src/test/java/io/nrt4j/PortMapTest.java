package io.nrt4j;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** docs/port-map.md names tests: they must be there. */
class PortMapTest {
    private static final Pattern TEST = Pattern.compile("`(?:[a-z]+\\.)*([A-Z]\\w*(?:Test|Contract))(?:\\.(\\w+))?`");

    private static final Path PROJECT = Path.of(System.getProperty("nrt4j.test.projectDir", "."));

    @Test
    void everyTestThatItNamesIsThere() throws IOException {
        final Map<String, String> sources = new HashMap<>();
        try (Stream<Path> paths = Files.walk(PROJECT.resolve("src/test/java"))) {
            paths.filter(path -> path.toString().endsWith(".java"))
                .forEach(path -> sources.put(path.getFileName().toString().replace(".java", ""), read(path)));
        }
        final Matcher named = TEST.matcher(read(PROJECT.resolve("docs/port-map.md")));
        int count = 0;
        while (named.find()) {
            count++;
            assertThat(sources).as(named.group()).containsKey(named.group(1));
            if (named.group(2) != null) {
                assertThat(sources.get(named.group(1))).as(named.group()).contains(" " + named.group(2) + "(");
            }
        }
        assertThat(count).as("tests named in docs/port-map.md").isGreaterThan(50);
    }

    private static String read(final Path path) {
        try {
            return Files.readString(path);
        } catch (final IOException ex) {
            throw new UncheckedIOException(ex);
        }
    }
}
