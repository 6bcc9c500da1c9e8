package io.nrt4j.net.signals;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.jna.Function;
import com.sun.jna.NativeLibrary;
import com.sun.jna.Pointer;
import java.util.function.Supplier;
import org.junit.jupiter.api.Test;

/** Handlers that a guarded call replaces are the JVM's again afterwards. */
class SignalGuardTest {
    private static final Function SIGNAL = NativeLibrary.getInstance("c").getFunction("signal");
    private static final int SIGBUS = 7;
    private static final int SIGTERM = 15;
    private static final Pointer IGNORE = new Pointer(1);

    /** Replaces a handler and answers the one before. */
    private static Pointer replace(final int signal, final Pointer handler) {
        return SIGNAL.invokePointer(new Object[] {signal, handler});
    }

    private static Pointer handler(final int signal) {
        final Pointer handler = replace(signal, IGNORE);
        replace(signal, handler);
        return handler;
    }

    /** Reads without lasting effect, since {@code signal} would drop the handler's flags. */
    private static Pointer look(final int signal) {
        return SignalGuard.around(() -> handler(signal));
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
    void aCallWithinACallRestoresNothingThatTheOuterOneReplaced() {
        final Pointer bus = look(SIGBUS);
        final Pointer between = SignalGuard.around(() -> {
            replace(SIGBUS, IGNORE);
            SignalGuard.around(() -> replace(SIGBUS, new Pointer(0)));
            return handler(SIGBUS);
        });
        assertThat(between).as("SIG_DFL").isNull();
        assertThat(look(SIGBUS)).isEqualTo(bus);
    }
}
