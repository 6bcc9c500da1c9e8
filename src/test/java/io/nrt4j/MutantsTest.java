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
        assertThat(mutants).hasSizeGreaterThan(60);
        for (final Path mutant : mutants) {
            final String[] parts = Files.readString(mutant).split("(?m)^file ");
            final List<String> tests = parts[0].lines().filter(line -> line.startsWith("test ")).toList();
            assertThat(tests).as("tests of " + mutant).isNotEmpty().allSatisfy(MutantsTest::assertThatTestsAreThere);
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

    @Test
    void everyStressTestHasAMutantButForThoseThatTheDocumentNames() throws IOException {
        final StringBuilder wanted = new StringBuilder();
        try (Stream<Path> files = Files.list(PROJECT.resolve("jcstress/mutants"))) {
            for (final Path mutant : files.filter(file -> file.toString().endsWith(".mutant")).toList()) {
                Files.readString(mutant).lines().filter(line -> line.startsWith("test "))
                    .forEach(line -> wanted.append(wanted.isEmpty() ? "" : "|").append(line.substring(5).trim()));
            }
        }
        final String document = Files.readString(PROJECT.resolve("docs/memory-model.md"));
        final String without = document.substring(document.indexOf("## What the tests cannot say"), document.indexOf("## Mutants"));
        final Path root = PROJECT.resolve("jcstress/src/main/java");
        final List<Path> sources;
        try (Stream<Path> files = Files.walk(root)) {
            sources = files.filter(file -> file.toString().endsWith("Stress.java")).toList();
        }
        int count = 0;
        for (final Path source : sources) {
            final String suite = root.relativize(source).toString().replace(".java", "").replace('/', '.');
            final Matcher test = Pattern.compile("(?s)@JCStressTest.*?class (\\w+)").matcher(Files.readString(source));
            while (test.find()) {
                count++;
                final String name = suite + "." + test.group(1);
                final boolean named = without.contains("`" + name.replaceFirst("([a-z0-9]+\\.)+", "") + "`");
                assertThat(name.matches(wanted.toString())).as(name + " has a mutant, or the document says why not").isNotEqualTo(named);
            }
        }
        assertThat(count).as("stress tests").isGreaterThan(75);
    }

    /** Of "test PACKAGE.CLASS.NAME" or "test PACKAGE.CLASS.(NAME|NAME)", also with the common part of the names in front. */
    private static void assertThatTestsAreThere(final String line) throws IOException {
        final Matcher test = Pattern.compile("test ([a-z0-9.]+)\\.([A-Z]\\w+)\\.(\\w*)(?:\\(([\\w|]+)\\))?").matcher(line);
        assertThat(test.matches()).as(line).isTrue();
        final String source = Files.readString(
            PROJECT.resolve("jcstress/src/main/java/" + test.group(1).replace('.', '/') + "/" + test.group(2) + ".java"));
        for (final String end : test.group(4) == null ? new String[] {""} : test.group(4).split("\\|")) {
            assertThat(source).as(line).containsPattern("public static class " + test.group(3) + end + "\\b");
        }
    }

    private static String withoutSpace(final String text) {
        return text.replaceAll("\\s+", "");
    }
}
