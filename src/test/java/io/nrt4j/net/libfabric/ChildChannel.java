package io.nrt4j.net.libfabric;

import static org.assertj.core.api.Assertions.assertThat;

import io.nrt4j.NrtTensor;
import io.nrt4j.net.NetTransport;
import io.nrt4j.testing.ChildJvm;
import java.time.Duration;
import java.util.HexFormat;
import java.util.List;
import java.util.stream.IntStream;

/** This end of the communicator between a transport of this process and a {@link FabricChild}, with the memory that it moves. */
record ChildChannel(NetTransport transport, ChildJvm child, boolean sending, long comm, NrtTensor tensor, long registration) {
    private static final Duration LIMIT = Duration.ofSeconds(30);

    /** Connects with a child that is ready; it has no communicator yet. */
    static ChildChannel open(final NetTransport transport, final ChildJvm child, final boolean sending, final NrtTensor tensor) {
        final long comm = sending ? sendTo(transport, child) : receiveFrom(transport, child);
        return new ChildChannel(transport, child, sending, comm, tensor, FabricPair.register(transport, comm, tensor));
    }

    private static long sendTo(final NetTransport transport, final ChildJvm child) {
        child.send("listen");
        final byte[] handle = HexFormat.of().parseHex(child.awaitLine("handle ", LIMIT).substring("handle ".length()));
        final long[] comm = new long[1];
        FabricPair.await("the connection", () -> {
            comm[0] = transport.connect(0, handle);
            return comm[0] != 0;
        });
        child.awaitLine("accepted", LIMIT);
        return comm[0];
    }

    private static long receiveFrom(final NetTransport transport, final ChildJvm child) {
        final byte[] handle = new byte[NetTransport.HANDLE_BYTES];
        final long listen = transport.listen(0, handle);
        child.send("connect " + HexFormat.of().formatHex(handle));
        final long[] comm = new long[1];
        FabricPair.await("the connection", () -> {
            comm[0] = transport.accept(listen);
            return comm[0] != 0;
        });
        child.awaitLine("connected", LIMIT);
        transport.closeListen(listen);
        return comm[0];
    }

    /** Has the child post its side of some messages. */
    void childPosts(final int count, final int length) {
        child.send((sending ? "recv " : "send ") + count + " " + length);
        child.awaitLine("posted", LIMIT);
    }

    /** Posts a message of this side. */
    long post(final long offset, final long length) {
        final long request = sending ? transport.isend(comm, tensor.address() + offset, length, registration)
            : transport.irecv(comm, tensor.address() + offset, length, registration);
        assertThat(request).isNotEqualTo(NetTransport.NOT_YET);
        return request;
    }

    /** Posts messages of this side, one behind the other in memory. */
    List<Long> postEach(final int count, final int length) {
        return IntStream.range(0, count).mapToObj(i -> post((long) i * length, length)).toList();
    }
}
