package io.nrt4j.sendrecv;

import io.nrt4j.NrtConfig;
import io.nrt4j.NrtStatus;
import io.nrt4j.NrtException;
import io.nrt4j.NrtTensor;
import io.nrt4j.Placement;
import io.nrt4j.concurrent.NanoClock;
import io.nrt4j.kv.KvOptions;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/** An LNC over a {@link StubTransport}, with one connected communicator. Its service thread is played by an actor. */
final class StressRig {
    static final NrtConfig CONFIG = NrtConfig.builder(Map.of(), Map.of()).asyncSendRecvEnabled(true).bootstrapPort(1).build();
    static final InetAddress PEER = InetAddress.getLoopbackAddress();
    private static final Rendezvous RENDEZVOUS = new Rendezvous(new byte[128], new InetSocketAddress(PEER, 1), 1, KvOptions.DEFAULT);
    private static final long ADDRESS = 0x10000;
    private static final long BYTES = 64;

    final StubTransport transport = new StubTransport();
    final LncContext context;
    final Communicator comm;

    StressRig() {
        context = new LncContext(null, 0, CONFIG, transport, RENDEZVOUS, NanoClock.SYSTEM,
            System.nanoTime() + TimeUnit.MINUTES.toNanos(1));
        comm = connecting();
        context.service().doWork();
        if (comm.status() != CommStatus.CONNECTED) {
            throw new IllegalStateException(comm + " " + comm.status());
        }
    }

    /** A communicator whose next step connects it. */
    Communicator connecting() {
        final Communicator made = context.newCommunicator(CommType.SEND_COMM, PEER, 1);
        made.setStatus(CommStatus.NET_CONNECT);
        return made;
    }

    /** Memory that nobody touches. */
    static NrtTensor tensor() {
        return NrtTensor.wrapAddress(ADDRESS, BYTES, Placement.HOST, 0);
    }

    /** A tensor that the communicator has registered already. */
    NrtTensor hotTensor() {
        final NrtTensor hot = tensor();
        hot.storage().retain();
        comm.mrCache().findOrRegister(hot.storage(), hot.placement());
        hot.storage().release();
        return hot;
    }

    /** Posts as an application does; what went wrong, or SUCCESS. */
    String post(final NrtTensor tensor, final long length, final SendRecvRequest request) {
        try {
            return Poster.post(tensor, 0, length, comm, request) ? "posted" : "exhausted";
        } catch (final NrtException ex) {
            return ex.status().name();
        } catch (final RuntimeException ex) {
            return ex.toString();
        }
    }

    /** Tests as an application does. */
    static String test(final SendRecvRequest request) {
        final RequestSlot slot = request.slot();
        try {
            Completer.test(request, slot);
            return request.done() ? "done" : "in flight";
        } catch (final NrtException ex) {
            return ex.status() == NrtStatus.INVALID_HANDLE ? "stale" : ex.status().name();
        } catch (final RuntimeException ex) {
            return ex.toString();
        }
    }

    /** The service thread's duty cycles until nothing is stashed. */
    void drain() {
        do {
            context.service().doWork();
        } while (!comm.stash().isEmpty());
    }

    /** Ends the LNC; null when all was in order. */
    String close() {
        return context.close(TimeUnit.SECONDS.toNanos(5), () -> { });
    }
}
