package io.nrt4j.kv;

import static io.nrt4j.kv.KvTesting.bytes;

import io.nrt4j.NrtConfig;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.locks.LockSupport;

/** A host of its own, for {@link KvHostsTest}: a server at the default address, or a client that says why it has to wait. */
final class KvHost {
    private KvHost() {
    }

    /**
     * {@code serve <port> <folder>}, until it is killed; or {@code get <ip> <port>}, until it has the value, without any patience for
     * connections that are cut.
     */
    public static void main(final String[] arguments) throws Exception {
        if (arguments[0].equals("serve")) {
            serve(Integer.parseInt(arguments[1]), Path.of(arguments[2]));
        } else {
            get(new InetSocketAddress(InetAddress.getByName(arguments[1]), Integer.parseInt(arguments[2])));
        }
    }

    private static void serve(final int port, final Path folder) throws InterruptedException {
        final KvLeader leader = KvLeader.start(NrtConfig.builder(Map.of(), Map.of()).bootstrapPort(port).kvLockDirectory(folder).build());
        KvTesting.set(leader.ownServer(), "key", "hello", KvOptions.DEFAULT);
        System.out.println("serves at " + leader.server().address());
        Thread.currentThread().join();
    }

    private static void get(final InetSocketAddress server) {
        final String[] value = new String[1];
        String said = "";
        try (KvClient client = KvClient.get(server, bytes("key"), false, true,
            (buffer, offset, length) -> value[0] = new String(buffer, offset, length, StandardCharsets.US_ASCII),
            KvOptions.DEFAULT.withLossBudget(0))) {
            while (!client.isDone()) {
                if (client.step() == 0) {
                    LockSupport.parkNanos(50_000);
                }
                final String reason = client.describe().replaceAll(".* attempts, ", "");
                if (!reason.equals(said)) {
                    said = reason;
                    System.out.println("waits: " + reason);
                }
            }
            System.out.println(client.isFailed() ? "failed: " + client.failure().getMessage() : "got " + value[0]);
        }
    }
}
