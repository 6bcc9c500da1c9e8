package io.nrt4j.concurrent;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Steps that fail, with an exception or an error, keep none of the others from being taken. */
class TakeDownTest {
    @Test
    void everyStepIsTakenAndTheFirstFailureTellsTheOthers() {
        final List<String> taken = new ArrayList<>();
        final RuntimeException second = new IllegalStateException("second");
        final Error third = new UnsatisfiedLinkError("third");
        final TakeDown ends = new TakeDown().step(() -> taken.add("one")).step(() -> {
            throw second;
        }).step(() -> {
            throw third;
        }).step(() -> taken.add("four"));
        assertThat(taken).containsExactly("one", "four");
        assertThatThrownBy(ends::end).isSameAs(second).hasSuppressedException(third);
    }

    @Test
    void anErrorIsThrownAsItIsAndNothingWhenAllWentWell() {
        final Error error = new UnsatisfiedLinkError("planned");
        final TakeDown ends = new TakeDown().step(() -> {
            throw error;
        });
        assertThatThrownBy(ends::end).isSameAs(error);
        new TakeDown().step(() -> { }).end();
    }
}
