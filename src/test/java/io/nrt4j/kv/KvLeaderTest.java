package io.nrt4j.kv;

import static io.nrt4j.kv.KvTesting.LIMIT;
import static io.nrt4j.kv.KvTesting.bytes;
import static io.nrt4j.kv.KvTesting.config;
import static io.nrt4j.kv.KvTesting.deadline;
import static io.nrt4j.kv.KvTesting.get;
import static io.nrt4j.kv.KvTesting.loopback;
import static io.nrt4j.kv.KvTesting.set;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nrt4j.NrtConfig;
import io.nrt4j.NrtSetting;
import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.testing.Await;
import io.nrt4j.testing.FreePorts;
import io.nrt4j.testing.Stopwatch;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Elections between instances of one JVM, and everything that a lock file and a port can be. */
class KvLeaderTest {
    private static final KvOptions OPTIONS = KvOptions.DEFAULT;

    private final int port = FreePorts.next();

    @TempDir
    private Path folder;

    static String identity(final KvLeader leader) {
        final byte[] identity = leader.hostIdentity(deadline(LIMIT));
        assertThat(identity).hasSize(128);
        return new String(identity, StandardCharsets.US_ASCII).replace("\0", "");
    }

    private Path lockFile() {
        return folder.resolve("nrt_kv_store_server_lock_uid_" + KvUser.id() + "_port_" + port);
    }

    private KvLeader start() {
        return KvLeader.start(config(folder, port));
    }

    private void assertRefused(final NrtConfig config, final String... parts) {
        final Stopwatch watch = Stopwatch.start();
        assertThatThrownBy(() -> KvLeader.start(config).close()).isInstanceOf(NrtException.class)
            .satisfies(ex -> assertThat(((NrtException) ex).status()).isEqualTo(NrtStatus.FAILURE))
            .satisfies(ex -> assertThat(ex.getMessage()).contains(parts));
        assertThat(watch.elapsed()).isLessThan(Duration.ofSeconds(1));
    }

    @Test
    void theOnlyOneLeadsAndServesItsIdentity() throws IOException {
        try (KvLeader leader = start()) {
            assertThat(leader.isLeader()).isTrue();
            assertThat(leader.ownServer()).isEqualTo(loopback(port));
            final String identity = identity(leader);
            assertThat(identity).matches("[!-~]{1,64}/[0-9a-f]{32}");
            assertThat(get(leader.ownServer(), "hostname", false, OPTIONS)).startsWith(identity + "\0").hasSize(128);
            assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(lockFile()))).isEqualTo("rw-------");
        }
        assertThat(Files.readString(lockFile())).contains("identity ");
    }

    @Test
    void instancesOfOneJvmElectAndHandOver() {
        final List<KvLeader> leaders = new ArrayList<>();
        final Set<String> identities = new HashSet<>();
        final Set<Long> epochs = new HashSet<>();
        for (int i = 0; i < 5; i++) {
            leaders.add(start());
            identities.add(identity(leaders.get(i)));
            assertThat(leaders.get(i).isLeader()).isEqualTo(i == 0);
        }
        while (!leaders.isEmpty()) {
            final KvLeader first = leaders.stream().filter(KvLeader::isLeader).findFirst().orElseThrow();
            epochs.add(set(first.ownServer(), "k", "v", OPTIONS));
            leaders.remove(first);
            first.close();
            first.close();
            assertThat(first.isLeader()).isFalse();
            if (!leaders.isEmpty()) {
                Await.until(Duration.ofSeconds(1), "another one leads", () -> leaders.stream().anyMatch(KvLeader::isLeader));
                assertThat(leaders.stream().filter(KvLeader::isLeader)).hasSize(1);
                identities.add(get(first.ownServer(), "hostname", false, OPTIONS).replace("\0", ""));
            }
        }
        assertThat(identities).hasSize(1);
        assertThat(epochs).hasSize(5);
    }

    @Test
    void aFollowerThatClosesLeavesTheLeaderAlone() {
        final KvLeader leader = start();
        final KvLeader follower = start();
        try (KvLeader second = start()) {
            follower.close();
            assertThat(leader.isLeader()).isTrue();
            assertThat(set(leader.ownServer(), "k", "v", OPTIONS)).isNotZero();
            leader.close();
            Await.until(Duration.ofSeconds(1), "the second follower leads", second::isLeader);
        } finally {
            leader.close();
        }
    }

    /** Looks at its server once: it may be gone at a second look. */
    private static boolean servesAnother(final KvLeader leader, final long epoch) {
        final KvServer server = leader.server();
        return server != null && server.epoch() != epoch;
    }

    @Test
    void aServerThatFailsIsStartedAnew() {
        try (KvLeader leader = start()) {
            final long epoch = set(leader.ownServer(), "k", "v", OPTIONS);
            leader.server().close();
            Await.until(LIMIT, "another server", () -> servesAnother(leader, epoch));
            assertThat(set(leader.ownServer(), "k", "v", OPTIONS)).isNotEqualTo(epoch);
        }
    }

    @Test
    void aLockFileThatIsRemovedIsMadeAnewWithTheSameIdentity() throws IOException {
        try (KvLeader leader = start(); KvLeader follower = start()) {
            final String identity = identity(leader);
            assertThat(identity(follower)).isEqualTo(identity);
            final long epoch = leader.server().epoch();
            Files.delete(lockFile());
            Await.until(LIMIT, "another server", () -> Files.exists(lockFile())
                && (servesAnother(leader, epoch) || follower.isLeader()));
            Await.until(LIMIT, "the identity", () -> Files.readString(lockFile()).contains("identity " + identity + "\n"));
            assertThat(get(leader.ownServer(), "hostname", false, OPTIONS)).startsWith(identity + "\0");
        }
    }

    @Test
    void twoHostsWithOneNameAreTwo(@TempDir final Path otherFolder) {
        final int otherPort = FreePorts.next();
        try (KvLeader one = start(); KvLeader other = KvLeader.start(config(otherFolder, otherPort))) {
            final String name = identity(one).split("/")[0];
            assertThat(identity(other)).startsWith(name + "/").isNotEqualTo(identity(one));
        }
    }

    @Test
    void anIdentityOfAnotherBootOrOfNonsenseIsReplaced() throws IOException {
        final String first;
        try (KvLeader leader = start()) {
            first = identity(leader);
        }
        final String content = Files.readString(lockFile());
        try (KvLeader leader = start()) {
            assertThat(identity(leader)).isEqualTo(first);
        }
        final String boot = content.split("\n")[1];
        for (final String other : List.of(content.replace(boot, "boot 00000000-0000-0000-0000-000000000000"), "", "nonsense",
            content.substring(0, content.length() - 5), content + "more", "\0".repeat(5000))) {
            Files.writeString(lockFile(), other);
            try (KvLeader leader = start()) {
                assertThat(identity(leader)).isNotEqualTo(first).matches("[!-~]{1,64}/[0-9a-f]{32}");
            }
            assertThat(Files.readString(lockFile())).startsWith("nrt4j host identity 1\n" + boot + "\n");
        }
    }

    @Test
    void longestAndStrangestHostNamesFit() {
        for (final String name : new String[] {"h".repeat(64), "x"}) {
            final NrtConfig config = NrtConfig.builder(Map.of(), Map.of()).bootstrapPort(FreePorts.next()).kvBindAddress("127.0.0.1")
                .kvLockDirectory(folder).set(NrtSetting.HOST_NAME, name).build();
            try (KvLeader leader = KvLeader.start(config)) {
                assertThat(identity(leader)).matches(name + "/[0-9a-f]{32}");
            }
        }
    }

    @Test
    void wildcardsAreReachedByTheirLoopback() {
        final Map<String, String> expected = Map.of("0.0.0.0", "127.0.0.1", "::", "127.0.0.1", "127.0.0.3", "127.0.0.3");
        expected.forEach((address, own) -> {
            final NrtConfig config = NrtConfig.builder(Map.of(), Map.of()).bootstrapPort(FreePorts.next()).kvBindAddress(address)
                .kvLockDirectory(folder).build();
            try (KvLeader leader = KvLeader.start(config)) {
                assertThat(leader.ownServer().getAddress().getHostAddress()).isEqualTo(own);
                assertThat(set(leader.ownServer(), "k", "v", OPTIONS)).isNotZero();
            }
        });
    }

    @Test
    void theSecretOfTheConfigurationSealsFrames() {
        final NrtConfig config = NrtConfig.builder(Map.of(), Map.of()).bootstrapPort(port).kvBindAddress("127.0.0.1")
            .kvLockDirectory(folder).kvSecret("secret").build();
        try (KvLeader leader = KvLeader.start(config); KvLeader follower = KvLeader.start(config)) {
            assertThat(identity(follower)).isEqualTo(identity(leader));
            assertThatThrownBy(() -> set(leader.ownServer(), "k", "v", OPTIONS)).hasMessageContaining("no secret is configured");
            try (KvLeader open = start()) {
                assertThatThrownBy(() -> open.hostIdentity(deadline(LIMIT))).isInstanceOf(NrtException.class)
                    .hasMessageContaining("127.0.0.1:" + port).hasMessageContaining("no secret is configured");
            }
        }
    }

    @Test
    void lockPathsThatCannotBeUsedAreNamed() throws IOException {
        Files.createDirectory(lockFile());
        assertRefused(config(folder, port), lockFile().toString(), "it is a folder");
        Files.delete(lockFile());
        final Path target = Files.createFile(folder.resolve("elsewhere"));
        Files.createSymbolicLink(lockFile(), target);
        assertRefused(config(folder, port), lockFile().toString(), "symbolic link");
        Files.delete(lockFile());
        assertRefused(config(folder.resolve("missing"), port), folder.resolve("missing").toString(), "does not exist");
        assertRefused(config(target, port), target.toString(), "not a folder");
        assertRefused(config(Path.of("/proc/self"), port), "nrt_kv_store_server_lock_uid_");
        assertThat(Files.size(target)).isZero();
        start().close();
    }

    @Test
    void aMissingPortIsNamed() {
        final NrtConfig config = NrtConfig.builder(Map.of(), Map.of()).kvLockDirectory(folder).build();
        assertRefused(config, "NEURON_RT_ASYNC_SENDRECV_BOOTSTRAP_PORT");
    }

    @Test
    void aPortOfAStrangerIsNamedAndTheLockGivenBack() throws IOException {
        try (ServerSocket stranger = new ServerSocket(port, 50, InetAddress.getLoopbackAddress())) {
            assertThat(stranger.isBound()).isTrue();
            assertRefused(config(folder, port), "127.0.0.1:" + port, "in use");
        }
        try (KvLeader leader = start()) {
            assertThat(leader.isLeader()).isTrue();
        }
    }

    @Test
    void aFollowerKeepsTryingForThePortThatAStrangerHas() throws IOException {
        final KvLockFile lock = hold();
        try (ServerSocket stranger = new ServerSocket(port, 50, InetAddress.getLoopbackAddress()); KvLeader follower = start()) {
            lock.release();
            // The lock is the follower's now, or will be in an instant; once it is, it does not give it back for want of the port.
            final KvLockFile other = KvLockFile.of(folder, port);
            Await.until(LIMIT, "the follower has the lock", () -> {
                final boolean free = other.tryAcquire();
                other.release();
                return !free;
            });
            assertThat(follower.isLeader()).isFalse();
            release(stranger);
            Await.until(LIMIT, "the follower leads", follower::isLeader);
            assertThat(set(follower.ownServer(), "k", "v", OPTIONS)).isNotZero();
        }
    }

    private static void release(final ServerSocket socket) throws IOException {
        socket.close();
    }

    /** The lock, held by nobody who serves. */
    private KvLockFile hold() {
        final KvLockFile lock = KvLockFile.of(folder, port);
        assertThat(lock.tryAcquire()).isTrue();
        assertThat(lock.isHeld()).isTrue();
        return lock;
    }

    @Test
    void whatAnswersInsteadOfTheLeaderIsSaid() throws Exception {
        final KvLockFile lock = hold();
        try (ServerSocket stranger = new ServerSocket(port, 50, InetAddress.getLoopbackAddress())) {
            assertAnswers(stranger, "", "closed by server");
            assertAnswers(stranger, "SSH-2.0-x\r\n", "not a key-value store");
            assertAnswers(stranger, "\0".repeat(1156), "not a key-value store");
            assertAnswers(stranger, null, "RECEIVING");
        } finally {
            lock.release();
        }
    }

    /** Another follower asks the stranger, which says something and closes, or says nothing at all. */
    private void assertAnswers(final ServerSocket stranger, final String said, final String reason) throws Exception {
        final List<Socket> silent = new ArrayList<>();
        final boolean[] over = new boolean[1];
        final Thread thread = new Thread(() -> {
            try {
                stranger.setSoTimeout(100);
                while (!over[0]) {
                    try {
                        final Socket socket = stranger.accept();
                        if (said == null) {
                            silent.add(socket);
                        } else {
                            socket.getOutputStream().write(bytes(said));
                            socket.shutdownOutput();
                            silent.add(socket);
                        }
                    } catch (final java.net.SocketTimeoutException ex) {
                        Thread.onSpinWait();
                    }
                }
            } catch (final IOException ex) {
                throw new java.io.UncheckedIOException(ex);
            }
        });
        thread.start();
        // Who says something is found out by that, however late it comes on a busy machine; who is silent, at the deadline.
        final Duration limit = said == null ? Duration.ofSeconds(2) : LIMIT;
        final Stopwatch watch = Stopwatch.start();
        try (KvLeader asking = start()) {
            assertThatThrownBy(() -> asking.hostIdentity(deadline(limit))).isInstanceOf(NrtException.class)
                .hasMessageContaining("127.0.0.1:" + port).hasMessageContaining(reason);
            assertThat(watch.elapsed()).isLessThan(Duration.ofSeconds(4));
        } finally {
            over[0] = true;
            thread.join(LIMIT.toMillis());
            for (final Socket socket : silent) {
                socket.close();
            }
        }
    }

    @Test
    void nobodyThereIsSaidAtTheDeadline() {
        final KvLockFile lock = hold();
        try (KvLeader follower = start()) {
            assertThatThrownBy(() -> follower.hostIdentity(deadline(Duration.ofMillis(300)))).isInstanceOf(NrtException.class)
                .hasMessageContaining("127.0.0.1:" + port).hasMessageContaining("in time").hasMessageContaining("connection attempts");
        } finally {
            lock.release();
        }
    }

    @Test
    void closeRightAfterStartGivesEverythingBack() {
        for (int i = 0; i < 200; i++) {
            start().close();
            final KvLockFile lock = hold();
            lock.release();
        }
        try (KvLeader leader = start()) {
            assertThat(leader.isLeader()).isTrue();
        }
    }

    @Test
    void closeEndsAllThreads() {
        final KvLeader leader = start();
        final KvLeader follower = start();
        follower.close();
        leader.close();
        final String end = "-" + port;
        Await.until(LIMIT, () -> "threads: " + Thread.getAllStackTraces().keySet(),
            () -> Thread.getAllStackTraces().keySet().stream().noneMatch(thread -> thread.getName().endsWith(end)));
    }
}
