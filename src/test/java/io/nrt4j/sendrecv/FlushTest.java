package io.nrt4j.sendrecv;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nrt4j.NrtException;
import io.nrt4j.NrtSetting;
import io.nrt4j.NrtStatus;
import io.nrt4j.net.NetTransport;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The flush and its connection: what a transport throws, an interrupted caller, and an init that fails half-way. */
class FlushTest {
    private static final long PLENTY_NS = TimeUnit.SECONDS.toNanos(5);
    private static final long WAIT_NS = TimeUnit.MILLISECONDS.toNanos(400);
    /** 200 without a park, then one in 20 us at most. */
    private static final long MAX_LOOKS = 200 + WAIT_NS / 20_000 + 100;

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

    private static FlushFence open(final AlteredLoopback.Alteration alteration, final long withinNs) {
        return FlushFence.open(new LockedNet(new AlteredLoopback(alteration).create(null), 3), 3, System.nanoTime() + withinNs);
    }

    private static void flush(final FlushFence fence, final long withinNs) {
        fence.flush(() -> null, System.nanoTime() + withinNs);
    }

    private static void assertTimesOut(final Runnable waiting) {
        assertThatThrownBy(waiting::run).isInstanceOf(NrtException.class)
            .satisfies(ex -> assertThat(((NrtException) ex).status()).as(ex.toString()).isEqualTo(NrtStatus.TIMEOUT));
    }

    /** A fence that was given up is asked for by the next flush, which must not end with the other's failure. */
    @Test
    void aFlushThatHadGivenUpMayFailAsItLikes() {
        final AtomicBoolean pending = new AtomicBoolean(true);
        final AtomicBoolean failing = new AtomicBoolean(true);
        final FlushFence fence = open(call -> {
            if (!call.equals("test")) {
                return null;
            }
            if (pending.get()) {
                return NetTransport.PENDING;
            }
            if (failing.getAndSet(false)) {
                throw new IllegalStateException("a late bug");
            }
            return null;
        }, PLENTY_NS);
        assertTimesOut(() -> flush(fence, 1));
        pending.set(false);
        flush(fence, PLENTY_NS);
        assertThat(failing).as("the late one was asked for").isFalse();
        fence.close();
    }

    /** By the number of looks at the transport: each but the first few is at least a park of 20 us after the one before. */
    @Test
    void anInterruptedCallerWaitsAsOthersDoAndStaysInterrupted() {
        final AtomicLong looks = new AtomicLong();
        final AtomicBoolean accepting = new AtomicBoolean(true);
        final AlteredLoopback.Alteration nothingDone = call -> {
            final boolean look = call.equals("test") || call.equals("accept") && !accepting.get();
            if (look) {
                looks.incrementAndGet();
            }
            return look ? call.equals("test") ? NetTransport.PENDING : NetTransport.NOT_YET : null;
        };
        final FlushFence fence = open(nothingDone, PLENTY_NS);
        Thread.currentThread().interrupt();
        assertTimesOut(() -> flush(fence, WAIT_NS));
        assertThat(Thread.interrupted()).as("the interrupt is the caller's").isTrue();
        assertThat(looks.getAndSet(0)).as("looks of a flush").isBetween(1L, MAX_LOOKS);
        accepting.set(false);
        Thread.currentThread().interrupt();
        assertTimesOut(() -> open(nothingDone, WAIT_NS));
        assertThat(Thread.interrupted()).as("the interrupt is the caller's").isTrue();
        assertThat(looks.get()).as("looks of an init").isBetween(1L, MAX_LOOKS);
        fence.close();
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
        assertThatThrownBy(() -> FlushFence.open(net, 0, System.nanoTime() + PLENTY_NS))
            .isInstanceOf(NrtException.class).hasMessageContaining("flush buffer of lnc 0")
            .hasMessageContaining("no memory can be registered")
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
