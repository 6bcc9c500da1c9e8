package io.nrt4j.tools;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Path;

/** One run of the command line inside the test's JVM. */
record CommandRun(int exitCode, String out, String err) {
    static CommandRun of(final Object... args) {
        return of(EngineFactory.DEFAULT, args);
    }

    static CommandRun of(final EngineFactory engines, final Object... args) {
        final StringWriter out = new StringWriter();
        final StringWriter err = new StringWriter();
        final String[] texts = new String[args.length];
        for (int i = 0; i < args.length; i++) {
            texts[i] = args[i] instanceof Path path ? path.toString() : String.valueOf(args[i]);
        }
        final int exitCode = Main.commandLine(engines)
            .setOut(new PrintWriter(out, true))
            .setErr(new PrintWriter(err, true))
            .execute(texts);
        return new CommandRun(exitCode, out.toString(), err.toString());
    }
}
