package io.nrt4j.sendrecv;

import static org.assertj.core.api.Assertions.assertThat;

import io.nrt4j.NrtConfig;
import io.nrt4j.NrtStatus;
import io.nrt4j.concurrent.NanoClock;
import io.nrt4j.net.loopback.FaultPlan;
import io.nrt4j.net.loopback.LoopbackTransportProvider;
import io.nrt4j.testing.Await;
import io.nrt4j.testing.FreePorts;
import io.nrt4j.testing.Spin;
import io.nrt4j.testing.Stopwatch;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.UnaryOperator;

/** Engine instances of one job on one host: a port and a lock folder of their own, closed with the rig. */
final class EngineRig implements AutoCloseable {
    static final String LOCALHOST = "127.0.0.1";
    static final Duration LIMIT = Duration.ofSeconds(20);

    private final int port = FreePorts.next();
    private final Path lockFolder;
    private final List<NrtAsyncSendRecv> engines = new ArrayList<>();

    /** A connected pair. */
    record Pair(SendRecvComm send, SendRecvComm recv) {
    }

    EngineRig() {
        try {
            lockFolder = Files.createTempDirectory("nrt4j-test");
        } catch (final IOException ex) {
            throw new UncheckedIOException(ex);
        }
    }

    int port() {
        return port;
    }

    Path lockFolder() {
        return lockFolder;
    }

    NrtConfig config(final UnaryOperator<NrtConfig.Builder> more) {
        return more.apply(NrtConfig.builder(java.util.Map.of(), java.util.Map.of())
            .asyncSendRecvEnabled(true).bootstrapPort(port).kvLockDirectory(lockFolder)
            .kvBindAddress(LOCALHOST)).build();
    }

    NrtAsyncSendRecv engine() {
        return engine(builder -> builder, null);
    }

    NrtAsyncSendRecv engine(final UnaryOperator<NrtConfig.Builder> more, final FaultPlan plan) {
        return add(new NrtAsyncSendRecv(config(more), new LoopbackTransportProvider(plan)));
    }

    /** An engine without service threads. */
    NrtAsyncSendRecv handDriven(final UnaryOperator<NrtConfig.Builder> more, final FaultPlan plan, final NanoClock clock) {
        return add(new NrtAsyncSendRecv(config(more), new LoopbackTransportProvider(plan), clock, context -> { }));
    }

    /** An engine over a transport that the test alters. */
    NrtAsyncSendRecv altered(final AlteredLoopback.Alteration alteration) {
        return add(new NrtAsyncSendRecv(config(builder -> builder), new AlteredLoopback(alteration)));
    }

    NrtAsyncSendRecv add(final NrtAsyncSendRecv engine) {
        engines.add(engine);
        return engine;
    }

    /** An engine with one initialised LNC. */
    NrtAsyncSendRecv initialised(final int lnc) {
        final NrtAsyncSendRecv engine = engine();
        init(engine, lnc);
        return engine;
    }

    static void init(final NrtAsyncSendRecv engine, final int lnc) {
        assertThat(engine.init(lnc)).as(engine.lastError()).isEqualTo(NrtStatus.SUCCESS);
    }

    /** Starts both ends of a pair. */
    static Pair begin(final NrtAsyncSendRecv from, final int fromLnc, final NrtAsyncSendRecv to, final int toLnc) {
        final Pair pair = new Pair(new SendRecvComm(), new SendRecvComm());
        assertThat(from.connect(LOCALHOST, toLnc, fromLnc, pair.send())).as(from.lastError()).isEqualTo(NrtStatus.SUCCESS);
        assertThat(to.accept(LOCALHOST, fromLnc, toLnc, pair.recv())).as(to.lastError()).isEqualTo(NrtStatus.SUCCESS);
        return pair;
    }

    static Pair connect(final NrtAsyncSendRecv from, final int fromLnc, final NrtAsyncSendRecv to, final int toLnc) {
        final Pair pair = begin(from, fromLnc, to, toLnc);
        awaitConnected(from, to, pair);
        return pair;
    }

    /** Both ends in turn, so that the one that fails is the one that is named. */
    static void awaitConnected(final NrtAsyncSendRecv from, final NrtAsyncSendRecv to, final Pair pair) {
        Await.until(LIMIT, () -> pair + " in " + from + " and " + to, () -> {
            assertThat(to.testComm(pair.recv())).as("%s; %s", to.lastError(), pair).isEqualTo(NrtStatus.SUCCESS);
            assertThat(from.testComm(pair.send())).as("%s; %s", from.lastError(), pair).isEqualTo(NrtStatus.SUCCESS);
            return pair.send().connected() && pair.recv().connected();
        });
    }

    static void awaitConnected(final NrtAsyncSendRecv engine, final SendRecvComm comm) {
        Await.until(LIMIT, () -> comm + " in " + engine, () -> {
            assertThat(engine.testComm(comm)).as(engine.lastError()).isEqualTo(NrtStatus.SUCCESS);
            return comm.connected();
        });
    }

    /** Tests until done. */
    static long awaitDone(final NrtAsyncSendRecv engine, final SendRecvRequest request) {
        final Stopwatch watch = Stopwatch.start();
        int rounds = 0;
        while (true) {
            assertThat(engine.testRequest(request)).as(engine.lastError()).isEqualTo(NrtStatus.SUCCESS);
            if (request.done()) {
                return request.size();
            }
            if (watch.isOver(LIMIT)) {
                throw new AssertionError("not done: " + request + " in " + engine);
            }
            Spin.pause(rounds++);
        }
    }

    /** Tests until the status is another one than SUCCESS. */
    static NrtStatus awaitFailure(final NrtAsyncSendRecv engine, final SendRecvRequest request) {
        final NrtStatus[] last = new NrtStatus[1];
        Await.until(LIMIT, () -> request + " in " + engine, () -> {
            last[0] = engine.testRequest(request);
            return last[0] != NrtStatus.SUCCESS || request.done();
        });
        assertThat(request.done()).as("%s should have failed", request).isFalse();
        return last[0];
    }

    @Override
    public void close() {
        engines.forEach(NrtAsyncSendRecv::close);
        try (var files = Files.list(lockFolder)) {
            for (final Path file : files.toList()) {
                Files.deleteIfExists(file);
            }
            Files.deleteIfExists(lockFolder);
        } catch (final IOException ex) {
            throw new UncheckedIOException(ex);
        }
    }
}
