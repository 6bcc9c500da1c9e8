package io.nrt4j.net.signals;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.jna.Function;
import com.sun.jna.Memory;
import com.sun.jna.NativeLibrary;
import com.sun.jna.Pointer;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Handlers that a guarded call replaces are the JVM's again afterwards. */
class SignalGuardTest {
    private static final Function SIGNAL = NativeLibrary.getInstance("c").getFunction("signal");
    private static final Function SIGACTION = NativeLibrary.getInstance("c").getFunction("sigaction");
    private static final int SIGBUS = 7;
    private static final int SIGTERM = 15;
    private static final Pointer IGNORE = new Pointer(1);

    /** Replaces a handler and answers the one before. */
    private static Pointer replace(final int signal, final Pointer handler) {
        return SIGNAL.invokePointer(new Object[] {signal, handler});
    }

    /** Reads only: the handler is what {@code struct sigaction} begins with. */
    private static Pointer look(final int signal) {
        final Memory action = new Memory(256);
        assertThat(SIGACTION.invokeInt(new Object[] {signal, null, action})).isZero();
        return action.getPointer(0);
    }

    @Test
    void handlersAreBackAfterACall() {
        final Pointer bus = look(SIGBUS);
        final Pointer term = look(SIGTERM);
        assertThat(bus).isNotNull().isNotEqualTo(IGNORE);
        final String answer = SignalGuard.around(() -> {
            replace(SIGBUS, IGNORE);
            replace(SIGTERM, IGNORE);
            return "answer";
        });
        assertThat(answer).isEqualTo("answer");
        assertThat(look(SIGBUS)).isEqualTo(bus);
        assertThat(look(SIGTERM)).isEqualTo(term);
    }

    @Test
    void handlersAreBackAfterACallThatThrows() {
        final Pointer bus = look(SIGBUS);
        final Supplier<Object> failing = () -> {
            replace(SIGBUS, IGNORE);
            throw new IllegalStateException("it failed");
        };
        assertThatThrownBy(() -> SignalGuard.around(failing)).hasMessage("it failed");
        assertThat(look(SIGBUS)).isEqualTo(bus);
    }

    @Test
    void aCallWithinACallPutsThemBackTooAndTheOuterOneOnceMore() {
        final Pointer bus = look(SIGBUS);
        final Pointer between = SignalGuard.around(() -> {
            replace(SIGBUS, IGNORE);
            SignalGuard.around(() -> replace(SIGBUS, new Pointer(0)));
            final Pointer seen = look(SIGBUS);
            replace(SIGBUS, IGNORE);
            return seen;
        });
        assertThat(between).as("after the inner one").isEqualTo(bus);
        assertThat(look(SIGBUS)).isEqualTo(bus);
    }

    /** Two that wait for one another, as ranks of one process do, overlapping in a fixed order. */
    @Test
    @Timeout(value = 30, unit = TimeUnit.SECONDS)
    void whicheverOfTwoCallsReturnsPutsTheJvmsHandlersBack() throws Exception {
        final Pointer bus = look(SIGBUS);
        final Pointer term = look(SIGTERM);
        final CountDownLatch firstReplaced = new CountDownLatch(1);
        final CountDownLatch secondIsInside = new CountDownLatch(1);
        final CountDownLatch firstReturned = new CountDownLatch(1);
        final CompletableFuture<Void> first = CompletableFuture.runAsync(() -> {
            SignalGuard.around(() -> {
                replace(SIGBUS, IGNORE);
                firstReplaced.countDown();
                return await(secondIsInside);
            });
            firstReturned.countDown();
        });
        final Pointer[] seen = new Pointer[2];
        assertThat(await(firstReplaced)).isTrue();
        SignalGuard.around(() -> {
            // What it begins with is the first one's doing, and must not be taken for the JVM's.
            seen[0] = look(SIGBUS);
            secondIsInside.countDown();
            await(firstReturned);
            seen[1] = look(SIGBUS);
            return replace(SIGTERM, IGNORE);
        });
        first.get();
        assertThat(seen[0]).isEqualTo(IGNORE);
        assertThat(seen[1]).as("the first has returned, the second has not").isEqualTo(bus);
        assertThat(look(SIGBUS)).isEqualTo(bus);
        assertThat(look(SIGTERM)).isEqualTo(term);
    }

    private static boolean await(final CountDownLatch latch) {
        try {
            return latch.await(10, TimeUnit.SECONDS);
        } catch (final InterruptedException ex) {
            throw new AssertionError(ex);
        }
    }
}
