package io.nrt4j.stress;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.tools.JavaCompiler;
import javax.tools.ToolProvider;

/**
 * Makes mutants: classes of nrt4j with one fault put in, each of which its stress test must find.
 *
 * <p>A file {@code mutants/NAME.mutant} has comment lines that say what the fault is, {@code test REGEX}, and for each source file
 * {@code file PATH} with replacements {@code <<<<}, the original, {@code ====}, the fault, {@code >>>>}. White space does not
 * count. An original that is not there exactly once is an error: a mutant that does not apply any more has to be written anew.
 */
public final class Mutants {
    private static final String TEST = "test ";
    private static final Pattern REPLACEMENT = Pattern.compile("(?ms)^<<<<\\n(.*?)^====\\n(.*?)^>>>>\\n");

    private Mutants() {
    }

    /**
     * Compiles all mutants, or those that are named; prints name and tests (a regular expression) of each, with a tab between.
     *
     * @param arguments folder of the mutants, folder of the project, folder for the classes, and names.
     * @throws IOException if a file cannot be read or written.
     */
    public static void main(final String[] arguments) throws IOException {
        final Path mutants = Path.of(arguments[0]);
        final Path project = Path.of(arguments[1]);
        final Path output = Path.of(arguments[2]);
        final List<String> names = List.of(arguments).subList(3, arguments.length);
        final List<Path> files;
        try (Stream<Path> all = Files.list(mutants)) {
            files = all.filter(file -> file.toString().endsWith(".mutant"))
                .filter(file -> names.isEmpty() || names.contains(nameOf(file))).sorted().collect(Collectors.toList());
        }
        if (files.isEmpty()) {
            throw new IllegalArgumentException("no such mutant: " + names);
        }
        for (final Path file : files) {
            final String text = Files.readString(file);
            compile(nameOf(file), apply(nameOf(file), text, project, output.resolve(nameOf(file) + "-src")),
                output.resolve(nameOf(file)));
            System.out.println(nameOf(file) + "\t" + tests(text));
        }
    }

    private static String nameOf(final Path file) {
        return file.getFileName().toString().replace(".mutant", "");
    }

    private static String tests(final String text) {
        return text.lines().filter(line -> line.startsWith(TEST)).map(line -> line.substring(TEST.length()).trim().replace(".", "\\."))
            .collect(Collectors.joining("|", "^(", ")$"));
    }

    private static List<Path> apply(final String name, final String text, final Path project, final Path sources) throws IOException {
        final List<Path> written = new ArrayList<>();
        for (final String part : text.split("(?m)^file ")) {
            final Matcher replacement = REPLACEMENT.matcher(part);
            if (!replacement.find()) {
                continue; // what comes before the first file
            }
            final String path = part.lines().findFirst().orElseThrow().trim();
            String source = Files.readString(project.resolve(path));
            do {
                source = replace(name + " in " + path, source, replacement.group(1), replacement.group(2));
            } while (replacement.find());
            final Path target = sources.resolve(path);
            Files.createDirectories(target.getParent());
            Files.writeString(target, source);
            written.add(target);
        }
        return written;
    }

    private static String replace(final String where, final String source, final String original, final String fault) {
        final String pattern = Stream.of(original.trim().split("\\s+")).map(Pattern::quote).collect(Collectors.joining("\\s+"));
        final Matcher found = Pattern.compile(pattern).matcher(source);
        if (!found.find()) {
            throw new IllegalStateException("mutant " + where + ": not there any more: " + original);
        }
        final String mutated = source.substring(0, found.start()) + fault + source.substring(found.end());
        if (found.find()) {
            throw new IllegalStateException("mutant " + where + ": there more than once: " + original);
        }
        return mutated;
    }

    private static void compile(final String name, final List<Path> sources, final Path classes) throws IOException {
        Files.createDirectories(classes);
        final List<String> options = new ArrayList<>(List.of("-proc:none", "-nowarn", "--release", "17", "-d", classes.toString(),
            "-cp", System.getProperty("java.class.path")));
        sources.forEach(source -> options.add(source.toString()));
        final JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        if (compiler.run(null, System.err, System.err, options.toArray(String[]::new)) != 0) {
            throw new IllegalStateException("mutant " + name + " does not compile");
        }
    }
}
