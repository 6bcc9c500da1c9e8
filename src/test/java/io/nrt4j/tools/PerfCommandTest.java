package io.nrt4j.tools;

import static org.assertj.core.api.Assertions.assertThat;

import io.nrt4j.net.loopback.FaultPlan;
import io.nrt4j.sendrecv.NrtAsyncSendRecv;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** {@code nrt4j perf}, both ends in this JVM. */
@Timeout(200)
class PerfCommandTest {
    private static double value(final String json, final String key) {
        final Matcher found = Pattern.compile("\"" + key + "\":([0-9.]+)[,}]").matcher(json);
        assertThat(found.find()).as("%s in %s", key, json).isTrue();
        return Double.parseDouble(found.group(1));
    }

    @Test
    void pingPongAndBandwidthForMachines() {
        final CommandRun run = CommandRun.of("perf", "--self", "--json", "--latency", "8,70000", "--bandwidth", "4K,1M",
            "--iterations", "20", "--warm-up", "5", "--window", "8");

        assertThat(run.err()).isEmpty();
        assertThat(run.exitCode()).isZero();
        final List<String> lines = run.out().lines().toList();
        assertThat(lines).hasSize(4).allMatch(line -> line.startsWith("{\"transport\":\"loopback\",\"mode\":\"") && line.endsWith("}"));
        for (int i = 0; i < 2; i++) {
            assertThat(lines.get(i)).contains("\"mode\":\"pingpong\"");
            assertThat(value(lines.get(i), "size")).isEqualTo(i == 0 ? 8 : 70_000);
            assertThat(value(lines.get(i), "round_trips")).isEqualTo(20);
            assertThat(value(lines.get(i), "min_us")).isPositive().isLessThanOrEqualTo(value(lines.get(i), "median_us"));
            assertThat(value(lines.get(i), "median_us")).isLessThanOrEqualTo(value(lines.get(i), "p99_us"));
        }
        for (int i = 2; i < 4; i++) {
            assertThat(lines.get(i)).contains("\"mode\":\"bandwidth\"");
            assertThat(value(lines.get(i), "window")).isEqualTo(8);
            assertThat(value(lines.get(i), "messages")).isEqualTo(160);
            assertThat(value(lines.get(i), "mb_per_s")).isPositive();
        }
    }

    @Test
    void tablesForPeople() {
        final CommandRun run = CommandRun.of("perf", "--latency", "8,4K", "--iterations", "10");

        assertThat(run.exitCode()).as(run.err()).isZero();
        assertThat(run.out()).startsWith("from host A, lnc 0, to host B, lnc 1, over loopback")
            .containsOnlyOnce("ping-pong    median us       p99 us").containsPattern("(?m)^ +8 +[0-9.]+ +[0-9.]+")
            .containsPattern("(?m)^ +4K +[0-9.]+ +[0-9.]+").doesNotContain("bandwidth");
    }

    @Test
    void aKvCacheIsHandedOverAndChecked() {
        final CommandRun run = CommandRun.of("perf", "--kv", "--json", "--layers", "3", "--blocks", "50", "--block-size", "8,16K",
            "--iterations", "3");

        assertThat(run.exitCode()).as(run.err()).isZero();
        final List<String> lines = run.out().lines().toList();
        assertThat(lines).hasSize(2);
        for (final String line : lines) {
            assertThat(line).contains("\"mode\":\"kv\"");
            assertThat(value(line, "layers")).isEqualTo(3);
            assertThat(value(line, "blocks")).isEqualTo(50);
            assertThat(value(line, "window")).isEqualTo(128);
            assertThat(value(line, "blocks_per_s")).isPositive();
            assertThat(value(line, "last_block_ms")).isBetween(value(line, "last_block_min_ms"), value(line, "last_block_max_ms"));
        }
        assertThat(CommandRun.of("perf", "--kv", "--layers", "2", "--blocks", "1", "--iterations", "1", "--block-size", "8").out())
            .containsPattern("KV block +GB/s +blocks/s +last block");
    }

    @Test
    void aBlockThatDoesNotArriveAsItWasSentIsNamed() {
        final CommandRun run = CommandRun.of(config -> new NrtAsyncSendRecv(config, new WrappedLoopback(null, 4096)),
            "perf", "--kv", "--timeout", "5", "--layers", "1", "--blocks", "4", "--block-size", "4K", "--iterations", "1");

        assertThat(run.exitCode()).isEqualTo(1);
        assertThat(run.err()).contains("of layer 0 is not what was sent");
    }

    @Test
    void aTransportThatStopsEndsItAtItsTimeLimit() {
        final FaultPlan plan = new FaultPlan().completeAfterTests(FaultPlan.Operation.ISEND, Integer.MAX_VALUE);
        final long startNs = System.nanoTime();

        final CommandRun run = CommandRun.of(config -> new NrtAsyncSendRecv(config, new WrappedLoopback(plan, -1)),
            "perf", "--timeout", "1", "--latency", "8");

        assertThat(run.exitCode()).isEqualTo(1);
        assertThat(run.err()).contains("nothing moved for 1").contains("CONNECTED");
        assertThat(Duration.ofNanos(System.nanoTime() - startNs)).isLessThan(Duration.ofSeconds(20));
    }

    /** The limit is of what does not move, and nothing is told while a measurement runs. */
    @Test
    @Tag("slow")
    void aMeasurementMayTakeLongerThanTheTimeLimit() {
        final FaultPlan plan = new FaultPlan();
        plan.onPost((operation, comm, address, lengthBytes) -> {
            if (operation == FaultPlan.Operation.ISEND && lengthBytes == 8) {
                final long endNs = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(300);
                while (System.nanoTime() - endNs < 0) { // a park may end early
                    LockSupport.parkNanos(endNs - System.nanoTime());
                }
            }
        });
        final CommandRun run = CommandRun.of(config -> new NrtAsyncSendRecv(config, new WrappedLoopback(plan, -1)),
            "perf", "--self", "--json", "--timeout", "5", "--latency", "8,16", "--iterations", "10", "--warm-up", "0");
        assertThat(run.exitCode()).as(run.err()).isZero();
        final List<String> lines = run.out().lines().toList();
        assertThat(lines).hasSize(2);
        assertThat(10 * value(lines.get(0), "min_us")).as("least time of the first").isGreaterThan(2_500_000);
    }

    @Test
    void everyBlockHasAPlaceOfItsOwnOnBothSides() {
        for (int blocks = 1; blocks < 200; blocks++) {
            final PerfPlan plan = PerfPlan.kv(16, 128, 1, blocks, 1);
            final TreeSet<Long> sender = new TreeSet<>();
            final TreeSet<Long> receiver = new TreeSet<>();
            for (int block = 0; block < blocks; block++) {
                sender.add(PerfEnd.place(plan, block, false));
                receiver.add(PerfEnd.place(plan, block, true));
            }
            assertThat(sender).hasSize(blocks).isEqualTo(receiver);
            assertThat(sender.first()).isZero();
            assertThat(sender.last()).isEqualTo(16L * (blocks - 1));
        }
    }

    @Test
    void aPlanIsReadBackAndWhatCannotBeIsRefused() {
        for (final PerfPlan plan : List.of(PerfPlan.end(), PerfPlan.pingPong(8, 9, 10), PerfPlan.bandwidth(1 << 20, 16, 3, 0),
            PerfPlan.kv(1 << 14, 128, 32, 16, 5))) {
            assertThat(PerfPlan.decode(plan.encode())).isEqualTo(plan);
        }
        final List<byte[]> bad = new ArrayList<>(List.of(new byte[0], new byte[PerfPlan.BYTES], new byte[PerfPlan.BYTES + 1]));
        for (final int at : new int[] {0, 8, 12, 16, 24, 40}) {
            final byte[] changed = PerfPlan.kv(1 << 14, 128, 32, 16, 5).encode();
            java.util.Arrays.fill(changed, at, at + (at == 8 || at == 12 || at == 40 ? 4 : 8), (byte) 0xFF);
            bad.add(changed);
        }
        for (final byte[] bytes : bad) {
            assertThat(org.assertj.core.api.Assertions.catchThrowable(() -> PerfPlan.decode(bytes)))
                .as(java.util.HexFormat.of().formatHex(bytes)).isInstanceOf(io.nrt4j.NrtException.class);
        }
    }

    @Test
    void sizesAreWrittenAsTheyAreRead() {
        for (final long size : new long[] {1, 8, 1000, 1024, 1025, 65_536, 1 << 20, 3 << 20, 1L << 30, 5L << 40}) {
            assertThat(new Sizes.Converter().convert(Sizes.text(size))).isEqualTo(size);
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {
        "perf --window 0",
        "perf --window 129",
        "perf --iterations 0",
        "perf --warm-up -1",
        "perf --latency x",
        "perf --latency 0",
        "perf --latency 2G",
        "perf --bandwidth 8,2G",
        "perf --kv --latency 8",
        "perf --kv --block-size 4",
        "perf --kv --layers 0",
        "perf --kv --warm-up 2",
        "perf --kv --layers 1000000 --blocks 1000000",
        "perf --self --peer 127.0.0.1 --peer-lnc 1",
        "perf --listen",
        "perf --listen --peer 127.0.0.1 --peer-lnc 1 --port 4711 --json",
        "perf --peer 127.0.0.1 --port 4711",
        "perf --peer 127.0.0.1 --peer-lnc 1 --port 4711",
        "perf --transport pigeon",
        "perf 8"})
    void wrongUsageIsRefused(final String line) {
        final CommandRun run = CommandRun.of((Object[]) line.split(" "));

        assertThat(run.exitCode()).as(run.err()).isEqualTo(2);
        assertThat(run.err()).contains("nrt4j perf --help");
    }
}
