package io.nrt4j.proxy;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nrt4j.NrtConfig;
import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.net.NetworkProxy;
import io.nrt4j.testing.Await;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** One queue and one worker a group, from the first communicator to the last. */
@Timeout(value = 200, unit = TimeUnit.SECONDS)
class LifeCycleTest {
    private final ProxyRig rig = ProxyRig.threaded();

    @AfterEach
    void close() {
        rig.close();
    }

    private static NetworkProxy done() {
        return new ScriptedProxy().otherwise(NetworkProxy.DONE);
    }

    /** Workers of these groups that the system's own list of this process's tasks shows. */
    private static Set<Integer> inTaskList(final GlobalComm... comms) {
        final Set<Integer> found = new HashSet<>();
        for (final GlobalComm comm : comms) {
            final int tid = comm.queue().tid();
            try {
                if (tid != 0 && Files.readString(Path.of("/proc/self/task/" + tid + "/comm")).strip().equals("proxy-" + tid)) {
                    found.add(tid);
                }
            } catch (final IOException ex) {
                // No such thread any more.
                if (Files.exists(Path.of("/proc/self/task/" + tid))) {
                    throw new UncheckedIOException(ex);
                }
            }
        }
        return found;
    }

    @Test
    void twoGroupsOfFourCommunicatorsFromBeginningToEnd() {
        rig.with("NEURON_RT_RANKS_PER_NETWORK_PROXY", "4");
        final GlobalComm[] comms = new GlobalComm[8];
        for (int i = 0; i < 8; i++) {
            comms[i] = rig.comm(i, done());
            assertThat(comms[i].gid()).isEqualTo(i / 4);
            assertThat(rig.registry.users(i / 4)).isEqualTo(i % 4 + 1);
            assertThat(comms[i].queue()).isSameAs(comms[i / 4 * 4].queue());
        }
        assertThat(rig.registry.size()).isEqualTo(2);
        assertThat(rig.workers).as("threads that were ever started").hasSize(2);
        Await.until(ProxyRig.LIMIT, "both workers run", () -> inTaskList(comms).size() == 2);
        final TaskStatus status = new TaskStatus();
        for (final GlobalComm comm : comms) {
            final EncContext ctx = ProxyRig.context(comm).build();
            ProxyTasks.enqueueProxyTasks(ctx, 1);
            assertThat(ProxyRig.consume(ctx, TaskType.NETWORK, status)).isEqualTo(NrtStatus.SUCCESS);
            assertThat(ProxyRig.consume(ctx, TaskType.BARRIER, status)).isEqualTo(NrtStatus.SUCCESS);
        }
        for (final int i : new int[] {2, 0, 5, 3}) {
            comms[i].free();
        }
        assertThat(inTaskList(comms)).hasSize(2);
        comms[1].free();
        assertThat(rig.registry.size()).isEqualTo(1);
        assertThat(comms[0].queue().isAlive()).isFalse();
        assertThat(comms[4].queue().isAlive()).isTrue();
        for (final int i : new int[] {7, 4, 6}) {
            final EncContext ctx = ProxyRig.context(comms[i]).build();
            ProxyTasks.enqueueProxyTasks(ctx, 2);
            assertThat(ProxyRig.consume(ctx, TaskType.NETWORK, status)).isEqualTo(NrtStatus.SUCCESS);
            comms[i].free();
        }
        assertThat(rig.registry.size()).isZero();
        Await.until(ProxyRig.LIMIT, "no worker is left", () -> inTaskList(comms).isEmpty());
        final GlobalComm again = rig.comm(3, done());
        assertThat(again.queue()).isNotSameAs(comms[3].queue());
        assertThat(rig.workers).hasSize(3);
    }

    @Test
    void aSecondFreeIsAClearErrorAndTakesNothingFromTheOthers() {
        rig.with("NEURON_RT_RANKS_PER_NETWORK_PROXY", "2");
        final GlobalComm first = rig.comm(0, done());
        final GlobalComm second = rig.comm(1, done());
        first.free();
        assertThatThrownBy(first::free).isInstanceOfSatisfying(NrtException.class,
            ex -> assertThat(ex.status()).isEqualTo(NrtStatus.INVALID_HANDLE)).hasMessageContaining("freed before");
        first.close();
        assertThat(rig.registry.users(0)).isEqualTo(1);
        assertThat(second.queue().isAlive()).isTrue();
        final EncContext ctx = ProxyRig.context(first).build();
        assertThatThrownBy(() -> ProxyTasks.enqueueProxyTasks(ctx, 1)).isInstanceOf(NrtException.class);
        assertThat(ProxyTasks.checkNetworkTaskStatus(ctx, new TaskStatus())).isEqualTo(NrtStatus.FAILURE);
    }

    @Test
    void aQueueIsNotReleasedMoreOftenThanAcquired() {
        final NrtConfig config = NrtConfig.builder(Map.of(), Map.of()).build();
        final ProxyQueue queue = rig.registry.acquire(9, config);
        rig.registry.release(queue);
        assertThatThrownBy(() -> rig.registry.release(queue)).isInstanceOf(NrtException.class);
    }

    @Test
    void aWorkerThatCannotStartLeavesNothingBehind() {
        final AtomicInteger attempts = new AtomicInteger();
        final SharedProxyQueues registry = new SharedProxyQueues(worker -> {
            if (attempts.getAndIncrement() == 0) {
                throw new OutOfMemoryError("unable to create native thread");
            }
            worker.start();
        });
        final NrtConfig config = NrtConfig.builder(Map.of(), Map.of()).build();
        assertThatThrownBy(() -> GlobalComm.setup(registry, config, 0, 0, done(), 1, ProxyRig.alone()))
            .isInstanceOfSatisfying(NrtException.class, ex -> assertThat(ex.status()).isEqualTo(NrtStatus.RESOURCE))
            .hasMessageContaining("unable to create native thread");
        assertThat(registry.size()).isZero();
        try (GlobalComm comm = GlobalComm.setup(registry, config, 0, 0, done(), 1, ProxyRig.alone())) {
            assertThat(comm.queue().isAlive()).isTrue();
        }
        assertThat(registry.size()).isZero();
    }

    @Test
    void oneWorkerAGroupWhateverTheOrderOfSetUpAndFreeByManyThreads() throws Exception {
        rig.with("NEURON_RT_RANKS_PER_NETWORK_PROXY", "64");
        final int threads = 6;
        final CyclicBarrier start = new CyclicBarrier(threads);
        final ExecutorService pool = Executors.newFixedThreadPool(threads);
        final List<Future<Void>> results = new ArrayList<>();
        final Set<ProxyQueue> alive = Collections.synchronizedSet(new HashSet<>());
        for (int t = 0; t < threads; t++) {
            final int mine = t;
            final Callable<Void> work = () -> {
                start.await(10, TimeUnit.SECONDS);
                final Random random = new Random(mine);
                for (int round = 0; round < 100; round++) {
                    final GlobalComm comm = rig.comm(mine, mine, new ScriptedProxy(), ProxyRig.alone());
                    alive.add(comm.queue());
                    // A queue of the group that lives beside ours would be a second worker.
                    synchronized (alive) {
                        assertThat(alive.stream().filter(queue -> queue != comm.queue() && queue.isAlive())).isEmpty();
                    }
                    ProxyTasks.enqueueProxyTasks(ProxyRig.context(comm).build(), round);
                    if (random.nextBoolean()) {
                        Thread.yield();
                    }
                    comm.free();
                }
                return null;
            };
            results.add(pool.submit(work));
        }
        for (final Future<Void> result : results) {
            result.get(50, TimeUnit.SECONDS);
        }
        pool.shutdown();
        assertThat(rig.registry.size()).isZero();
        assertThat(alive).noneMatch(ProxyQueue::isAlive);
    }

    @Test
    void concurrentFreesOfOneCommunicatorSucceedOnce() throws Exception {
        rig.with("NEURON_RT_RANKS_PER_NETWORK_PROXY", "2");
        final GlobalComm other = rig.comm(1, done());
        for (int round = 0; round < 50; round++) {
            final GlobalComm comm = rig.comm(0, new ScriptedProxy());
            ProxyTasks.enqueueProxyTasks(ProxyRig.context(comm).build(), round);
            final ExecutorService pool = Executors.newFixedThreadPool(3);
            final CyclicBarrier start = new CyclicBarrier(3);
            final AtomicInteger succeeded = new AtomicInteger();
            final List<Future<?>> results = new ArrayList<>();
            for (int t = 0; t < 3; t++) {
                results.add(pool.submit(() -> {
                    start.await(10, TimeUnit.SECONDS);
                    try {
                        comm.free();
                        succeeded.incrementAndGet();
                    } catch (final NrtException ex) {
                        assertThat(ex.status()).isEqualTo(NrtStatus.INVALID_HANDLE);
                    }
                    return null;
                }));
            }
            for (final Future<?> result : results) {
                result.get(20, TimeUnit.SECONDS);
            }
            pool.shutdown();
            assertThat(succeeded).hasValue(1);
            assertThat(rig.registry.users(0)).isEqualTo(1);
        }
        assertThat(other.queue().isAlive()).isTrue();
    }

    @Test
    void theProcessHasARegistryOfItsOwn() {
        assertThat(SharedProxyQueues.processWide()).isSameAs(SharedProxyQueues.processWide()).isNotSameAs(rig.registry);
    }
}
