package io.nrt4j.concurrent;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nrt4j.testing.Spin;
import java.util.ArrayDeque;
import java.util.Queue;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** The ring between one producer and one consumer. */
class SpscRingTest {
    @Test
    void keepsTheOrderAndItsBounds() {
        final SpscRing<String> ring = new SpscRing<>(2);
        assertThat(ring.capacity()).isEqualTo(2);
        assertThat(ring.isEmpty()).isTrue();
        assertThat(ring.peek()).isNull();
        assertThat(ring.poll()).isNull();
        assertThat(ring.offer("a")).isTrue();
        assertThat(ring.offer("b")).isTrue();
        assertThat(ring.offer("c")).isFalse();
        assertThat(ring.size()).isEqualTo(2);
        assertThat(ring.peek()).isEqualTo("a");
        assertThat(ring.peek()).isEqualTo("a");
        ring.advance();
        assertThat(ring.offer("d")).isTrue();
        assertThat(ring.poll()).isEqualTo("b");
        assertThat(ring.poll()).isEqualTo("d");
        assertThat(ring.isEmpty()).isTrue();
        assertThat(ring.size()).isZero();
    }

    @Test
    void behavesAsAQueueDoes() {
        final SpscRing<Integer> ring = new SpscRing<>(8);
        final Queue<Integer> model = new ArrayDeque<>();
        final Random random = new Random(1);
        for (int i = 0; i < 100_000; i++) {
            if (random.nextBoolean()) {
                assertThat(ring.offer(i)).isEqualTo(model.size() < 8 && model.add(i));
            } else {
                assertThat(ring.poll()).isEqualTo(model.poll());
            }
            assertThat(ring.size()).isEqualTo(model.size());
            assertThat(ring.isEmpty()).isEqualTo(model.isEmpty());
        }
    }

    @Test
    void refusesNullAndOddCapacities() {
        assertThatThrownBy(() -> new SpscRing<>(4).offer(null)).isInstanceOf(NullPointerException.class);
        for (final int capacity : new int[] {0, 3, 127, -1}) {
            assertThatThrownBy(() -> new SpscRing<>(capacity)).isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("" + capacity);
        }
    }

    @Test
    void handsOverEveryElementOnceAndInOrder() throws Exception {
        final int count = 2_000_000;
        final SpscRing<long[]> ring = new SpscRing<>(128);
        final CompletableFuture<Void> producer = CompletableFuture.runAsync(() -> {
            for (long i = 0; i < count; i++) {
                final long[] element = {i, ~i};
                for (int tries = 1; !ring.offer(element); tries++) {
                    Spin.pause(tries);
                }
            }
        });
        for (long i = 0; i < count; i++) {
            long[] element = ring.poll();
            final long startNs = element == null ? System.nanoTime() : 0;
            for (int tries = 1; element == null; tries++) {
                if (tries % 1024 == 0 && System.nanoTime() - startNs > TimeUnit.SECONDS.toNanos(30)) {
                    throw new AssertionError("element " + i + " did not arrive; " + ring.size() + " in the ring");
                }
                Spin.pause(tries);
                element = ring.poll();
            }
            if (element[0] != i || element[1] != ~i) {
                throw new AssertionError("expected " + i + ", got " + element[0] + ", " + element[1]);
            }
        }
        producer.get(30, TimeUnit.SECONDS);
        assertThat(ring.isEmpty()).isTrue();
    }
}
