package io.nrt4j.sendrecv;

import static org.assertj.core.api.Assertions.assertThat;

import io.nrt4j.NrtStatus;
import io.nrt4j.NrtTensor;
import io.nrt4j.testing.Await;
import io.nrt4j.testing.Stopwatch;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;

/** An error inside the service thread: every later call on the LNC says so, and nothing hangs. */
class ServiceFailureTest {
    @Test
    void everyLaterCallFailsWithTheCause() {
        final AtomicReference<Error> bomb = new AtomicReference<>();
        try (EngineRig rig = new EngineRig(); NrtTensor tensor = NrtTensor.allocate(64)) {
            final NrtAsyncSendRecv a = rig.altered(call -> {
                final Error error = bomb.get();
                if (error != null && call.equals("progress")) {
                    throw error;
                }
                return null;
            });
            final NrtAsyncSendRecv b = rig.initialised(1);
            EngineRig.init(a, 0);
            final EngineRig.Pair pair = EngineRig.connect(a, 0, b, 1);
            final SendRecvRequest posted = new SendRecvRequest();
            assertThat(a.sendTensor(tensor, 0, 8, pair.send(), posted)).isEqualTo(NrtStatus.SUCCESS);
            bomb.set(new StackOverflowError("a bug"));
            // It wakes the service thread, unless that is awake for the post still, and has failed before.
            assertThat(a.connect(EngineRig.LOCALHOST, 9, 0, new SendRecvComm())).isIn(NrtStatus.SUCCESS, NrtStatus.FAILURE);
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
            final Stopwatch watch = Stopwatch.start();
            assertThat(a.close(0)).isEqualTo(NrtStatus.FAILURE);
            assertThat(a.lastError()).contains("a bug");
            assertThat(watch.elapsed()).isLessThan(Duration.ofSeconds(5));
            assertThat(tensor.storage().toString()).contains(" 0 in use");
            assertThat(b.testComm(pair.recv())).as("the peer is unharmed").isEqualTo(NrtStatus.SUCCESS);
        }
    }
}
