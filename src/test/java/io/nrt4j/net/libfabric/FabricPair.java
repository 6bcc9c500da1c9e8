package io.nrt4j.net.libfabric;

import io.nrt4j.NrtConfig;
import io.nrt4j.NrtSetting;
import io.nrt4j.NrtException;
import io.nrt4j.NrtTensor;
import io.nrt4j.Placement;
import io.nrt4j.net.NetTransport;
import io.nrt4j.testing.Spin;
import io.nrt4j.testing.Stopwatch;
import java.time.Duration;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.Assumptions;

/** Two transports of one JVM, as if they were two processes, and helpers to drive them. */
final class FabricPair implements AutoCloseable {
    static final Duration LIMIT = Duration.ofSeconds(60);

    final LibfabricTransport left;
    final LibfabricTransport right;

    FabricPair(final String provider) {
        left = new LibfabricTransport(config(provider));
        right = new LibfabricTransport(config(provider));
    }

    static NrtConfig config(final String provider) {
        return NrtConfig.builder(System.getProperties().stringPropertyNames().stream().filter(name -> name.startsWith("nrt4j.libfabric."))
                .collect(java.util.stream.Collectors.toMap(name -> name, System::getProperty)), System.getenv())
            .set(NrtSetting.LIBFABRIC_PROVIDER, provider).build();
    }

    /** Skips a test, visibly, when libfabric is not installed. */
    static void assumeLibfabric() {
        final String cause = new LibfabricProvider().unavailabilityCause(config(""));
        if (cause != null) {
            System.out.println("SKIPPED, no libfabric: " + cause);
        }
        Assumptions.assumeTrue(cause == null, () -> "no libfabric: " + cause);
    }

    /** A connected pair of communicators: send on one transport, receive on another. */
    record Link(NetTransport sender, long send, NetTransport receiver, long recv) {
        void close() {
            sender.closeSend(send);
            receiver.closeRecv(recv);
        }
    }

    static Link link(final NetTransport sender, final NetTransport receiver) {
        final byte[] handle = new byte[NetTransport.HANDLE_BYTES];
        final long listen = receiver.listen(0, handle);
        final Link link = link(sender, handle, receiver, listen);
        receiver.closeListen(listen);
        return link;
    }

    /** Connects to a listener that there is already. */
    static Link link(final NetTransport sender, final byte[] handle, final NetTransport receiver, final long listen) {
        final long[] comms = new long[2];
        await("a connection", () -> {
            comms[0] = comms[0] == 0 ? sender.connect(0, handle) : comms[0];
            comms[1] = comms[1] == 0 ? receiver.accept(listen) : comms[1];
            return comms[0] != 0 && comms[1] != 0;
        });
        return new Link(sender, comms[0], receiver, comms[1]);
    }

    static void await(final Object what, final BooleanSupplier condition) {
        final Stopwatch watch = Stopwatch.start();
        int rounds = 0;
        while (!condition.getAsBoolean()) {
            if (watch.isOver(LIMIT)) {
                throw new AssertionError("not within " + LIMIT + ": " + what);
            }
            Spin.pause(rounds++);
        }
    }

    /** Waits for a request and answers its size; both sides are driven. */
    static long complete(final Link link, final NetTransport owner, final long request) {
        final long[] size = {NetTransport.PENDING};
        await(new Object() {
            @Override
            public String toString() {
                return "a request; " + link;
            }
        }, () -> {
            link.sender().progress();
            link.receiver().progress();
            size[0] = owner.test(request);
            return size[0] != NetTransport.PENDING;
        });
        return size[0];
    }

    /** Waits for a request to fail and answers the failure. */
    static NrtException failure(final Link link, final NetTransport owner, final long request) {
        try {
            final long size = complete(link, owner, request);
            throw new AssertionError("completed with " + size + " instead of failing");
        } catch (final NrtException ex) {
            return ex;
        }
    }

    static long isend(final Link link, final NrtTensor tensor, final long offset, final long length, final long registration) {
        final long[] request = new long[1];
        await("room for a send", () -> {
            request[0] = link.sender().isend(link.send(), tensor.address() + offset, length, registration);
            return request[0] != NetTransport.NOT_YET;
        });
        return request[0];
    }

    static long irecv(final Link link, final NrtTensor tensor, final long offset, final long length, final long registration) {
        final long[] request = new long[1];
        await("room for a receive", () -> {
            request[0] = link.receiver().irecv(link.recv(), tensor.address() + offset, length, registration);
            return request[0] != NetTransport.NOT_YET;
        });
        return request[0];
    }

    static long register(final NetTransport transport, final long comm, final NrtTensor tensor) {
        return transport.regMr(comm, tensor.address(), tensor.sizeBytes(), Placement.HOST);
    }

    @Override
    public void close() {
        left.close();
        right.close();
    }
}
