package io.nrt4j.testing;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import org.junit.jupiter.api.Test;

class ChildJvmTest {
    private static final Duration LIMIT = Duration.ofSeconds(30);

    /** Echoes lines; "exit n" ends it. */
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
                System.out.println("echo " + line);
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

    @Test
    void closeKills() {
        final ChildJvm child = ChildJvm.start(Echo.class);
        child.awaitLine("hello", LIMIT);
        child.close();
        assertThat(child.isAlive()).isFalse();
        assertThat(child.exitCode(LIMIT)).isEqualTo(137);
    }
}
