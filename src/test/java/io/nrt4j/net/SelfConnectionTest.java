package io.nrt4j.net;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.net.loopback.FaultPlan;
import io.nrt4j.net.loopback.FaultPlan.Operation;
import io.nrt4j.net.loopback.LoopbackTransport;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** A transport connected to itself, and what is left of one that is not. */
@Timeout(value = 30, unit = TimeUnit.SECONDS)
class SelfConnectionTest {
    private final FaultPlan plan = new FaultPlan();
    private final LoopbackTransport transport = new LoopbackTransport(plan);

    @AfterEach
    void close() {
        Thread.interrupted();
        transport.close();
    }

    private static long inMs(final long ms) {
        return System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(ms);
    }

    @Test
    void itWaitsForBothEndsAndClosesTheListener() {
        plan.notYet(Operation.CONNECT, 300).notYet(Operation.ACCEPT, 250);
        final SelfConnection made = SelfConnection.open(transport, 0, inMs(20_000));
        assertThat(made.sendComm()).isNotEqualTo(NetTransport.NOT_YET);
        assertThat(made.recvComm()).isNotEqualTo(NetTransport.NOT_YET);
        assertThat(transport.openListeners()).isZero();
        final RuntimeException cause = new RuntimeException("the owner failed");
        made.close(transport, cause);
        assertThat(transport.openComms()).isZero();
        assertThat(cause.getSuppressed()).isEmpty();
    }

    @Test
    void atItsDeadlineItLeavesNothing() {
        plan.notYetUntilReleased(Operation.ACCEPT);
        assertFails(20, NrtStatus.TIMEOUT, "loopback did not connect to itself within the time limit");
    }

    @Test
    void anInterruptEndsItAndStays() {
        plan.notYetUntilReleased(Operation.CONNECT);
        Thread.currentThread().interrupt();
        assertFails(20_000, NrtStatus.CLOSED, "interrupted");
        assertThat(Thread.currentThread().isInterrupted()).isTrue();
    }

    @Test
    void theFirstCauseIsToldAndLeavesNothing() {
        plan.fail(Operation.ACCEPT, 1, "no accept today");
        assertFails(20_000, NrtStatus.FAILURE, "no accept today");
    }

    private void assertFails(final long limitMs, final NrtStatus status, final String text) {
        assertThatThrownBy(() -> SelfConnection.open(transport, 0, inMs(limitMs))).isInstanceOfSatisfying(NrtException.class,
            ex -> assertThat(ex.status()).isEqualTo(status)).hasMessageContaining(text);
        assertThat(transport.openListeners()).isZero();
        assertThat(transport.openComms()).isZero();
    }

    /** What goes wrong while it is cleaned up hides neither the first cause nor what is left to close. */
    @Test
    void aCloseThatFailsHidesNothingAndLeavesOnlyItsOwn() {
        plan.fail(Operation.ACCEPT, 1, "no accept today");
        final NetTransport broken = (NetTransport) Proxy.newProxyInstance(getClass().getClassLoader(),
            new Class<?>[] {NetTransport.class}, (self, method, arguments) -> {
                if (method.getName().equals("abandonConnect")) {
                    throw new IllegalStateException("no end of it either");
                }
                try {
                    return method.invoke(transport, arguments);
                } catch (final InvocationTargetException ex) {
                    throw ex.getCause();
                }
            });
        assertThatThrownBy(() -> SelfConnection.open(broken, 0, inMs(20_000))).hasMessageContaining("no accept today")
            .satisfies(ex -> assertThat(ex.getSuppressed()).hasSize(1));
        assertThat(transport.openListeners()).isZero();
    }
}
