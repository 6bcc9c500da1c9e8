package io.nrt4j.proxy;

import static org.assertj.core.api.Assertions.assertThat;

import io.nrt4j.NrtStatus;
import io.nrt4j.net.NetworkProxy;
import io.nrt4j.testing.Await;
import io.nrt4j.testing.Spin;
import io.nrt4j.testing.Stopwatch;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The worker's thread: its name, its sleep, its wake-ups, its end. */
@Timeout(value = 300, unit = TimeUnit.SECONDS) // a hundred thousand wake-ups take their time on a busy machine
class WorkerTest {
    private final ProxyRig rig = ProxyRig.threaded();

    @AfterEach
    void close() {
        rig.close();
    }

    private static String commOf(final int tid) throws Exception {
        return Files.readString(Path.of("/proc/self/task/" + tid + "/comm")).strip();
    }

    private static int awaitTid(final ProxyQueue queue) {
        Await.until(ProxyRig.LIMIT, "the worker runs", () -> queue.tid() != 0);
        return queue.tid();
    }

    @Test
    void theSystemsTaskListShowsItsName() throws Exception {
        final GlobalComm comm = rig.comm(0, new ScriptedProxy());
        final int tid = awaitTid(comm.queue());
        assertThat(commOf(tid)).isEqualTo("proxy-" + tid);
        comm.free();
        Await.until(ProxyRig.LIMIT, "the thread is gone", () -> !Files.exists(Path.of("/proc/self/task/" + tid)));
    }

    @Test
    void itRunsOnTheProcessorsThatItIsGiven() throws Exception {
        final List<String> mine = allowed("/proc/thread-self/status");
        rig.with("NEURON_RT_LOW_LATENCY_TASKS_CPU_AFFINITY", "0x1");
        final int tid = awaitTid(rig.comm(0, new ScriptedProxy()).queue());
        assertThat(allowed("/proc/self/task/" + tid + "/status").get(0)).matches("Cpus_allowed_list:\\s+0");
        assertThat(allowed("/proc/thread-self/status")).as("of the thread that set it up").isEqualTo(mine);
    }

    private static List<String> allowed(final String file) throws Exception {
        return Files.readAllLines(Path.of(file)).stream().filter(line -> line.startsWith("Cpus_allowed_list")).toList();
    }

    @Test
    void processorsThatAreNotThereAreNoObstacle() {
        rig.with("NEURON_RT_LOW_LATENCY_TASKS_CPU_AFFINITY", "1023");
        final GlobalComm comm = rig.comm(0, new ScriptedProxy().otherwise(NetworkProxy.DONE));
        final EncContext ctx = ProxyRig.context(comm).build();
        ProxyTasks.enqueueProxyTasks(ctx, 1);
        assertThat(ProxyRig.consume(ctx, TaskType.NETWORK, new TaskStatus())).isEqualTo(NrtStatus.SUCCESS);
    }

    @Test
    void anAppendDoesNotWaitForAStepAndNeitherDoesAPoll() throws Exception {
        final GlobalComm comm = rig.comm(0, new ScriptedProxy());
        final EncContext ctx = ProxyRig.context(comm).build();
        final CountDownLatch inStep = new CountDownLatch(1);
        final CountDownLatch goOn = new CountDownLatch(1);
        comm.queue().append(new StubTask(ctx, TaskType.NETWORK, state -> {
            inStep.countDown();
            awaitQuietly(goOn);
            return RunState.DONE;
        }));
        assertThat(inStep.await(20, TimeUnit.SECONDS)).isTrue();
        // The step comes back only after this: an append that waited for it would never return.
        final EncContext other = ProxyRig.context(comm).build();
        comm.queue().append(StubTask.doneAfter(other, 1));
        final TaskStatus status = new TaskStatus();
        assertThat(ProxyTasks.checkNetworkTaskStatus(ctx, status)).isEqualTo(NrtStatus.SUCCESS);
        assertThat(status.done()).isFalse();
        goOn.countDown();
        assertThat(ProxyRig.consume(other, TaskType.NETWORK, status)).isEqualTo(NrtStatus.SUCCESS);
    }

    private static void awaitQuietly(final CountDownLatch latch) {
        try {
            latch.await(30, TimeUnit.SECONDS);
        } catch (final InterruptedException ex) {
            Thread.currentThread().interrupt();
        }
    }

    @Test
    void itIsJoinedWhileAStepRuns() throws Exception {
        final GlobalComm comm = rig.comm(0, new ScriptedProxy());
        final CountDownLatch inStep = new CountDownLatch(1);
        comm.queue().append(new StubTask(ProxyRig.context(comm).build(), TaskType.NETWORK, state -> {
            inStep.countDown();
            LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(300));
            return RunState.IDLE;
        }));
        assertThat(inStep.await(20, TimeUnit.SECONDS)).isTrue();
        final Stopwatch watch = Stopwatch.start();
        comm.free();
        assertThat(watch.elapsed()).isLessThan(Duration.ofSeconds(2));
        assertThat(comm.queue().isAlive()).isFalse();
    }

    @Test
    void aStepThatNeverComesBackDoesNotHoldTheFreeForEver() throws Exception {
        final GlobalComm comm = rig.comm(0, new ScriptedProxy());
        final CountDownLatch inStep = new CountDownLatch(1);
        final CountDownLatch goOn = new CountDownLatch(1);
        comm.queue().append(new StubTask(ProxyRig.context(comm).build(), TaskType.NETWORK, state -> {
            inStep.countDown();
            awaitQuietly(goOn);
            return RunState.IDLE;
        }));
        assertThat(inStep.await(20, TimeUnit.SECONDS)).isTrue();
        final Stopwatch watch = Stopwatch.start();
        comm.free(); // the step would come back after 30 s
        assertThat(watch.elapsed()).isLessThan(Duration.ofSeconds(15));
        assertThat(rig.registry.size()).isZero();
        goOn.countDown();
        Await.until(ProxyRig.LIMIT, "the worker ends after all", () -> !comm.queue().isAlive());
    }

    @Test
    void theLastWordOfTheDeviceReleasesATask() {
        final ScriptedProxy proxy = new ScriptedProxy().otherwise(NetworkProxy.DONE);
        final GlobalComm comm = rig.comm(0, proxy);
        final EncContext ctx = ProxyRig.context(comm).trigger(new long[] {rig.address(0), rig.address(1), 0, 1}, 2).build();
        ProxyTasks.enqueueProxyTasks(ctx, 1);
        Await.until(ProxyRig.LIMIT, "the block is started", () -> proxy.calls().contains("start 0/0"));
        rig.word(1).store(0x7FFFFFFF);
        final TaskStatus status = new TaskStatus();
        assertThat(ProxyTasks.consumeTaskStatus(ctx, TaskType.NETWORK, status, ProxyRig.LIMIT, Duration.ofMillis(50)))
            .isEqualTo(NrtStatus.TIMEOUT);
        assertThat(proxy.calls()).containsExactly("start 0/0");
        rig.word(0).store(0x80000000);
        assertThat(ProxyRig.consume(ctx, TaskType.NETWORK, status)).isEqualTo(NrtStatus.SUCCESS);
        assertThat(ProxyRig.consume(ctx, TaskType.BARRIER, status)).isEqualTo(NrtStatus.SUCCESS);
    }

    @Test
    @Tag("slow")
    void noTaskAndNoWakeUpIsLostInAHundredThousandCycles() {
        final GlobalComm comm = rig.comm(0, new ScriptedProxy());
        final EncContext ctx = ProxyRig.context(comm).build();
        final Random random = new Random(7);
        final TaskStatus status = new TaskStatus();
        for (int cycle = 0; cycle < 100_000; cycle++) {
            comm.queue().append(StubTask.doneAfter(ctx, 1 + random.nextInt(3)));
            final long startNs = System.nanoTime();
            int polls = 0;
            do {
                assertThat(ProxyTasks.checkNetworkTaskStatus(ctx, status)).isEqualTo(NrtStatus.SUCCESS);
                assertThat(System.nanoTime() - startNs).as("cycle %d", cycle).isLessThan(ProxyRig.LIMIT.toNanos());
                Spin.pause(polls++);
            } while (!status.done());
            // Now the worker is anywhere between dropping the task and its sleep: meet it there.
            final int gap = random.nextInt(2000);
            for (int i = 0; i < gap; i++) {
                Thread.onSpinWait();
            }
        }
        assertThat(comm.queue().publishedStates()).isZero();
    }

    @Test
    @Tag("slow")
    void anEmptyQueueUsesNoProcessor() {
        final GlobalComm comm = rig.comm(0, new ScriptedProxy().otherwise(NetworkProxy.DONE));
        final EncContext ctx = ProxyRig.context(comm).build();
        ProxyTasks.enqueueProxyTasks(ctx, 1);
        ProxyRig.consume(ctx, TaskType.NETWORK, new TaskStatus());
        ProxyRig.consume(ctx, TaskType.BARRIER, new TaskStatus());
        final long id = Arrays.stream(ManagementFactory.getThreadMXBean().dumpAllThreads(false, false))
            .filter(info -> info.getThreadName().equals("proxy-" + comm.queue().tid())).findFirst().orElseThrow().getThreadId();
        Await.until(ProxyRig.LIMIT, "the worker sleeps", () ->
            ManagementFactory.getThreadMXBean().getThreadInfo(id).getThreadState() == Thread.State.WAITING);
        final long seconds = Long.getLong("nrt4j.test.emptyQueueSeconds", 5);
        final long before = ManagementFactory.getThreadMXBean().getThreadCpuTime(id);
        assertThat(before).as("processor time is measured at all").isPositive();
        final long endNs = System.nanoTime() + TimeUnit.SECONDS.toNanos(seconds);
        while (System.nanoTime() < endNs) {
            LockSupport.parkNanos(endNs - System.nanoTime());
        }
        final long usedNs = ManagementFactory.getThreadMXBean().getThreadCpuTime(id) - before;
        System.out.println("an empty queue's worker used " + usedNs + " ns of processor time in " + seconds + " s");
        assertThat(usedNs).isLessThan(TimeUnit.MILLISECONDS.toNanos(1));
    }
}
