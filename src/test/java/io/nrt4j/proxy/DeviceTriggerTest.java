package io.nrt4j.proxy;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.NrtTensor;
import io.nrt4j.net.NativeWord;
import io.nrt4j.testing.Spin;
import io.nrt4j.testing.Stopwatch;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The gate that the device opens. */
class DeviceTriggerTest {
    private static final int MOST_ROUNDS = 20_000;
    private static final int LEAST_ROUNDS = 200;
    private static final Duration LONG_ENOUGH = Duration.ofSeconds(5);

    private final NrtTensor memory = NrtTensor.allocate(64);

    @AfterEach
    void free() {
        memory.close();
    }

    private long[] addresses(final int count) {
        final long[] addresses = new long[count];
        for (int i = 0; i < count; i++) {
            addresses[i] = memory.address() + 4L * i;
            NativeWord.at(addresses[i]).store(DeviceTrigger.BLOCKED);
        }
        return addresses;
    }

    @Test
    void allOnesBlock() {
        assertThat(new DeviceTrigger(addresses(1), 1).canStart()).isFalse();
    }

    @ParameterizedTest
    @ValueSource(ints = {0x7FFFFFFF, 0xFFFFFFFE, 0x80000000, 0, 1})
    void anythingElseReleases(final int value) {
        final long[] addresses = addresses(1);
        final DeviceTrigger trigger = new DeviceTrigger(addresses, 1);
        memory.view(0, 4).putInt(0, value);
        assertThat(trigger.canStart()).isTrue();
    }

    @Test
    void theLastOfSeveralWordsReleases() {
        final long[] addresses = addresses(4);
        final DeviceTrigger trigger = new DeviceTrigger(addresses, 4);
        for (final int word : new int[] {2, 0, 3}) {
            NativeWord.at(addresses[word]).store(7);
            assertThat(trigger.canStart()).isFalse();
        }
        NativeWord.at(addresses[1]).store(0);
        assertThat(trigger.canStart()).isTrue();
    }

    @Test
    void clearWritesZeroIntoEveryWordThatCounts() {
        final long[] addresses = addresses(4);
        new DeviceTrigger(addresses, 3).clear();
        assertThat(NativeWord.at(addresses[0]).load()).isZero();
        assertThat(NativeWord.at(addresses[2]).load()).isZero();
        assertThat(NativeWord.at(addresses[3]).load()).as("past streams_n").isEqualTo(DeviceTrigger.BLOCKED);
    }

    @Test
    void addressesPastStreamsNAreNeverTouched() {
        final long[] addresses = {addresses(1)[0], 0, 8, 0x7fff_ffff_0001L};
        final DeviceTrigger trigger = new DeviceTrigger(addresses, 1);
        assertThat(trigger.canStart()).isFalse();
        NativeWord.at(addresses[0]).store(0);
        assertThat(trigger.canStart()).isTrue();
        trigger.clear();
        assertThat(new DeviceTrigger(new long[] {0, 0, 0, 0}, 0).canStart()).as("nothing to wait for").isTrue();
    }

    @Test
    void wordsThatCannotBeAreRefused() {
        final long[] addresses = addresses(4);
        assertThatThrownBy(() -> new DeviceTrigger(new long[] {addresses[0], 0}, 2)).isInstanceOf(NrtException.class)
            .hasMessageContaining("0x0");
        assertThatThrownBy(() -> new DeviceTrigger(new long[] {addresses[0] + 2}, 1)).isInstanceOf(NrtException.class);
        assertThatThrownBy(() -> new DeviceTrigger(addresses, 5)).isInstanceOfSatisfying(NrtException.class,
            ex -> assertThat(ex.status()).isEqualTo(NrtStatus.INVALID));
        assertThatThrownBy(() -> new DeviceTrigger(addresses, -1)).isInstanceOf(NrtException.class);
        assertThatThrownBy(() -> new DeviceTrigger(new long[] {addresses[0]}, 2)).isInstanceOf(NrtException.class);
    }

    @Test
    @Timeout(value = 120, unit = TimeUnit.SECONDS)
    void aStoreBringsWhatWasWrittenBefore() throws InterruptedException {
        final NativeWord flag = NativeWord.at(memory.address());
        flag.store(0);
        final AtomicBoolean over = new AtomicBoolean();
        final Thread device = new Thread(() -> {
            for (int round = 1; !over.get(); round++) {
                memory.view(32, 4).putInt(0, round);
                flag.store(round);
                for (int spins = 0; flag.load() == round && !over.get(); spins++) {
                    Spin.pause(spins);
                }
            }
        });
        device.start();
        // Where both share a processor with others, each round may take some milliseconds.
        final Stopwatch watch = Stopwatch.start();
        try {
            for (int round = 1; round <= MOST_ROUNDS && (round <= LEAST_ROUNDS || !watch.isOver(LONG_ENOUGH)); round++) {
                for (int spins = 0; flag.load() != round; spins++) {
                    Spin.pause(spins);
                }
                assertThat(memory.view(32, 4).getInt(0)).isEqualTo(round);
                flag.store(-round);
            }
        } finally {
            over.set(true);
            device.join();
        }
    }
}
