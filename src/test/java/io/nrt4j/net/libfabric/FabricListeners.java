package io.nrt4j.net.libfabric;

import io.nrt4j.NrtException;
import io.nrt4j.NrtTensor;
import io.nrt4j.net.NetTransport;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.locks.LockSupport;

/**
 * A process that plays many peers: transports, each with listeners, which say {@code handle <number> <handle>}. It accepts whoever
 * connects, and says {@code got <first word>} for each message of {@link #LENGTH} bytes whose first and last word are the same.
 */
final class FabricListeners {
    /** Of every message: longer than what travels eagerly. */
    static final int LENGTH = 20_000;

    private static final class Listener {
        private final NetTransport transport;
        private final long listen;
        private final NrtTensor target = NrtTensor.allocate(LENGTH);
        private long comm;
        private long registration;
        private long request;

        Listener(final NetTransport transport, final int number) {
            this.transport = transport;
            final byte[] handle = new byte[NetTransport.HANDLE_BYTES];
            listen = transport.listen(0, handle);
            System.out.println("handle " + number + " " + HexFormat.of().formatHex(handle));
        }

        void step() {
            try {
                if (comm == 0) {
                    comm = transport.accept(listen);
                    registration = comm == 0 ? 0 : FabricPair.register(transport, comm, target);
                } else if (request == 0) {
                    request = transport.irecv(comm, target.address(), LENGTH, registration);
                } else if (transport.test(request) == LENGTH) {
                    request = 0;
                    final long word = target.view(0, Long.BYTES).getLong(0);
                    System.out.println(target.view(LENGTH - Long.BYTES, Long.BYTES).getLong(0) == word ? "got " + word : "wrong data");
                }
            } catch (final NrtException ex) { // the sender gave it up
                transport.closeRecv(comm);
                comm = 0;
                request = 0;
            }
        }
    }

    private FabricListeners() {
    }

    /**
     * Runs until it is killed.
     *
     * @param args provider, peers, listeners of each.
     */
    public static void main(final String[] args) {
        final List<Listener> listeners = new ArrayList<>();
        for (int peer = 0; peer < Integer.parseInt(args[1]); peer++) {
            final NetTransport transport = new LibfabricTransport(FabricPair.config(args[0]));
            for (int i = 0; i < Integer.parseInt(args[2]); i++) {
                listeners.add(new Listener(transport, listeners.size()));
            }
        }
        while (true) {
            listeners.forEach(Listener::step);
            LockSupport.parkNanos(500_000);
        }
    }
}
