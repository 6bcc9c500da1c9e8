package io.nrt4j.proxy;

import static org.assertj.core.api.Assertions.assertThat;

import io.nrt4j.NrtStatus;
import io.nrt4j.net.NetworkProxy;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.LongStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The blocking consumer: outcomes, watchdog, limits. */
@Timeout(value = 120, unit = TimeUnit.SECONDS)
class ConsumeTest {
    private final ProxyRig rig = ProxyRig.threaded().with("NEURON_RT_RANKS_PER_NETWORK_PROXY", "2");
    private final ScriptedProxy proxy = new ScriptedProxy();
    private final GlobalComm comm = rig.comm(5, proxy);
    private final EncContext ctx = ProxyRig.context(comm).build();
    private final TaskStatus status = new TaskStatus();
    private final List<String> log = new ArrayList<>();

    @AfterEach
    void close() {
        rig.close();
    }

    private NrtStatus consume(final Duration watchdog, final Duration limit) {
        return ProxyTasks.consumeTaskStatus(ctx, TaskType.NETWORK, status, watchdog, limit, log::add);
    }

    @Test
    void aStallIsToldAtTheIntervalAndEndsAtTheLimit() {
        ProxyTasks.enqueueProxyTasks(ctx, 1);
        assertThat(consume(Duration.ofMillis(20), Duration.ofMillis(110))).isEqualTo(NrtStatus.TIMEOUT);
        assertThat(log).as("one at each interval, on a machine of any speed").isNotEmpty().allSatisfy(line ->
            assertThat(line).matches("\\[nec_dev 5 gid 2\\] Timeout exceeded: Waiting on proxy task type 1: [0-9]+ sec"));
        assertThat(status.done()).isFalse();
        proxy.otherwise(NetworkProxy.DONE);
        assertThat(consume(ProxyRig.LIMIT, ProxyRig.LIMIT)).as("it may be polled again").isEqualTo(NrtStatus.SUCCESS);
    }

    @Test
    void theSecondsAreCounted() {
        ProxyTasks.enqueueProxyTasks(ctx, 1);
        final long startNs = System.nanoTime();
        assertThat(consume(Duration.ofMillis(1000), Duration.ofMillis(1100))).isEqualTo(NrtStatus.TIMEOUT);
        final long seconds = TimeUnit.NANOSECONDS.toSeconds(System.nanoTime() - startNs);
        // One second, unless the machine stood still meanwhile.
        final List<String> possible = LongStream.rangeClosed(1, seconds)
            .mapToObj(each -> "[nec_dev 5 gid 2] Timeout exceeded: Waiting on proxy task type 1: " + each + " sec").toList();
        assertThat(log).isNotEmpty().isSubsetOf(possible);
    }

    @Test
    void aFailureIsToldWithItsNumber() {
        proxy.fail("progress 0/0", ScriptedProxy.failure("no link"));
        ProxyTasks.enqueueProxyTasks(ctx, 1);
        assertThat(consume(ProxyRig.LIMIT, ProxyRig.LIMIT)).isEqualTo(NrtStatus.NETWORK_PROXY_FAILURE);
        assertThat(log).containsExactly("[nec_dev 5 gid 2] Proxy failed to execute task, status = 1206");
        assertThat(status.failure()).hasMessageContaining("no link");
    }

    @Test
    void withoutATaskItFailsAtOnce() {
        assertThat(consume(ProxyRig.LIMIT, ProxyRig.LIMIT)).isEqualTo(NrtStatus.FAILURE);
        assertThat(log).isEmpty();
    }

    @Test
    void aFreeEndsTheWait() throws InterruptedException {
        ProxyTasks.enqueueProxyTasks(ctx, 1);
        final NrtStatus[] outcome = new NrtStatus[1];
        final Thread consumer = new Thread(() -> outcome[0] = consume(ProxyRig.LIMIT, ProxyRig.LIMIT));
        consumer.start();
        comm.free();
        consumer.join();
        assertThat(outcome[0]).isEqualTo(NrtStatus.FAILURE);
    }

    @Test
    void anInterruptIsKeptAndDoesNotEndTheWait() {
        ProxyTasks.enqueueProxyTasks(ctx, 1);
        Thread.currentThread().interrupt();
        assertThat(consume(ProxyRig.LIMIT, Duration.ofMillis(100))).isEqualTo(NrtStatus.TIMEOUT);
        assertThat(Thread.interrupted()).isTrue();
    }
}
