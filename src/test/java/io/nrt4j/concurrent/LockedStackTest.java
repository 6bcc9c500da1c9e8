package io.nrt4j.concurrent;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** The pool under a lock. */
class LockedStackTest {
    @Test
    void theLastInIsTheFirstOut() {
        final LockedStack<String> stack = new LockedStack<>(2);
        assertThat(stack.pop()).isNull();
        stack.push("a");
        stack.push("b");
        assertThat(stack.size()).isEqualTo(2);
        assertThat(stack.pop()).isEqualTo("b");
        assertThat(stack.pop()).isEqualTo("a");
        assertThat(stack.pop()).isNull();
        assertThat(stack.size()).isZero();
    }

    @Test
    void anElementTooManyIsRefused() {
        final LockedStack<String> stack = new LockedStack<>(1);
        stack.push("a");
        assertThatThrownBy(() -> stack.push("b")).isInstanceOf(IllegalStateException.class).hasMessageContaining("b");
        assertThatThrownBy(() -> stack.push(null)).isInstanceOf(NullPointerException.class);
        assertThat(stack.pop()).isEqualTo("a");
        assertThat(stack.pop()).isNull();
    }

    @Test
    void noElementHasTwoOwners() throws Exception {
        final LockedStack<AtomicInteger> stack = new LockedStack<>(16);
        for (int i = 0; i < 16; i++) {
            stack.push(new AtomicInteger());
        }
        final List<CompletableFuture<Void>> owners = new ArrayList<>();
        for (int t = 0; t < 3; t++) {
            owners.add(CompletableFuture.runAsync(() -> {
                for (int i = 0; i < 200_000; i++) {
                    final AtomicInteger mine = stack.pop();
                    if (mine != null) {
                        if (mine.getAndIncrement() != 0) {
                            throw new AssertionError("popped while somebody else had it");
                        }
                        mine.decrementAndGet();
                        stack.push(mine);
                    }
                }
            }));
        }
        for (final CompletableFuture<Void> owner : owners) {
            owner.get(120, TimeUnit.SECONDS);
        }
        assertThat(stack.size()).isEqualTo(16);
    }
}
