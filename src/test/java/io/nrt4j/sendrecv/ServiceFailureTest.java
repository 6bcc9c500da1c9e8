package io.nrt4j.sendrecv;

import static org.assertj.core.api.Assertions.assertThat;

import io.nrt4j.NrtConfig;
import io.nrt4j.NrtStatus;
import io.nrt4j.NrtTensor;
import io.nrt4j.net.NetTransport;
import io.nrt4j.net.NetTransportProvider;
import io.nrt4j.net.loopback.LoopbackTransport;
import io.nrt4j.testing.Await;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;

/** An error inside the service thread: every later call on the LNC says so, and nothing hangs. */
class ServiceFailureTest {
    /** Makes loopback transports whose progress throws what it is told to. */
    private record Sabotaged(AtomicReference<Error> bomb) implements NetTransportProvider {
        @Override
        public String name() {
            return "sabotaged";
        }

        @Override
        public String unavailabilityCause(final NrtConfig config) {
            return null;
        }

        @Override
        public String describe(final NrtConfig config) {
            return "loopback that blows up";
        }

        @Override
        public NetTransport create(final NrtConfig config) {
            final LoopbackTransport real = new LoopbackTransport();
            return (NetTransport) Proxy.newProxyInstance(getClass().getClassLoader(), new Class<?>[] {NetTransport.class},
                (proxy, method, arguments) -> {
                    final Error error = bomb.get();
                    if (error != null && method.getName().equals("progress")) {
                        throw error;
                    }
                    try {
                        return method.invoke(real, arguments);
                    } catch (final InvocationTargetException ex) {
                        throw ex.getCause();
                    }
                });
        }
    }

    @Test
    void everyLaterCallFailsWithTheCause() {
        final AtomicReference<Error> bomb = new AtomicReference<>();
        try (EngineRig rig = new EngineRig(); NrtTensor tensor = NrtTensor.allocate(64)) {
            final NrtAsyncSendRecv a = rig.add(new NrtAsyncSendRecv(rig.config(builder -> builder), new Sabotaged(bomb)));
            final NrtAsyncSendRecv b = rig.initialised(1);
            EngineRig.init(a, 0);
            final EngineRig.Pair pair = EngineRig.connect(a, 0, b, 1);
            final SendRecvRequest posted = new SendRecvRequest();
            assertThat(a.sendTensor(tensor, 0, 8, pair.send(), posted)).isEqualTo(NrtStatus.SUCCESS);
            bomb.set(new StackOverflowError("a bug"));
            assertThat(a.connect(EngineRig.LOCALHOST, 9, 0, new SendRecvComm())).isEqualTo(NrtStatus.SUCCESS);
            Await.until(EngineRig.LIMIT, a::toString, () -> a.context(0).fatal() != null);
            assertThat(a.testComm(pair.send())).isEqualTo(NrtStatus.FAILURE);
            assertThat(a.lastError()).contains("service thread of lnc 0 has failed").contains("a bug");
            assertThat(a.testRequest(posted)).isEqualTo(NrtStatus.FAILURE);
            assertThat(a.sendTensor(tensor, 0, 8, pair.send(), new SendRecvRequest())).isEqualTo(NrtStatus.FAILURE);
            assertThat(a.lastError()).contains("a bug");
            assertThat(a.connect(EngineRig.LOCALHOST, 1, 0, new SendRecvComm())).isEqualTo(NrtStatus.FAILURE);
            assertThat(a.accept(EngineRig.LOCALHOST, 1, 0, new SendRecvComm())).isEqualTo(NrtStatus.FAILURE);
            assertThat(a.flush(0)).isEqualTo(NrtStatus.FAILURE);
            assertThat(a.init(0)).isEqualTo(NrtStatus.FAILURE);
            final long startNs = System.nanoTime();
            assertThat(a.close(0)).isEqualTo(NrtStatus.FAILURE);
            assertThat(a.lastError()).contains("a bug");
            assertThat(Duration.ofNanos(System.nanoTime() - startNs)).isLessThan(Duration.ofSeconds(5));
            assertThat(tensor.storage().toString()).contains(" 0 in use");
            assertThat(b.testComm(pair.recv())).as("the peer is unharmed").isEqualTo(NrtStatus.SUCCESS);
        }
    }
}
