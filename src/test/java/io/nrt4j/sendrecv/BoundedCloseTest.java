package io.nrt4j.sendrecv;

import static org.assertj.core.api.Assertions.assertThat;

import io.nrt4j.NrtConfig;
import io.nrt4j.NrtStatus;
import io.nrt4j.NrtTensor;
import io.nrt4j.net.NetTransport;
import io.nrt4j.net.NetTransportProvider;
import io.nrt4j.testing.Await;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Supplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** A transport that does not come back from a close, or from being opened, costs a call its time limit and not more. */
class BoundedCloseTest {
    private static final Duration LIMIT = Duration.ofMillis(300);
    /** The limit, and what a machine with other things to do may take. */
    private static final long BOUND_MS = 3000;

    private final EngineRig rig = new EngineRig();
    private final HookedTransport hooked = new HookedTransport();
    private final NrtTensor tensor = NrtTensor.allocate(64);
    private final CountDownLatch inside = new CountDownLatch(1);
    private final CountDownLatch goOn = new CountDownLatch(1);

    @AfterEach
    void closeAll() {
        goOn.countDown();
        hooked.unhook();
        rig.close();
        tensor.close();
    }

    private NrtAsyncSendRecv engine(final NetTransportProvider provider) {
        return rig.add(new NrtAsyncSendRecv(rig.config(builder -> builder.closeTimeout(LIMIT).initTimeout(LIMIT)), provider));
    }

    private void block() throws InterruptedException {
        inside.countDown();
        goOn.await();
    }

    /** Makes a call on a thread of its own, so that one that does not return fails the test. */
    private static <T> T within(final long millis, final Supplier<T> call) throws Exception {
        final FutureTask<T> task = new FutureTask<>(call::get);
        final Thread thread = new Thread(task, "caller");
        thread.setDaemon(true);
        thread.start();
        return task.get(millis, TimeUnit.MILLISECONDS);
    }

    private static String closing(final NrtAsyncSendRecv engine, final int lnc) {
        final NrtStatus status = engine.close(lnc);
        return status + " " + engine.lastError();
    }

    @ParameterizedTest
    @ValueSource(strings = {"beginClose", "closeRecv", "closeListen"})
    void aCloseThatTheTransportDoesNotComeBackFromKeepsWhatIsOwed(final String where) throws Exception {
        final NrtAsyncSendRecv a = rig.initialised(0);
        final NrtAsyncSendRecv b = engine(hooked);
        EngineRig.init(b, 1);
        final EngineRig.Pair pair = EngineRig.connect(a, 0, b, 1);
        assertThat(b.recvTensor(tensor, 0, 8, pair.recv(), new SendRecvRequest())).isEqualTo(NrtStatus.SUCCESS);
        if (where.equals("closeListen")) {
            final SendRecvComm alone = new SendRecvComm();
            assertThat(b.accept(EngineRig.LOCALHOST, 99, 1, alone)).isEqualTo(NrtStatus.SUCCESS);
            Await.until(EngineRig.LIMIT, b::toString, () -> alone.communicator().status() == CommStatus.NET_CONNECT);
        }
        hooked.before(where, this::block);
        assertThat(within(BOUND_MS, () -> closing(b, 1))).startsWith("FAILURE").contains("did not close")
            .contains(where.equals("closeListen") ? "is not connected yet" : "1 requests are in flight");
        assertThat(inside.await(20, TimeUnit.SECONDS)).isTrue();
        assertThat(tensor.storage().toString()).as("somebody may still write into it").contains(" 1 in use");
        goOn.countDown();
        Await.until(EngineRig.LIMIT, tensor::toString, () -> tensor.storage().toString().contains(" 0 in use"));
        Await.until(EngineRig.LIMIT, b::toString, () -> hooked.real().openComms() == 0 && hooked.real().openRegistrations() == 0);
    }

    @Test
    void aCloseThatFailsInWhateverWayKeepsTheMemory() {
        final NrtAsyncSendRecv a = rig.initialised(0);
        final NrtAsyncSendRecv b = engine(hooked);
        EngineRig.init(b, 1);
        final EngineRig.Pair pair = EngineRig.connect(a, 0, b, 1);
        assertThat(b.recvTensor(tensor, 0, 8, pair.recv(), new SendRecvRequest())).isEqualTo(NrtStatus.SUCCESS);
        hooked.before("closeRecv", () -> {
            throw new IllegalStateException("planned");
        });
        assertThat(b.close(1)).isEqualTo(NrtStatus.FAILURE);
        assertThat(tensor.storage().toString()).contains(" 1 in use");
    }

    @Test
    void aTransportThatDoesNotComeBackFromItsCloseKeepsOthersFromTheirInitForTheirTimeLimit() throws Exception {
        final NrtAsyncSendRecv b = engine(new AlteredLoopback(call -> {
            if (call.equals("close")) {
                block();
            }
            return null;
        }));
        EngineRig.init(b, 1);
        assertThat(within(BOUND_MS, () -> closing(b, 1))).startsWith("FAILURE").contains("the transport was not closed within 300 ms");
        assertThat(inside.await(20, TimeUnit.SECONDS)).isTrue();
        assertThat(within(BOUND_MS, () -> b.init(2) + " " + b.lastError())).startsWith("FAILURE").contains("still being closed");
        goOn.countDown();
        Await.until(EngineRig.LIMIT, b::toString, () -> b.init(2) == NrtStatus.SUCCESS);
        assertThat(b.close(2)).as(b.lastError()).isEqualTo(NrtStatus.SUCCESS);
    }

    /** Makes the hooked transport, after something of the test's. */
    private record SlowProvider(HookedTransport hooked, HookedTransport.Hook hook) implements NetTransportProvider {
        @Override
        public String name() {
            return "slow";
        }

        @Override
        public String unavailabilityCause(final NrtConfig config) {
            return null;
        }

        @Override
        public String describe(final NrtConfig config) {
            return name();
        }

        @Override
        public NetTransport create(final NrtConfig config) {
            try {
                hook.run();
            } catch (final Exception ex) {
                throw new IllegalStateException(ex);
            }
            return hooked.create(config);
        }
    }

    @Test
    void aTransportThatIsNotOpenedInTimeKeepsOthersFromTheirInitForTheirTimeLimitAndIsClosedAgain() throws Exception {
        final AtomicInteger closes = new AtomicInteger();
        hooked.before("close", closes::incrementAndGet);
        final NrtAsyncSendRecv b = engine(new SlowProvider(hooked, this::block));
        final FutureTask<String> first = new FutureTask<>(() -> b.init(1) + " " + b.lastError());
        new Thread(first, "first").start();
        assertThat(inside.await(20, TimeUnit.SECONDS)).isTrue();
        assertThat(within(BOUND_MS, () -> b.init(2) + " " + b.lastError())).startsWith("FAILURE").contains("still being opened");
        goOn.countDown();
        assertThat(first.get(20, TimeUnit.SECONDS)).startsWith("FAILURE").contains("opened too late");
        assertThat(closes).hasValue(1);
    }
}
