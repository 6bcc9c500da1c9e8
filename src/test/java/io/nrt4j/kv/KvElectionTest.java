package io.nrt4j.kv;

import static io.nrt4j.kv.KvTesting.LIMIT;
import static io.nrt4j.kv.KvTesting.config;
import static org.assertj.core.api.Assertions.assertThat;

import io.nrt4j.testing.Await;
import io.nrt4j.testing.ChildJvm;
import io.nrt4j.testing.FreePorts;
import io.nrt4j.testing.Stopwatch;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Elections between processes. */
@Tag("slow")
class KvElectionTest {
    private final List<ChildJvm> nodes = new ArrayList<>();
    private final int port = FreePorts.next();

    @TempDir
    private Path folder;

    @AfterEach
    void end() {
        nodes.forEach(ChildJvm::close);
    }

    private ChildJvm node() {
        final ChildJvm node = ChildJvm.start(KvNode.class);
        nodes.add(node);
        return node;
    }

    private void sendStart(final ChildJvm node) {
        node.send("start " + port + " " + folder);
    }

    /** Words of the answer to "start": up, whether it leads, epoch, identity. */
    private static String[] awaitUp(final ChildJvm node) {
        return node.awaitLine("an answer to start", line -> line.startsWith("up ") || line.startsWith("failed"), Duration.ofSeconds(30))
            .split(" ");
    }

    @Test
    void theLeaderIsKilledWhileOthersAreInTheMiddleOfRequests() {
        String identity = null;
        for (int round = 0; round < 5; round++) {
            while (nodes.size() < 3) {
                node().awaitLine("ready", LIMIT);
                sendStart(nodes.get(nodes.size() - 1));
                final String[] up = awaitUp(nodes.get(nodes.size() - 1));
                assertThat(up[0]).as(String.join(" ", up)).isEqualTo("up");
                assertThat(identity == null || identity.equals(up[3])).as("identity %s of %s", identity, up[3]).isTrue();
                identity = up[3];
            }
            final ChildJvm leader = leader();
            final List<ChildJvm> others = new ArrayList<>(nodes);
            others.remove(leader);
            others.get(0).send("take " + port + " key" + round);
            others.get(0).awaitLine("taking", LIMIT);
            others.get(1).send("publish " + port + " key" + round);
            others.get(1).awaitLine("publishing", LIMIT);
            final Stopwatch watch = Stopwatch.start();
            leader.kill();
            final String published = others.get(1).awaitLine("an answer to publish", line -> line.matches("(published|failed) .*"), LIMIT);
            final String took = others.get(0).awaitLine("an answer to take", line -> line.matches("(took|failed) .*"), LIMIT);
            assertThat(took).startsWith("took again " + published.split(" ")[1] + " ");
            final Duration time = watch.elapsedUntil(Long.parseLong(took.split(" ")[3]));
            System.out.println("from the leader's death to the key published again and taken: " + time.toMillis() + " ms");
            assertThat(time).isLessThan(Duration.ofSeconds(1));
            nodes.remove(leader);
            leader.close();
            assertThat(leader()).isIn(others);
        }
    }

    /** The one node that leads. */
    private ChildJvm leader() {
        final List<ChildJvm> leading = new ArrayList<>();
        for (final ChildJvm node : nodes) {
            node.send("status " + port);
            if (node.awaitLine("status", LIMIT).equals("status true")) {
                leading.add(node);
            }
        }
        assertThat(leading).hasSize(1);
        return leading.get(0);
    }

    @Test
    void sixteenProcessesStartAtOnceFiftyTimes() {
        for (int i = 0; i < 16; i++) {
            node();
        }
        nodes.forEach(node -> node.awaitLine("ready", Duration.ofSeconds(60)));
        final Set<String> identities = new HashSet<>();
        final Set<String> epochs = new HashSet<>();
        for (int round = 0; round < 50; round++) {
            nodes.forEach(this::sendStart);
            int leaders = 0;
            final Set<String> epochsOfRound = new HashSet<>();
            for (final ChildJvm node : nodes) {
                final String[] up = awaitUp(node);
                assertThat(up[0]).as(String.join(" ", up)).isEqualTo("up");
                leaders += Boolean.parseBoolean(up[1]) ? 1 : 0;
                epochsOfRound.add(up[2]);
                identities.add(up[3]);
            }
            assertThat(leaders).as("leaders in round %d", round).isEqualTo(1);
            assertThat(epochsOfRound).as("servers in round %d", round).hasSize(1);
            assertThat(epochs.addAll(epochsOfRound)).as("a new server in round %d", round).isTrue();
            nodes.forEach(node -> node.send("stop " + port));
            nodes.forEach(node -> node.awaitLine("down", LIMIT));
        }
        assertThat(identities).hasSize(1);
    }

    @Test
    void theLockFileOfADeadProcessIsTakenOverAtOnce() {
        final ChildJvm dead = node();
        dead.awaitLine("ready", LIMIT);
        sendStart(dead);
        final String identity = awaitUp(dead)[3];
        dead.kill();
        assertThat(dead.exitCode(LIMIT)).isEqualTo(137);
        final Stopwatch watch = Stopwatch.start();
        try (KvLeader leader = KvLeader.start(config(folder, port))) {
            assertThat(watch.elapsed()).isLessThan(Duration.ofSeconds(1));
            assertThat(leader.isLeader()).isTrue();
            assertThat(KvLeaderTest.identity(leader)).isEqualTo(identity);
        }
    }

    @Test
    void twoProcessesThatLeadAPortEachAndWaitForTheOthersAreNotDeadlocked() {
        final int other = FreePorts.next();
        final ChildJvm node = node();
        node.awaitLine("ready", LIMIT);
        sendStart(node);
        awaitUp(node);
        final KvLeader leader = KvLeader.start(config(folder, other));
        try (KvLeader follower = KvLeader.start(config(folder, port))) {
            assertThat(leader.isLeader()).isTrue();
            assertThat(follower.isLeader()).isFalse();
            node.send("start " + other + " " + folder);
            assertThat(awaitUp(node)[1]).isEqualTo("false");
            leader.close();
            Await.until(Duration.ofSeconds(1), () -> "the other process leads this one's port: " + node.lines(), () -> {
                node.send("status " + other);
                return node.awaitLine("status", LIMIT).equals("status true");
            });
            node.kill();
            Await.until(Duration.ofSeconds(1), "the follower leads", follower::isLeader);
            // The kernel's EDEADLK is an answer that is expected, not a trouble.
            assertThat(node.lines()).noneMatch(line -> line.contains("WARN") || line.contains("ERROR"));
        } finally {
            leader.close();
        }
    }
}
