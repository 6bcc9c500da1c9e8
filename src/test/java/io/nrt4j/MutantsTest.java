package io.nrt4j;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** Each mutant of the stress tests fits the sources as they are, so that {@code scripts/jcstress.sh --mutants} can put it in. */
class MutantsTest {
    private static final Path PROJECT = Path.of(System.getProperty("nrt4j.test.projectDir", "."));
    private static final Pattern REPLACEMENT = Pattern.compile("(?ms)^<<<<\\n(.*?)^====\\n(.*?)^>>>>\\n");

    @Test
    void everyMutantHasItsPlaceInTheSourcesAndItsTest() throws IOException {
        final List<Path> mutants;
        try (Stream<Path> files = Files.list(PROJECT.resolve("jcstress/mutants"))) {
            mutants = files.filter(file -> file.toString().endsWith(".mutant")).sorted().toList();
        }
        assertThat(mutants).hasSizeGreaterThan(30);
        for (final Path mutant : mutants) {
            final String[] parts = Files.readString(mutant).split("(?m)^file ");
            assertThat(testClass(parts[0])).as("test of " + mutant).exists();
            assertThat(parts.length).as("sources of " + mutant).isGreaterThan(1);
            for (int i = 1; i < parts.length; i++) {
                final String source = withoutSpace(Files.readString(PROJECT.resolve(parts[i].lines().findFirst().orElseThrow().trim())));
                final Matcher replacement = REPLACEMENT.matcher(parts[i]);
                int count = 0;
                while (replacement.find()) {
                    count++;
                    final String original = withoutSpace(replacement.group(1));
                    assertThat(source.split(Pattern.quote(original), -1)).as(mutant + ": " + replacement.group(1)).hasSize(2);
                }
                assertThat(count).as("replacements of " + mutant).isGreaterThan(0);
            }
        }
    }

    private static Path testClass(final String head) {
        final Matcher test = Pattern.compile("(?m)^test ([a-z0-9.]+)\\.([A-Z]\\w+)\\.").matcher(head);
        assertThat(test.find()).as(head).isTrue();
        return PROJECT.resolve("jcstress/src/main/java/" + test.group(1).replace('.', '/') + "/" + test.group(2) + ".java");
    }

    private static String withoutSpace(final String text) {
        return text.replaceAll("\\s+", "");
    }
}
