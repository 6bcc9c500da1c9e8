package io.nrt4j;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** docs/memory-model.md names every field that threads share, and tests, which must be there. */
class MemoryModelTest {
    private static final Path PROJECT = Path.of(System.getProperty("nrt4j.test.projectDir", "."));

    private static final Pattern COMMENT = Pattern.compile("(?s)/\\*.*?\\*/|//[^\\n]*");
    /** A volatile field, one of an atomic type or a latch, or one behind a VarHandle: its name is in the one group that matched. */
    private static final Pattern SHARED_FIELD = Pattern.compile(
        "\\bvolatile\\s+[\\w<>\\[\\], ?]+?\\s(\\w+)\\s*[=;]"
            + "|\\bfinal\\s+(?:Atomic\\w+|CountDownLatch)(?:<[^;=]*>)?\\s+(\\w+)\\s*[=;]"
            + "|findVarHandle\\(\\w+\\.class, \"(\\w+)\"");
    /** Something else that only makes sense where two threads meet. */
    private static final Pattern SHARING = Pattern.compile(
        "\\bsynchronized\\b|\\bnew (?:ReentrantLock|SpinLock|Semaphore\\(\\d|Concurrent\\w+|CopyOnWrite\\w+)\\b"
            + "|ConcurrentHashMap\\.newKeySet|arrayElementVarHandle");
    private static final Pattern TEST = Pattern.compile("`([A-Z]\\w*(?:Test|Stress))`|`([A-Z]\\w*(?:Test|Stress))?\\.(\\w+)`");

    private static final String DOCUMENT = read(PROJECT.resolve("docs/memory-model.md"));
    /** The fields' cells of the tables. */
    private static final List<String> FIELDS = DOCUMENT.lines().filter(line -> line.startsWith("| "))
        .map(line -> line.substring(1, line.indexOf('|', 1))).toList();

    @Test
    void everySharedFieldIsInIt() {
        final TreeSet<String> missing = new TreeSet<>();
        int count = 0;
        for (final Map.Entry<String, String> source : sources("src/main/java").entrySet()) {
            final Matcher shared = SHARED_FIELD.matcher(COMMENT.matcher(source.getValue()).replaceAll(""));
            while (shared.find()) {
                count++;
                final String field = Stream.of(1, 2, 3).map(shared::group).filter(name -> name != null).findFirst().orElseThrow();
                if (FIELDS.stream().noneMatch(cell -> hasWord(cell, source.getKey()) && hasWord(cell, field))) {
                    missing.add(source.getKey() + "." + field);
                }
            }
        }
        assertThat(missing).as("shared fields that docs/memory-model.md does not have").isEmpty();
        assertThat(count).as("shared fields that were found").isGreaterThan(50);
    }

    @Test
    void everyClassWhereThreadsMeetIsInIt() {
        final TreeSet<String> missing = new TreeSet<>();
        int count = 0;
        for (final Map.Entry<String, String> source : sources("src/main/java").entrySet()) {
            if (SHARING.matcher(COMMENT.matcher(source.getValue()).replaceAll("")).find()) {
                count++;
                if (!hasWord(DOCUMENT, source.getKey())) {
                    missing.add(source.getKey());
                }
            }
        }
        assertThat(missing).as("classes that docs/memory-model.md does not have").isEmpty();
        assertThat(count).as("classes that were found").isGreaterThan(20);
    }

    @Test
    void everyTestThatItNamesIsThere() {
        final Map<String, String> tests = sources("src/test/java");
        tests.putAll(sources("jcstress/src/main/java"));
        int count = 0;
        for (final String row : DOCUMENT.lines().filter(line -> line.startsWith("| `")).toList()) {
            final String cell = row.substring(row.lastIndexOf('|', row.length() - 2) + 1, row.length() - 1);
            final Matcher named = TEST.matcher(cell);
            String test = null;
            while (named.find()) {
                count++;
                // "`SpscRingStress.Full`, `.Empty`": the second belongs to the first's class.
                test = named.group(1) != null ? named.group(1) : named.group(2) != null ? named.group(2) : test;
                assertThat(tests).as(row).containsKey(test);
                if (named.group(3) != null) {
                    assertThat(tests.get(test)).as(row).containsPattern("(class " + named.group(3) + "\\b|void " + named.group(3) + "\\()");
                }
            }
            assertThat(cell.trim()).as("a test or none: " + row).matches("-|.*(Test|Stress).*");
        }
        assertThat(count).as("tests named in docs/memory-model.md").isGreaterThan(80);
    }

    private static boolean hasWord(final String text, final String word) {
        return Pattern.compile("\\b" + word + "\\b").matcher(text).find();
    }

    /** Sources below a folder by the names of their classes; those of the same name one after the other. */
    private static Map<String, String> sources(final String folder) {
        final Map<String, String> sources = new HashMap<>();
        try (Stream<Path> paths = Files.walk(PROJECT.resolve(folder))) {
            paths.filter(path -> path.toString().endsWith(".java")).sorted()
                .forEach(path -> sources.merge(path.getFileName().toString().replace(".java", ""), read(path), String::concat));
        } catch (final IOException ex) {
            throw new UncheckedIOException(ex);
        }
        return sources;
    }

    private static String read(final Path path) {
        try {
            return Files.readString(path);
        } catch (final IOException ex) {
            throw new UncheckedIOException(ex);
        }
    }
}
