package io.nrt4j.proxy;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.management.ThreadMXBean;
import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.net.NetworkProxy;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Producers, passes and polls, the passes driven by hand. */
class ProxyQueueTest {
    private final ProxyRig rig = ProxyRig.byHand().with("NEURON_RT_RANKS_PER_NETWORK_PROXY", "4");
    private final ScriptedProxy proxy = new ScriptedProxy();
    private final GlobalComm comm = rig.comm(0, proxy);
    private final ProxyQueue queue = comm.queue();
    private final TaskStatus status = new TaskStatus();

    @AfterEach
    void close() {
        rig.close();
    }

    @Test
    void theStateIsPublishedBeforeTheFirstStep() {
        final EncContext ctx = ProxyRig.context(comm).build();
        ProxyTasks.enqueueProxyTasks(ctx, 1);
        assertThat(ProxyTasks.checkNetworkTaskStatus(ctx, status)).isEqualTo(NrtStatus.SUCCESS);
        assertThat(status.done()).isFalse();
        assertThat(status.status()).isEqualTo(NrtStatus.SUCCESS);
        assertThat(ProxyTasks.checkBarrierTaskStatus(ctx, status)).isEqualTo(NrtStatus.SUCCESS);
        assertThat(proxy.calls()).isEmpty();
    }

    @Test
    void aPollMatchesContextAndKindAndForgetsWhatIsDone() {
        final EncContext ctx = ProxyRig.context(comm).build();
        final EncContext other = ProxyRig.context(comm).build();
        queue.append(StubTask.doneAfter(ctx, 1));
        assertThat(ProxyTasks.checkNetworkTaskStatus(other, status)).isEqualTo(NrtStatus.FAILURE);
        assertThat(ProxyTasks.checkBarrierTaskStatus(ctx, status)).isEqualTo(NrtStatus.FAILURE);
        queue.doWork();
        assertThat(queue.publishedStates()).as("done, but not polled").isEqualTo(1);
        assertThat(ProxyTasks.checkNetworkTaskStatus(ctx, status)).isEqualTo(NrtStatus.SUCCESS);
        assertThat(status.done()).isTrue();
        assertThat(queue.publishedStates()).isZero();
        assertThat(ProxyTasks.checkNetworkTaskStatus(ctx, status)).isEqualTo(NrtStatus.FAILURE);
    }

    @Test
    void theFirstOfSeveralIsPolledUntilItIsDone() {
        final EncContext ctx = ProxyRig.context(comm).build();
        queue.append(StubTask.doneAfter(ctx, 2));
        queue.append(StubTask.doneAfter(ctx, 1));
        queue.doWork();
        ProxyTasks.checkNetworkTaskStatus(ctx, status);
        assertThat(status.done()).as("the second is done, the first is not").isFalse();
        queue.doWork();
        ProxyTasks.checkNetworkTaskStatus(ctx, status);
        assertThat(status.done()).isTrue();
        ProxyTasks.checkNetworkTaskStatus(ctx, status);
        assertThat(status.done()).isTrue();
    }

    @Test
    void idleIsNoEnd() {
        final StubTask task = StubTask.doneAfter(ProxyRig.context(comm).build(), 1000);
        queue.append(task);
        for (int i = 1; i < 1000; i++) {
            assertThat(queue.doWork()).isZero();
            assertThat(task.steps()).as("one step a pass").isEqualTo(i);
        }
        assertThat(queue.doWork()).isEqualTo(1);
        assertThat(queue.doWork()).isZero();
        assertThat(task.steps()).isEqualTo(1000);
    }

    @Test
    void tasksAreSteppedByRankAndInOrderOfAppend() {
        final List<String> order = new ArrayList<>();
        final GlobalComm third = rig.comm(3, proxy);
        final GlobalComm second = rig.comm(2, proxy);
        assertThat(third.queue()).isSameAs(queue);
        final String[] names = {"3a", "0a", "2a", "0b", "3b"};
        for (final String name : names) {
            final GlobalComm of = name.startsWith("3") ? third : name.startsWith("2") ? second : comm;
            final int[] left = {name.equals("0a") ? 1 : 2};
            queue.append(new StubTask(ProxyRig.context(of).build(), TaskType.NETWORK, state -> {
                order.add(name);
                return --left[0] == 0 ? RunState.DONE : RunState.PROGRESSING;
            }));
        }
        queue.doWork();
        assertThat(order).containsExactly("0a", "0b", "2a", "3a", "3b");
        order.clear();
        queue.doWork();
        assertThat(order).as("0a is dropped").containsExactly("0b", "2a", "3a", "3b");
    }

    @Test
    void aTaskThatIsAppendedWhileAPassRunsIsTakenInTheNext() {
        final StubTask late = StubTask.doneAfter(ProxyRig.context(comm).build(), 1);
        queue.append(new StubTask(ProxyRig.context(comm).build(), TaskType.NETWORK, state -> {
            queue.append(late);
            return RunState.DONE;
        }));
        queue.doWork();
        assertThat(late.steps()).isZero();
        queue.doWork();
        assertThat(late.steps()).isEqualTo(1);
    }

    @Test
    void aStepThatThrowsEndsItsTaskAndNoOther() {
        final EncContext bad = ProxyRig.context(comm).build();
        final EncContext worse = ProxyRig.context(comm).build();
        final EncContext good = ProxyRig.context(comm).build();
        queue.append(new StubTask(bad, TaskType.NETWORK, state -> {
            throw new IllegalStateException("no step");
        }));
        queue.append(new StubTask(worse, TaskType.NETWORK, state -> {
            throw new AssertionError("an error");
        }));
        queue.append(StubTask.doneAfter(good, 2));
        queue.doWork();
        ProxyTasks.checkNetworkTaskStatus(bad, status);
        assertThat(status.done()).isTrue();
        assertThat(status.status()).isEqualTo(NrtStatus.FAILURE);
        assertThat(status.failure()).hasMessageContaining("no step");
        ProxyTasks.checkNetworkTaskStatus(worse, status);
        assertThat(status.failure()).hasMessageContaining("an error");
        ProxyTasks.checkNetworkTaskStatus(good, status);
        assertThat(status.done()).isFalse();
        queue.doWork();
        ProxyTasks.checkNetworkTaskStatus(good, status);
        assertThat(status.status()).isEqualTo(NrtStatus.SUCCESS);
        assertThat(status.done()).isTrue();
    }

    @Test
    void aFailureOfTheSeamIsPublishedOnceAndSiblingsRunOn() {
        final GlobalComm sibling = rig.comm(1, new ScriptedProxy().answer(0, 0, NetworkProxy.IDLE, NetworkProxy.DONE));
        final EncContext bad = ProxyRig.context(comm).build();
        final EncContext good = ProxyRig.context(sibling).build();
        proxy.fail("progress 0/0", ScriptedProxy.failure("cable cut"));
        ProxyTasks.enqueueProxyTasks(bad, 1);
        ProxyTasks.enqueueProxyTasks(good, 1);
        for (int i = 0; i < 4; i++) {
            queue.doWork();
        }
        assertThat(ProxyRig.consume(bad, TaskType.NETWORK, status)).isEqualTo(NrtStatus.NETWORK_PROXY_FAILURE);
        assertThat(status.failure()).hasMessageContaining("cable cut");
        assertThat(ProxyRig.consume(bad, TaskType.NETWORK, status)).as("a second time").isEqualTo(NrtStatus.FAILURE);
        assertThat(ProxyRig.consume(good, TaskType.NETWORK, status)).isEqualTo(NrtStatus.SUCCESS);
        assertThat(ProxyRig.consume(good, TaskType.BARRIER, status)).isEqualTo(NrtStatus.SUCCESS);
        assertThat(proxy.calls()).containsExactly("start 0/0", "progress 0/0");
    }

    @Test
    void freeingForgetsStatesFailsTasksAndRefusesNewOnes() {
        final GlobalComm going = rig.comm(1, new ScriptedProxy());
        final EncContext ctx = ProxyRig.context(going).build();
        final EncContext stays = ProxyRig.context(comm).build();
        final NetworkProxyTask running = new NetworkProxyTask(ctx, 1);
        queue.append(running);
        queue.append(new NetworkProxyTask(stays, 1));
        queue.doWork();
        final BarrierProxyTask queued = new BarrierProxyTask(ctx, 1);
        queue.append(queued);
        assertThat(queue.publishedStates()).isEqualTo(3);
        assertThat(queue.abandon(going, 0, java.util.concurrent.TimeUnit.MILLISECONDS)).as("needs a pass").isFalse();
        assertThat(queue.publishedStates()).isEqualTo(1);
        assertThat(ProxyTasks.checkNetworkTaskStatus(ctx, status)).isEqualTo(NrtStatus.FAILURE);
        queue.doWork();
        assertThat(running.state().runState()).isEqualTo(RunState.DONE);
        assertThat(running.state().progressStatus()).isEqualTo(NrtStatus.CLOSED);
        assertThat(queued.state().progressStatus()).isEqualTo(NrtStatus.CLOSED);
        assertThat(going.liveTasks()).isZero();
        assertThatThrownBy(() -> queue.append(new NetworkProxyTask(ctx, 2)))
            .isInstanceOfSatisfying(NrtException.class, ex -> assertThat(ex.status()).isEqualTo(NrtStatus.CLOSED));
        assertThat(queue.publishedStates()).isEqualTo(1);
        assertThat(ProxyTasks.checkNetworkTaskStatus(stays, status)).isEqualTo(NrtStatus.SUCCESS);
    }

    @Test
    void whatNobodyPollsGoesWithItsCommunicator() {
        final GlobalComm going = rig.comm(1, new ScriptedProxy().otherwise(NetworkProxy.DONE));
        for (int i = 0; i < 1000; i++) {
            ProxyTasks.enqueueProxyTasks(ProxyRig.context(going).build(), i);
        }
        queue.doWork();
        queue.doWork();
        queue.doWork();
        assertThat(queue.publishedStates()).isEqualTo(2000);
        going.free();
        assertThat(queue.publishedStates()).isZero();
    }

    @Test
    void idlePassesAllocateNothing() {
        final StubTask[] stubs = new StubTask[128];
        for (int i = 0; i < stubs.length; i++) {
            stubs[i] = new StubTask(ProxyRig.context(comm).build(), TaskType.NETWORK, state -> RunState.IDLE);
            queue.append(stubs[i]);
        }
        final GlobalComm real = rig.comm(1, new IdleProxy());
        for (int i = 0; i < 8; i++) {
            ProxyTasks.enqueueProxyTasks(ProxyRig.context(real).trigger(new long[] {rig.address(i)}, i % 2).build(), 1);
        }
        final ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        long least = Long.MAX_VALUE;
        for (int round = 0; round < 10; round++) {
            final long before = threads.getCurrentThreadAllocatedBytes();
            for (int i = 0; i < 1000; i++) {
                queue.doWork();
            }
            least = Math.min(least, threads.getCurrentThreadAllocatedBytes() - before);
        }
        assertThat(stubs[0].steps()).isEqualTo(10_000);
        assertThat(least).isZero();
    }

    /** A network side that never moves and allocates nothing. */
    private static final class IdleProxy implements NetworkProxy {
        @Override
        public void start(
            final long comm, final int stream, final int basicBlock, final io.nrt4j.net.NetOpsInfo[] operations,
            final io.nrt4j.net.NetSrcAddr[] sources, final io.nrt4j.net.NetDestAddr[] destinations) {
            // Nothing to know.
        }

        @Override
        public int progress(final long comm, final int stream, final int basicBlock) {
            return IDLE;
        }

        @Override
        public void stop(final long comm, final int stream) {
            // Nothing to forget.
        }
    }
}
