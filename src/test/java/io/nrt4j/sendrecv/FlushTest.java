package io.nrt4j.sendrecv;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nrt4j.NrtException;
import io.nrt4j.NrtSetting;
import io.nrt4j.NrtStatus;
import io.nrt4j.net.NetTransport;
import io.nrt4j.net.loopback.FaultPlan;
import io.nrt4j.net.loopback.FaultPlan.Operation;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The flush and its connection: what a transport throws, an interrupted caller, and an init that fails half-way. */
class FlushTest {
    private static final Duration WAIT = Duration.ofMillis(400);

    private final EngineRig rig = new EngineRig();
    private final HookedTransport hooked = new HookedTransport();

    @AfterEach
    void closeAll() {
        hooked.unhook();
        rig.close();
    }

    private NrtAsyncSendRecv hookedEngine(final String flushMs) {
        return rig.add(new NrtAsyncSendRecv(rig.config(builder -> builder.set(NrtSetting.FLUSH_TIMEOUT_MS, flushMs)), hooked));
    }

    @ParameterizedTest
    @ValueSource(strings = {"iflush", "test"})
    void whateverATransportThrowsIsAnAnswer(final String call) {
        final NrtAsyncSendRecv a = hookedEngine("5000");
        EngineRig.init(a, 3);
        hooked.before(call, () -> {
            throw new IllegalStateException("a bug in " + call);
        });
        assertThat(a.flush(3)).isEqualTo(NrtStatus.FAILURE);
        assertThat(a.lastError()).matches("flush of lnc 3 failed after \\d+ ms: .*a bug in " + call);
        hooked.unhook();
        assertThat(a.flush(3)).as(a.lastError()).isEqualTo(NrtStatus.SUCCESS);
    }

    /** A fence that was given up is asked for by the next flush, which must not end with the other's failure. */
    @Test
    void aFlushThatHadGivenUpMayFailAsItLikes() {
        final AtomicBoolean pending = new AtomicBoolean(true);
        final AtomicBoolean failing = new AtomicBoolean();
        hooked.before("test", () -> {
            if (failing.getAndSet(false)) {
                throw new IllegalStateException("a late bug");
            }
        });
        final FlushFence fence = FlushFence.open(new LockedNet(neverDone(pending), 3), 3, System.nanoTime() + TimeUnit.SECONDS.toNanos(5));
        assertThatThrownBy(() -> fence.flush(() -> null, System.nanoTime() + 1)).isInstanceOf(NrtException.class)
            .satisfies(ex -> assertThat(((NrtException) ex).status()).isEqualTo(NrtStatus.TIMEOUT));
        pending.set(false);
        failing.set(true);
        fence.flush(() -> null, System.nanoTime() + TimeUnit.SECONDS.toNanos(5));
        assertThat(failing).as("the late one was asked for").isFalse();
        fence.close();
    }

    /** The hooked transport, whose tests answer that nothing is done while this is so. */
    private NetTransport neverDone(final AtomicBoolean pending) {
        final NetTransport real = hooked.create(null);
        return (NetTransport) Proxy.newProxyInstance(getClass().getClassLoader(), new Class<?>[] {NetTransport.class},
            (proxy, method, arguments) -> {
                if (pending.get() && method.getName().equals("test")) {
                    return NetTransport.PENDING;
                }
                try {
                    return method.invoke(real, arguments);
                } catch (final InvocationTargetException ex) {
                    throw ex.getCause();
                }
            });
    }

    /** Processor time that the calling thread used, in a wait that must have lasted. */
    private static long cpuNsOf(final Runnable waiting) {
        final ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        final long startNs = System.nanoTime();
        final long before = threads.getCurrentThreadCpuTime();
        waiting.run();
        final long used = threads.getCurrentThreadCpuTime() - before;
        assertThat(System.nanoTime() - startNs).isGreaterThanOrEqualTo(WAIT.toNanos());
        return used;
    }

    @Test
    void anInterruptedCallerWaitsAsOthersDoAndStaysInterrupted() {
        final FaultPlan plan = new FaultPlan();
        final NrtAsyncSendRecv a = rig.engine(builder -> builder.set(NrtSetting.FLUSH_TIMEOUT_MS, Long.toString(WAIT.toMillis()))
            .set(NrtSetting.INIT_TIMEOUT_MS, Long.toString(WAIT.toMillis())), plan);
        EngineRig.init(a, 0);
        plan.neverComplete(Operation.IFLUSH, 2);
        final NrtStatus[] status = new NrtStatus[1];
        final long calm = cpuNsOf(() -> status[0] = a.flush(0));
        assertThat(status[0]).isEqualTo(NrtStatus.TIMEOUT);
        final long limit = Math.max(3 * calm, WAIT.toNanos() / 3);
        Thread.currentThread().interrupt();
        final long interrupted = cpuNsOf(() -> status[0] = a.flush(0));
        assertThat(Thread.interrupted()).as("the interrupt is the caller's").isTrue();
        assertThat(status[0]).isEqualTo(NrtStatus.TIMEOUT);
        assertThat(interrupted).as("processor time of an interrupted flush; %s ns without", calm).isLessThan(limit);
        plan.notYetUntilReleased(Operation.ACCEPT);
        Thread.currentThread().interrupt();
        final long init = cpuNsOf(() -> status[0] = a.init(1));
        assertThat(Thread.interrupted()).as("the interrupt is the caller's").isTrue();
        assertThat(status[0]).isEqualTo(NrtStatus.FAILURE);
        assertThat(a.lastError()).contains("could not connect to itself");
        assertThat(init).as("processor time of an interrupted init").isLessThan(limit);
        plan.releaseAll();
    }

    /** The first cause is told, whatever else goes wrong while what was opened is closed, and the rest is closed all the same. */
    @Test
    void anInitThatFailsHalfWayClosesTheRestAndKeepsItsCause() {
        hooked.before("regMr", () -> {
            throw new NrtException(NrtStatus.RESOURCE, "no memory can be registered");
        });
        for (final String call : new String[] {"closeSend", "closeListen"}) {
            hooked.before(call, () -> {
                throw new IllegalStateException("no " + call);
            });
        }
        final LockedNet net = new LockedNet(hooked.create(null), 0);
        assertThatThrownBy(() -> FlushFence.open(net, 0, System.nanoTime() + TimeUnit.SECONDS.toNanos(5)))
            .isInstanceOf(NrtException.class).hasMessageContaining("flush buffer of lnc 0").hasMessageContaining("no memory can be registered")
            .satisfies(ex -> assertThat(((NrtException) ex).status()).isEqualTo(NrtStatus.RESOURCE))
            .satisfies(ex -> assertThat(ex.getSuppressed()).extracting(Throwable::getMessage).contains("no closeSend"));
        assertThat(hooked.real().openComms()).as("the receiving end is closed").isEqualTo(1);
        hooked.unhook();
        hooked.real().close();
    }

    @Test
    void aConnectThatCannotBeAbandonedHidesNothing() {
        hooked.before("connect", () -> {
            throw new NrtException(NrtStatus.FAILURE, "no interface");
        });
        hooked.before("abandonConnect", () -> {
            throw new IllegalStateException("nothing to abandon");
        });
        final NrtAsyncSendRecv a = hookedEngine("5000");
        assertThat(a.init(0)).isEqualTo(NrtStatus.FAILURE);
        assertThat(a.lastError()).contains("init of lnc 0").contains("no interface").doesNotContain("abandon");
        assertThat(hooked.real().openListeners()).isZero();
    }
}
