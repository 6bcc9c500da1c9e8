package io.nrt4j.testing;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import org.junit.jupiter.api.Test;

/** Children that talk, stand still and die. */
class ChildJvmTest {
    private static final Duration LIMIT = Duration.ofSeconds(30);

    /** Echoes lines; "echo n" n times, "exit n" ends it. */
    static final class Echo {
        private Echo() {
        }

        public static void main(final String[] arguments) throws IOException {
            final BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
            System.out.println("hello " + String.join(",", arguments));
            for (String line = input.readLine(); line != null; line = input.readLine()) {
                if (line.startsWith("exit ")) {
                    System.exit(Integer.parseInt(line.substring(5)));
                }
                for (int i = line.startsWith("echo ") ? Integer.parseInt(line.substring(5)) : 1; i > 0; i--) {
                    System.out.println("echo " + line);
                }
            }
        }
    }

    @Test
    void talksByLinesAndTellsTheExitCode() {
        try (ChildJvm child = ChildJvm.start(Echo.class, "a", "b")) {
            assertThat(child.awaitLine("hello", LIMIT)).isEqualTo("hello a,b");
            child.freeze();
            child.send("one");
            assertThatThrownBy(() -> child.awaitLine("echo", Duration.ofMillis(200)))
                .isInstanceOf(AssertionError.class).hasMessageContaining("hello a,b");
            child.thaw();
            assertThat(child.awaitLine("echo", LIMIT)).isEqualTo("echo one");
            child.send("exit 7");
            assertThat(child.exitCode(LIMIT)).isEqualTo(7);
        }
    }

    /** The process may be gone before its last lines are read. */
    @Test
    void whoeverHasTheExitCodeHasAllThatItSaid() {
        try (ChildJvm child = ChildJvm.start(Echo.class)) {
            child.send("echo 50000");
            child.send("exit 3");
            assertThat(child.exitCode(LIMIT)).isEqualTo(3);
            assertThat(child.lines()).hasSize(50_001);
        }
    }

    @Test
    void closeKills() {
        final ChildJvm child = ChildJvm.start(Echo.class);
        child.awaitLine("hello", LIMIT);
        child.close();
        assertThat(child.isAlive()).isFalse();
        assertThat(child.exitCode(LIMIT)).isEqualTo(137);
    }
}
