package io.nrt4j.kv;

import static io.nrt4j.kv.KvTesting.bytes;
import static io.nrt4j.kv.KvTesting.config;
import static io.nrt4j.kv.KvTesting.get;
import static io.nrt4j.kv.KvTesting.set;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;

/**
 * A process that takes part in elections as it is told on its standard input, for {@link KvElectionTest}. One answer a line; those that
 * are measured end with the instant, on the clock that all processes of a Linux machine share.
 */
final class KvNode {
    private static final KvOptions OPTIONS = KvOptions.DEFAULT;

    private final Map<Integer, KvLeader> leaders = new HashMap<>();

    private KvNode() {
    }

    public static void main(final String[] arguments) throws IOException {
        final KvNode node = new KvNode();
        final BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        System.out.println("ready");
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            try {
                System.out.println(node.obey(line.split(" ")));
            } catch (final RuntimeException | AssertionError ex) {
                System.out.println("failed " + ex);
            }
        }
    }

    private String obey(final String[] words) {
        final int port = Integer.parseInt(words[1]);
        return switch (words[0]) {
            case "start" -> start(port, Path.of(words[2]));
            case "stop" -> {
                leaders.remove(port).close();
                yield "down";
            }
            case "status" -> "status " + leaders.get(port).isLeader();
            case "take" -> take(port, words[2]);
            case "publish" -> publish(port, words[2]);
            default -> throw new IllegalArgumentException(words[0]);
        };
    }

    private String start(final int port, final Path folder) {
        final KvLeader leader = KvLeader.start(config(folder, port));
        leaders.put(port, leader);
        final String identity = new String(leader.hostIdentity(KvTesting.deadline(Duration.ofSeconds(20))), StandardCharsets.US_ASCII);
        final long epoch = set(leader.ownServer(), "node" + ProcessHandle.current().pid(), "up", OPTIONS);
        return "up " + leader.isLeader() + " " + Long.toHexString(epoch) + " " + identity.strip().replace("\0", "");
    }

    /** Waits for a key, through as many servers as it takes. */
    private String take(final int port, final String key) {
        System.out.println("taking");
        final String[] value = new String[1];
        try (KvClient client = KvTesting.run(KvClient.get(leaders.get(port).ownServer(), bytes(key), true, true,
            (buffer, offset, length) -> value[0] = new String(buffer, offset, length, StandardCharsets.US_ASCII), OPTIONS))) {
            final long nowNs = System.nanoTime();
            return client.isFailed() ? "failed " + client.failure()
                : "took " + value[0] + " " + Long.toHexString(client.serverEpoch()) + " " + nowNs;
        }
    }

    /** Makes requests without a pause; publishes the key as soon as another server than the first answers. */
    private String publish(final int port, final String key) {
        final KvLeader leader = leaders.get(port);
        final long first = set(leader.ownServer(), "busy", "v", OPTIONS);
        System.out.println("publishing");
        while (set(leader.ownServer(), "busy", "v", OPTIONS) == first) {
            get(leader.ownServer(), "busy", false, OPTIONS);
        }
        return "published " + Long.toHexString(set(leader.ownServer(), key, "again", OPTIONS));
    }
}
