package io.nrt4j.proxy;

import static io.nrt4j.net.NetworkProxy.DONE;
import static io.nrt4j.net.NetworkProxy.IDLE;
import static org.assertj.core.api.Assertions.assertThat;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.net.NetDestAddr;
import io.nrt4j.net.NetOpsInfo;
import io.nrt4j.net.NetSrcAddr;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The five states of a network task, stepped by hand. */
class NetworkProxyTaskTest {
    private final ProxyRig rig = ProxyRig.byHand();
    private final ScriptedProxy proxy = new ScriptedProxy();
    private final GlobalComm comm = rig.comm(0, proxy);

    @AfterEach
    void close() {
        rig.close();
    }

    private static RunState step(final ProxyTask task) {
        task.step();
        return task.state().runState();
    }

    @Test
    void runStatesAndTypesHaveTheOriginalsNumbers() {
        assertThat(RunState.INIT.code()).isZero();
        assertThat(RunState.PROGRESSING.code()).isEqualTo(1);
        assertThat(RunState.WAITING_DEVICE_TRIGGER.code()).isEqualTo(2);
        assertThat(RunState.IDLE.code()).isEqualTo(3);
        assertThat(RunState.DONE.code()).isEqualTo(4);
        assertThat(TaskType.UNKNOWN.code()).isZero();
        assertThat(TaskType.NETWORK.code()).isEqualTo(1);
        assertThat(TaskType.BARRIER.code()).isEqualTo(2);
    }

    @Test
    void withoutATriggerItProgressesAndIdlesUntilDone() {
        final NetworkProxyTask task = new NetworkProxyTask(ProxyRig.context(comm).build(), 1);
        proxy.answer(0, 0, 0, IDLE, IDLE, 0, DONE);
        assertThat(task.state().runState()).isEqualTo(RunState.INIT);
        assertThat(step(task)).isEqualTo(RunState.PROGRESSING);
        assertThat(proxy.calls()).containsExactly("start 0/0");
        assertThat(step(task)).isEqualTo(RunState.PROGRESSING);
        assertThat(step(task)).isEqualTo(RunState.IDLE);
        assertThat(step(task)).isEqualTo(RunState.IDLE);
        assertThat(step(task)).isEqualTo(RunState.PROGRESSING);
        assertThat(step(task)).isEqualTo(RunState.DONE);
        assertThat(task.state().progressStatus()).isEqualTo(NrtStatus.SUCCESS);
    }

    @Test
    void itWaitsForEveryWordAndConsumesThem() {
        final long[] words = {rig.address(0), rig.address(1)};
        final NetworkProxyTask task = new NetworkProxyTask(ProxyRig.context(comm).trigger(words, 2).build(), 1);
        assertThat(step(task)).isEqualTo(RunState.WAITING_DEVICE_TRIGGER);
        rig.word(0).store(1);
        assertThat(step(task)).isEqualTo(RunState.WAITING_DEVICE_TRIGGER);
        assertThat(rig.word(0).load()).as("not consumed alone").isEqualTo(1);
        rig.word(1).store(1);
        assertThat(step(task)).isEqualTo(RunState.PROGRESSING);
        assertThat(rig.word(0).load()).isZero();
        assertThat(rig.word(1).load()).isZero();
        assertThat(proxy.calls()).as("nothing crossed the seam yet").containsExactly("start 0/0");
    }

    @Test
    void aContextMaySkipTheNetworkWhichNoSettingDoes() {
        rig.with("NEURON_RT_DBG_EARLY_COMPLETION", "1");
        final NetworkProxyTask task = new NetworkProxyTask(
            ProxyRig.context(comm).trigger(new long[] {rig.address(0)}, 1).skipNetwork(true).build(), 1);
        assertThat(step(task)).isEqualTo(RunState.DONE);
        assertThat(proxy.calls()).isEmpty();
    }

    @Test
    void aContextWithoutBlocksIsDone() {
        final NetworkProxyTask task = new NetworkProxyTask(EncContext.builder(comm).build(), 1);
        step(task);
        assertThat(step(task)).isEqualTo(RunState.DONE);
    }

    @Test
    void blocksRunInOrderAndAStreamIsStoppedAfterTheSwitch() {
        final FifoSet two = new FifoSet(new NetOpsInfo[2], new NetSrcAddr[0], new NetDestAddr[0]);
        final NetworkProxyTask task = new NetworkProxyTask(EncContext.builder(comm)
            .block(0, 11, two).block(0, 12, ProxyRig.EMPTY).block(0, 13, two).build(), 1);
        proxy.otherwise(DONE);
        assertThat(step(task)).isEqualTo(RunState.PROGRESSING);
        assertThat(task.numNetOps(0)).isEqualTo(4);
        assertThat(step(task)).isEqualTo(RunState.PROGRESSING);
        assertThat(step(task)).isEqualTo(RunState.PROGRESSING);
        assertThat(step(task)).isEqualTo(RunState.DONE);
        assertThat(proxy.calls()).isEqualTo(List.of("start 0/11", "start 0/12", "start 0/13",
            "progress 0/11", "progress 0/12", "stop 0", "progress 0/13", "stop 0"));
    }

    @Test
    void fourStreamsAreIdleOnlyTogetherAndDoneOnlyTogether() {
        final EncContext.Builder builder = EncContext.builder(comm);
        for (int stream = 0; stream < 4; stream++) {
            builder.block(stream, 5, ProxyRig.EMPTY);
        }
        final NetworkProxyTask task = new NetworkProxyTask(builder.build(), 1);
        step(task);
        assertThat(step(task)).as("all idle").isEqualTo(RunState.IDLE);
        proxy.answer(2, 5, 0);
        assertThat(step(task)).as("one moved").isEqualTo(RunState.PROGRESSING);
        proxy.answer(0, 5, DONE).answer(1, 5, IDLE | DONE).answer(3, 5, DONE | IDLE);
        assertThat(step(task)).as("one is left, and one that ended moved").isEqualTo(RunState.PROGRESSING);
        assertThat(step(task)).as("the one that is left is idle").isEqualTo(RunState.IDLE);
        final long before = proxy.calls().stream().filter(call -> !call.equals("progress 2/5")).count();
        proxy.answer(2, 5, DONE);
        assertThat(step(task)).isEqualTo(RunState.DONE);
        assertThat(proxy.calls().stream().filter(call -> !call.equals("progress 2/5")).count())
            .as("streams that are done are left alone: the far side would begin another run").isEqualTo(before);
    }

    @Test
    void aStreamThatIsLeftOutIsNoObstacle() {
        final NetworkProxyTask task = new NetworkProxyTask(EncContext.builder(comm).block(2, 0, ProxyRig.EMPTY).build(), 1);
        proxy.answer(2, 0, DONE);
        step(task);
        assertThat(step(task)).isEqualTo(RunState.DONE);
        assertThat(proxy.calls()).containsExactly("start 2/0", "progress 2/0");
    }

    @ParameterizedTest
    @ValueSource(strings = {"start 0/2", "progress 0/1", "progress 0/2", "stop 0"})
    void aFailingCallEndsTheTaskWithItsCause(final String call) {
        proxy.otherwise(DONE).fail(call, ScriptedProxy.failure("broken " + call));
        final NetworkProxyTask task = new NetworkProxyTask(
            EncContext.builder(comm).block(0, 1, ProxyRig.EMPTY).block(0, 2, ProxyRig.EMPTY).build(), 1);
        for (int i = 0; i < 3 && step(task) != RunState.DONE; i++) {
            Thread.onSpinWait();
        }
        assertThat(task.state().runState()).isEqualTo(RunState.DONE);
        assertThat(task.state().progressStatus()).isEqualTo(NrtStatus.NETWORK_PROXY_FAILURE);
        assertThat(task.state().progressStatus().code()).isEqualTo(1206);
        assertThat(task.state().failure()).hasMessageContaining("broken " + call).hasMessageContaining("nec_dev 0");
        assertThat(task.state().failure().getCause()).isInstanceOf(NrtException.class);
    }

    @Test
    void aStartThatFailsHalfwayGivesUpWhatWasStartedBeforeIt() {
        proxy.fail("start 1/4", ScriptedProxy.failure("malformed"));
        final EncContext ctx = EncContext.builder(comm).block(0, 1, ProxyRig.EMPTY).block(0, 2, ProxyRig.EMPTY)
            .block(1, 3, ProxyRig.EMPTY).block(1, 4, ProxyRig.EMPTY).block(1, 5, ProxyRig.EMPTY).build();
        final NetworkProxyTask task = new NetworkProxyTask(ctx, 1);
        assertThat(step(task)).isEqualTo(RunState.DONE);
        assertThat(proxy.calls()).containsExactly("start 0/1", "start 0/2", "start 1/3", "start 1/4",
            "abandon 0/1", "abandon 0/2", "abandon 1/3");
    }

    @Test
    void giveUpsThatFailDoNotHideWhyTheStartFailed() {
        proxy.fail("start 0/3", ScriptedProxy.failure("malformed")).fail("abandon 0/1", ScriptedProxy.failure("nor that"));
        final NetworkProxyTask task = new NetworkProxyTask(EncContext.builder(comm).block(0, 1, ProxyRig.EMPTY)
            .block(0, 2, ProxyRig.EMPTY).block(0, 3, ProxyRig.EMPTY).build(), 1);
        assertThat(step(task)).isEqualTo(RunState.DONE);
        assertThat(task.state().failure()).hasMessageContaining("malformed");
        assertThat(proxy.calls()).endsWith("abandon 0/1", "abandon 0/2");
    }

    @Test
    void anUnexpectedExceptionOfTheSeamIsANetworkFailureToo() {
        proxy.fail("progress 0/0", new IllegalStateException("surprise"));
        final NetworkProxyTask task = new NetworkProxyTask(ProxyRig.context(comm).build(), 1);
        step(task);
        assertThat(step(task)).isEqualTo(RunState.DONE);
        assertThat(task.state().progressStatus()).isEqualTo(NrtStatus.NETWORK_PROXY_FAILURE);
    }

    @Test
    void aDoneTaskThatIsSteppedStaysAsItIs() {
        final NetworkProxyTask task = new NetworkProxyTask(ProxyRig.context(comm).build(), 1);
        proxy.otherwise(DONE);
        step(task);
        step(task);
        final int calls = proxy.calls().size();
        assertThat(step(task)).isEqualTo(RunState.DONE);
        assertThat(task.state().progressStatus()).isEqualTo(NrtStatus.SUCCESS);
        assertThat(proxy.calls()).hasSize(calls);
    }

    @Test
    void twoExecutionsOfOneContextTakeTurns() {
        final EncContext ctx = ProxyRig.context(comm).build();
        comm.queue().append(new NetworkProxyTask(ctx, 1));
        comm.queue().append(new NetworkProxyTask(ctx, 2));
        comm.queue().doWork();
        comm.queue().doWork();
        assertThat(proxy.calls()).containsExactly("start 0/0", "progress 0/0");
        proxy.answer(0, 0, DONE);
        comm.queue().doWork();
        assertThat(proxy.calls()).as("the second starts when the first is dropped")
            .containsExactly("start 0/0", "progress 0/0", "progress 0/0", "start 0/0");
        proxy.answer(0, 0, DONE);
        comm.queue().doWork();
        final TaskStatus status = new TaskStatus();
        assertThat(ProxyTasks.checkNetworkTaskStatus(ctx, status)).isEqualTo(NrtStatus.SUCCESS);
        assertThat(status.done()).isTrue();
        ProxyTasks.checkNetworkTaskStatus(ctx, status);
        assertThat(status.done()).isTrue();
        assertThat(ProxyTasks.checkNetworkTaskStatus(ctx, status)).isEqualTo(NrtStatus.FAILURE);
    }
}
