package io.nrt4j.proxy;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.net.NetTransport;
import io.nrt4j.net.NetworkProxy;
import io.nrt4j.net.loopback.FaultPlan;
import io.nrt4j.net.loopback.FaultPlan.Operation;
import io.nrt4j.net.loopback.LoopbackTransport;
import io.nrt4j.testing.Await;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Barriers: in one process and over a transport, several ranks on one worker, one that leaves. */
@Timeout(value = 120, unit = TimeUnit.SECONDS)
class BarrierTest {
    private final ProxyRig rig = ProxyRig.byHand();
    private final List<AutoCloseable> open = new ArrayList<>();
    private final FaultPlan plan = new FaultPlan();

    @AfterEach
    void close() throws Exception {
        rig.close();
        for (final AutoCloseable each : open) {
            each.close();
        }
    }

    private GlobalComm[] comms(final HostBarrier[] sides) {
        rig.with("NEURON_RT_RANKS_PER_NETWORK_PROXY", Integer.toString(sides.length));
        final GlobalComm[] comms = new GlobalComm[sides.length];
        for (int rank = 0; rank < sides.length; rank++) {
            comms[rank] = rig.comm(rank, rank, new ScriptedProxy().otherwise(NetworkProxy.DONE), sides[rank]);
        }
        return comms;
    }

    private static HostBarrier[] inProcess(final int ranks) {
        final ProcessBarrier barrier = new ProcessBarrier(ranks);
        final HostBarrier[] sides = new HostBarrier[ranks];
        for (int rank = 0; rank < ranks; rank++) {
            sides[rank] = barrier.of(rank);
        }
        return sides;
    }

    /** Sides over a transport that can misbehave. */
    private HostBarrier[] overNetwork(final int ranks) {
        final LoopbackTransport[] transports = new LoopbackTransport[ranks];
        for (int rank = 0; rank < ranks; rank++) {
            transports[rank] = new LoopbackTransport(plan);
            open.add(transports[rank]);
        }
        final long[][] sends = new long[ranks][ranks];
        final long[][] receives = new long[ranks][ranks];
        for (int rank = 1; rank < ranks; rank++) {
            link(transports, rank, 0, sends, receives);
            link(transports, 0, rank, sends, receives);
        }
        final HostBarrier[] sides = new HostBarrier[ranks];
        for (int rank = 0; rank < ranks; rank++) {
            sides[rank] = new NetBarrier(transports[rank], rank, sends[rank], receives[rank]);
        }
        return sides;
    }

    private static void link(
        final LoopbackTransport[] transports, final int from, final int to, final long[][] sends, final long[][] receives) {
        final byte[] handle = new byte[NetTransport.HANDLE_BYTES];
        final long listener = transports[to].listen(0, handle);
        for (int i = 0; i < 100 && (sends[from][to] == 0 || receives[to][from] == 0); i++) {
            sends[from][to] = sends[from][to] == 0 ? transports[from].connect(0, handle) : sends[from][to];
            receives[to][from] = receives[to][from] == 0 ? transports[to].accept(listener) : receives[to][from];
        }
        transports[to].closeListen(listener);
    }

    private static EncContext context(final GlobalComm comm) {
        return EncContext.builder(comm).build();
    }

    private static boolean isDone(final EncContext ctx, final TaskStatus status) {
        return ProxyTasks.checkBarrierTaskStatus(ctx, status) == NrtStatus.SUCCESS && status.done();
    }

    @ParameterizedTest
    @ValueSource(ints = {2, 4})
    void ranksOfOneGroupMeetOnOneWorker(final int ranks) {
        meet(comms(inProcess(ranks)));
    }

    @ParameterizedTest
    @ValueSource(ints = {2, 4})
    void theyMeetOverATransportToo(final int ranks) {
        plan.notYet(Operation.ISEND, 3).notYet(Operation.IRECV, 3);
        meet(comms(overNetwork(ranks)));
    }

    /** Some rounds, with each rank the last one in turn. */
    private void meet(final GlobalComm[] comms) {
        assertThat(rig.registry.size()).as("one worker for all").isEqualTo(1);
        final TaskStatus status = new TaskStatus();
        for (int round = 0; round < 2 * comms.length; round++) {
            final int late = round % comms.length;
            final EncContext[] contexts = new EncContext[comms.length];
            for (int rank = 0; rank < comms.length; rank++) {
                contexts[rank] = context(comms[rank]);
                if (rank != late) {
                    comms[rank].queue().append(new BarrierProxyTask(contexts[rank], round));
                }
            }
            passes(comms[0], 20);
            for (int rank = 0; rank < comms.length; rank++) {
                assertThat(isDone(contexts[rank], status)).as("rank %d before rank %d has come", rank, late).isFalse();
            }
            comms[late].queue().append(new BarrierProxyTask(contexts[late], round));
            passes(comms[0], 40);
            for (int rank = 0; rank < comms.length; rank++) {
                assertThat(isDone(contexts[rank], status)).as("rank %d, round %d", rank, round).isTrue();
                assertThat(status.status()).isEqualTo(NrtStatus.SUCCESS);
            }
        }
    }

    private static void passes(final GlobalComm comm, final int count) {
        for (int i = 0; i < count; i++) {
            comm.queue().doWork();
        }
    }

    @Test
    void onlyTheLeaderStoresTheSemaphoresAndOnlyWhenAllHaveArrived() {
        final GlobalComm[] comms = comms(inProcess(2));
        for (int i = 0; i < 8; i++) {
            rig.word(i).store(0);
        }
        final EncContext.Builder leader = EncContext.builder(comms[0]);
        final EncContext.Builder other = EncContext.builder(comms[1]);
        for (int i = 0; i < 4; i++) {
            leader.barrierDoneSemaphore(rig.address(i));
            other.barrierDoneSemaphore(rig.address(4 + i));
        }
        assertThatThrownBy(() -> leader.barrierDoneSemaphore(rig.address(8))).isInstanceOf(NrtException.class);
        comms[0].queue().append(new BarrierProxyTask(leader.build(), 1));
        passes(comms[0], 10);
        assertThat(rig.word(0).load()).isZero();
        comms[1].queue().append(new BarrierProxyTask(other.build(), 1));
        passes(comms[0], 10);
        for (int i = 0; i < 4; i++) {
            assertThat(rig.word(i).load()).isEqualTo(1);
            assertThat(rig.word(4 + i).load()).isZero();
        }
    }

    @Test
    void aBarrierWaitsForItsTriggerWithoutBlockingTheWorker() {
        final GlobalComm[] comms = comms(inProcess(2));
        final EncContext gated = EncContext.builder(comms[0]).trigger(new long[] {rig.address(0)}, 1).build();
        final EncContext free = context(comms[1]);
        final TaskStatus status = new TaskStatus();
        final BarrierProxyTask task = new BarrierProxyTask(gated, 1);
        comms[0].queue().append(task);
        comms[1].queue().append(new BarrierProxyTask(free, 1));
        final StubTask sibling = StubTask.doneAfter(context(comms[1]), 10);
        comms[1].queue().append(sibling);
        passes(comms[0], 10);
        assertThat(sibling.steps()).isEqualTo(10);
        assertThat(task.state().runState()).isEqualTo(RunState.WAITING_DEVICE_TRIGGER);
        assertThat(isDone(free, status)).isFalse();
        rig.word(0).store(3);
        passes(comms[0], 10);
        assertThat(rig.word(0).load()).isZero();
        assertThat(isDone(free, status)).isTrue();
        assertThat(isDone(gated, status)).isTrue();
    }

    @Test
    void barriersOfOneCommunicatorTakeTurnsInTheOrderOfTheirAppends() {
        final GlobalComm[] comms = comms(inProcess(2));
        final EncContext[] first = new EncContext[2];
        final EncContext[] second = new EncContext[2];
        for (int rank = 0; rank < 2; rank++) {
            // Rank 0's first barrier is still closed when its second is open.
            first[rank] = rank == 0 ? EncContext.builder(comms[0]).trigger(new long[] {rig.address(0)}, 1).build() : context(comms[1]);
            second[rank] = context(comms[rank]);
            comms[rank].queue().append(new BarrierProxyTask(first[rank], 1));
            comms[rank].queue().append(new BarrierProxyTask(second[rank], 2));
        }
        final TaskStatus status = new TaskStatus();
        passes(comms[0], 10);
        assertThat(isDone(second[0], status) || isDone(second[1], status)).isFalse();
        rig.word(0).store(0);
        passes(comms[0], 10);
        for (int rank = 0; rank < 2; rank++) {
            assertThat(isDone(first[rank], status)).isTrue();
            assertThat(isDone(second[rank], status)).isTrue();
        }
    }

    @Test
    void whoWaitsForARankThatLeftFailsAndSoDoesEveryLaterRound() {
        leave(comms(inProcess(3)));
    }

    @Test
    void overATransportToo() {
        leave(comms(overNetwork(3)));
    }

    private void leave(final GlobalComm[] comms) {
        final EncContext[] contexts = {context(comms[0]), context(comms[0])};
        comms[0].queue().append(new BarrierProxyTask(contexts[0], 1));
        passes(comms[0], 5);
        comms[2].free();
        passes(comms[0], 5);
        final TaskStatus status = new TaskStatus();
        assertThat(isDone(contexts[0], status)).isTrue();
        assertThat(status.status()).isNotEqualTo(NrtStatus.SUCCESS);
        assertThat(status.failure()).hasMessageContaining("round 0").hasMessageContaining("arrive");
        comms[0].queue().append(new BarrierProxyTask(contexts[1], 2));
        passes(comms[0], 5);
        assertThat(isDone(contexts[1], status)).isTrue();
        assertThat(status.failure()).hasMessageContaining("earlier round failed");
    }

    @Test
    void aRankThatLeavesAfterItsRoundTakesNothingFromTheOthers() {
        final HostBarrier[] sides = inProcess(2);
        assertThat(sides[1].arrive(0)).isTrue();
        assertThat(sides[1].depart(0)).isFalse();
        assertThat(sides[0].arrive(0)).isTrue();
        assertThat(sides[0].depart(0)).isTrue();
        sides[0].close();
        sides[0].close();
        assertThat(sides[1].depart(0)).isTrue();
        sides[1].arrive(1);
        assertThatThrownBy(() -> sides[1].depart(1)).isInstanceOfSatisfying(NrtException.class,
            ex -> assertThat(ex.status()).isEqualTo(NrtStatus.CLOSED)).hasMessageContaining("rank 0 left");
    }

    @Test
    void rankNumbersAreChecked() {
        assertThatThrownBy(() -> new ProcessBarrier(2).of(2)).isInstanceOf(NrtException.class);
        assertThatThrownBy(() -> new ProcessBarrier(2).of(-1)).isInstanceOf(NrtException.class);
    }

    /** The transport does not come back from a step: the free goes on without it, and the barrier is closed when it does. */
    @Test
    void aStepThatIsStuckInTheTransportDoesNotHoldTheFreeForEver() throws Exception {
        final LoopbackTransport real = new LoopbackTransport(plan);
        open.add(real);
        final long[][] sends = new long[2][2];
        final long[][] receives = new long[2][2];
        final LoopbackTransport[] both = {real, real};
        link(both, 1, 0, sends, receives);
        link(both, 0, 1, sends, receives);
        final CountDownLatch inside = new CountDownLatch(1);
        final CountDownLatch goOn = new CountDownLatch(1);
        final NetTransport stuck = (NetTransport) Proxy.newProxyInstance(getClass().getClassLoader(), new Class<?>[] {NetTransport.class},
            (self, method, arguments) -> {
                if (method.getName().equals("irecv")) {
                    inside.countDown();
                    goOn.await();
                }
                return method.invoke(real, arguments);
            });
        try (ProxyRig threaded = ProxyRig.threaded()) {
            final GlobalComm comm = threaded.comm(0, 0, new ScriptedProxy(), new NetBarrier(stuck, 0, sends[0], receives[0]));
            comm.queue().append(new BarrierProxyTask(context(comm), 1));
            assertThat(inside.await(10, TimeUnit.SECONDS)).isTrue();
            final CompletableFuture<Void> freed = CompletableFuture.runAsync(comm::free);
            try {
                freed.get(8, TimeUnit.SECONDS);
                assertThat(real.openComms()).as("not closed under the step").isEqualTo(4);
            } finally {
                goOn.countDown();
            }
            Await.until(ProxyRig.LIMIT, "this rank's links are closed", () -> real.openComms() == 2);
            Await.until(ProxyRig.LIMIT, "the worker ends after all", () -> !comm.queue().isAlive());
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 2, 3, 4})
    void aBarrierWhoseMemoryCannotBeRegisteredLeavesNothingRegistered(final int nth) {
        final LoopbackTransport transport = new LoopbackTransport(plan);
        open.add(transport);
        final LoopbackTransport[] all = {transport, transport, transport};
        final long[][] sends = new long[3][3];
        final long[][] receives = new long[3][3];
        for (int rank = 1; rank < 3; rank++) {
            link(all, rank, 0, sends, receives);
            link(all, 0, rank, sends, receives);
        }
        plan.fail(Operation.REG_MR, nth, "no more registrations");
        assertThatThrownBy(() -> new NetBarrier(transport, 0, sends[0], receives[0])).hasMessageContaining("no more registrations");
        assertThat(transport.openRegistrations()).as("on memory that is freed").isZero();
        assertThat(transport.openComms()).as("the links are the caller's").isEqualTo(8);
    }

    @Test
    void aClosedNetBarrierLeavesNothingRegistered() {
        final HostBarrier[] sides = overNetwork(3);
        for (final HostBarrier side : sides) {
            side.close();
            side.close();
            assertThatThrownBy(() -> side.arrive(0)).isInstanceOf(NrtException.class).hasMessageContaining("closed");
        }
        for (final AutoCloseable each : open) {
            final LoopbackTransport transport = (LoopbackTransport) each;
            assertThat(transport.openRegistrations()).isZero();
            assertThat(transport.openComms()).isZero();
        }
    }
}
