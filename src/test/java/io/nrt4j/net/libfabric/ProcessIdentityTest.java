package io.nrt4j.net.libfabric;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nrt4j.testing.Await;
import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Whether a process has ended, told from files as the kernel writes them, and from the kernel's own. */
class ProcessIdentityTest {
    private static final Path PROC = Path.of("/proc");

    @TempDir
    private Path temp;

    /** What the kernel says of a process whose name is as inconvenient as it may be. */
    static void writeStat(final Path proc, final long pid, final char state, final int threads, final long startTicks) throws IOException {
        final Path folder = Files.createDirectories(proc.resolve(Long.toString(pid)));
        Files.writeString(folder.resolve("stat"), pid + " (a) Z 1 (b) " + state + " 1 2 3 0 -1 4194304 0 0 0 0 5 6 0 0 20 0 " + threads
            + " 0 " + startTicks + " 1000 100 18446744073709551615\n");
    }

    @ParameterizedTest
    @CsvSource({"S,1,false", "R,30,false", "D,1,false", "T,30,false", "t,2,false", "Z,1,true", "Z,0,true", "X,0,true", "x,0,true",
        "Z,2,false"})
    void zombiesWithoutThreadsHaveEnded(final char state, final int threads, final boolean ended) throws IOException {
        writeStat(temp, 4711, 'S', 30, 77);
        final ProcessIdentity process = ProcessIdentity.of(temp, 4711);
        assertThat(process.startTicks()).isEqualTo(77);
        assertThat(process.ended()).isFalse();

        writeStat(temp, 4711, state, threads, 77);
        assertThat(process.ended()).isEqualTo(ended);
        assertThat(ProcessIdentity.of(temp, 4711) == null).isEqualTo(ended);
    }

    @Test
    void aNumberThatAnotherProcessHasNowIsNoLife() throws IOException {
        writeStat(temp, 4711, 'S', 30, 77);
        final ProcessIdentity process = ProcessIdentity.of(temp, 4711);
        writeStat(temp, 4711, 'S', 30, 78);
        assertThat(process.ended()).isTrue();
        assertThat(process.vacated()).isFalse();
        writeStat(temp, 4711, 'Z', 1, 78);
        assertThat(process.vacated()).isTrue();
    }

    @Test
    void whatIsGoneHasEnded() throws IOException {
        writeStat(temp, 4711, 'S', 30, 77);
        final ProcessIdentity process = ProcessIdentity.of(temp, 4711);
        Files.delete(temp.resolve("4711/stat"));
        assertThat(process.ended()).as("a file that cannot be read is no proof").isFalse();
        Files.delete(temp.resolve("4711"));
        assertThat(process.ended()).isTrue();
        assertThat(ProcessIdentity.of(temp, 4711)).isNull();
    }

    @Test
    void whatCannotBeUnderstoodIsNoProof() throws IOException {
        writeStat(temp, 4711, 'S', 30, 77);
        final ProcessIdentity process = ProcessIdentity.of(temp, 4711);
        Files.writeString(temp.resolve("4711/stat"), "4711 (a) Z 1");
        assertThat(process.ended()).isFalse();
        assertThatThrownBy(() -> ProcessIdentity.of(temp, 4711)).isInstanceOf(IOException.class).hasMessageContaining("4711 (a) Z 1");
    }

    @Test
    void aRealZombieHasEnded() throws IOException {
        // The shell turns into one that does not ask for its child's end.
        final Process parent = new ProcessBuilder("sh", "-c", "sleep 1000 & echo $!; exec sleep 1000").start();
        try (BufferedReader output = parent.inputReader()) {
            final long pid = Long.parseLong(output.readLine());
            final ProcessIdentity process = ProcessIdentity.of(PROC, pid);
            final ProcessIdentity living = ProcessIdentity.of(PROC, parent.pid());
            assertThat(process.ended()).isFalse();
            // The shell itself would ask.
            Await.until(Duration.ofSeconds(10), () -> "the other program of " + living,
                () -> "sleep".equals(Files.readString(living.folder().resolve("comm")).trim()));
            ProcessHandle.of(pid).orElseThrow().destroyForcibly();
            Await.until(Duration.ofSeconds(10), () -> "the end of " + process, process::ended);
            assertThat(process.folder()).exists();
            assertThat(living.ended()).isFalse();
        } finally {
            parent.destroyForcibly();
        }
    }
}
