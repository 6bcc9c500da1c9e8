package io.nrt4j.net.libfabric;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Locks and names that dead processes leave, by hand, on files as the kernel and the provider write them. */
class ShmRescueTest {
    private static final long BASE = 0x7f12_3456_7000L;
    private static final int OURS = 100;
    private static final int PEER = 200;
    private static final int HELD = 0;
    private static final int FREE = 1;

    @TempDir
    private Path temp;
    private Path proc;
    private Path shm;
    private ShmRescue rescue;

    @BeforeEach
    void setUp() throws IOException {
        proc = Files.createDirectories(temp.resolve("proc"));
        shm = Files.createDirectories(temp.resolve("shm"));
        rescue = new ShmRescue(proc, shm, false);
        Files.createDirectories(proc.resolve("self"));
        for (final String name : new String[] {"100:0:0", "100:0:1", "200:0:0", "200:0:1", "300:0:0"}) {
            region(name, 24, FREE);
        }
        map("self", "100:0:0");
        map(Integer.toString(PEER), "200:0:0", "200:0:1", "100:0:1", "300:0:0");
        ProcessIdentityTest.writeStat(proc, PEER, 'S', 20, 7);
    }

    @AfterEach
    void close() {
        rescue.close();
    }

    /** A region whose lock is at an offset, behind the address at which its owner has it mapped. */
    private void region(final String name, final int offset, final int lock) throws IOException {
        final ByteBuffer bytes = ByteBuffer.allocate(8192).order(ByteOrder.nativeOrder());
        bytes.putInt(0, 5).putInt(4, 1);
        bytes.putLong(offset - 8, BASE).putInt(offset, lock).putLong(offset + 8, BASE + 4096);
        Files.write(shm.resolve(name), bytes.array());
    }

    private void map(final String process, final String... names) throws IOException {
        final StringBuilder maps = new StringBuilder("560000000000-560000001000 r--p 00000000 08:01 1234      /usr/bin/java\n"
            + "7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0        [stack]\n7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0\n");
        for (final String name : names) {
            maps.append(Long.toHexString(BASE)).append('-').append(Long.toHexString(BASE + 8192)).append(" rw-s 00000000 00:01 ")
                .append(Files.getAttribute(shm.resolve(name), "unix:ino")).append("      ").append(shm.resolve(name)).append('\n');
        }
        maps.append("7f0000000000-7f0000001000 rw-s 00000000 00:01 99      ").append(shm.resolve(process + ":0:7")).append(" (deleted)\n");
        Files.createDirectories(proc.resolve(process));
        Files.writeString(proc.resolve(process).resolve("maps"), maps);
    }

    private static byte[] name(final String region) {
        return ("fi_shm://" + region + '\0').getBytes(StandardCharsets.ISO_8859_1);
    }

    private void put(final String region, final int lock) throws IOException {
        try (FileChannel channel = FileChannel.open(shm.resolve(region), StandardOpenOption.WRITE)) {
            channel.write(ByteBuffer.allocate(4).order(ByteOrder.nativeOrder()).putInt(0, lock), 24);
        }
    }

    private int lock(final String region) throws IOException {
        return ByteBuffer.wrap(Files.readAllBytes(shm.resolve(region))).order(ByteOrder.nativeOrder()).getInt(24);
    }

    private void learnAndWatch() {
        rescue.learn(name("100:0:0"));
        rescue.watch(this, name("100:0:1"), name("200:0:1"));
    }

    private void end() throws IOException {
        ProcessIdentityTest.writeStat(proc, PEER, 'Z', 1, 7);
    }

    @ParameterizedTest
    @ValueSource(ints = {16, 24, 32, 72, 248})
    void theLockIsFoundWhereverItsVersionHasIt(final int offset) throws IOException {
        region("100:0:0", offset, FREE);
        assertThat(ShmRegion.of(shm, name("100:0:0")).lockOffset(proc)).isEqualTo(offset);
    }

    @Test
    void noLockIsFoundWhereNothingLooksLikeOne() throws IOException {
        final ShmRegion region = ShmRegion.of(shm, name("100:0:0"));
        region("100:0:0", 24, HELD);
        assertThat(region.lockOffset(proc)).as("no free lock behind the address").isEqualTo(-1);
        region("100:0:0", 1024, FREE);
        assertThat(region.lockOffset(proc)).as("not in the header").isEqualTo(-1);
        region("100:0:0", 24, FREE);
        map("self", "100:0:1");
        assertThat(region.lockOffset(proc)).as("not mapped here").isEqualTo(-1);
        Files.write(shm.resolve("100:0:0"), new byte[3]);
        assertThat(region.lockOffset(proc)).as("too short").isEqualTo(-1);
    }

    @Test
    void whereNoLockIsKnownNoneIsFreed() throws IOException {
        region("100:0:0", 24, HELD);
        learnAndWatch();
        put("200:0:1", HELD);
        end();
        assertThat(rescue.doWork()).isZero();
        assertThat(lock("200:0:1")).isEqualTo(HELD);
        rescue.forget(this);
        assertThat(rescue.doWork()).as("its names go all the same").isEqualTo(2);
    }

    @Test
    void endpointsOfOtherProvidersAreNoRegions() {
        assertThat(ShmRegion.of(shm, new byte[] {2, 0, 0x30, 0x39, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0})).isNull();
        assertThat(ShmRegion.of(shm, new byte[0])).isNull();
        assertThat(ShmRegion.of(shm, name("../200:0:1"))).isNull();
        assertThat(ShmRegion.of(shm, name("200:0:1"))).isEqualTo(new ShmRegion(shm.resolve("200:0:1"), 200));
        rescue.learn(new byte[] {2, 0});
        rescue.watch(this, new byte[] {2, 0}, new byte[] {2, 0});
        assertThat(rescue.doWork()).isZero();
    }

    @ParameterizedTest
    @ValueSource(ints = {0, -1, Integer.MIN_VALUE})
    void locksOfAPeerThatEndedAreFreed(final int held) throws IOException {
        learnAndWatch();
        for (final String region : new String[] {"100:0:1", "200:0:1"}) {
            put(region, held);
        }
        assertThat(rescue.doWork()).as("it lives, and may well hold them").isZero();
        assertThat(lock("200:0:1")).isEqualTo(held);
        end();
        assertThat(rescue.doWork()).isEqualTo(2);
        assertThat(lock("100:0:1")).isEqualTo(FREE);
        assertThat(lock("200:0:1")).isEqualTo(FREE);
        assertThat(rescue.doWork()).as("both are free").isZero();

        put("100:0:1", held);
        assertThat(rescue.doWork()).as("held again, by a call of ours").isEqualTo(1);
        assertThat(lock("100:0:1")).isEqualTo(FREE);
    }

    @Test
    void locksOfOthersAreLeftAlone() throws IOException {
        learnAndWatch();
        put("300:0:0", HELD);
        put("100:0:0", HELD);
        put("200:0:0", HELD);
        end();
        assertThat(rescue.doWork()).isZero();
        assertThat(lock("300:0:0")).isEqualTo(HELD);
        assertThat(lock("100:0:0")).isEqualTo(HELD);
        assertThat(lock("200:0:0")).isEqualTo(HELD);
    }

    @Test
    void aProcessThatIsNotSeenToOwnTheRegionIsNotWatched() throws IOException {
        map(Integer.toString(PEER), "100:0:1");
        learnAndWatch(); // as in another PID namespace, where somebody else has that number
        put("200:0:1", HELD);
        end();
        assertThat(rescue.doWork()).isZero();
        rescue.forget(this);
        assertThat(rescue.doWork()).isZero();
        assertThat(shm.resolve("200:0:1")).exists();
    }

    @Test
    void aRegionThatHasOnlyTheNameOfAnOlderOneIsNotWatched() throws IOException {
        final Path old = shm.resolve("old");
        Files.move(shm.resolve("200:0:1"), old);
        region("200:0:1", 24, FREE);
        learnAndWatch();
        put("200:0:1", HELD);
        end();
        assertThat(rescue.doWork()).isZero();
        assertThat(lock("200:0:1")).isEqualTo(HELD);
    }

    @Test
    void endpointsOfThisProcessAreNotWatched() throws IOException {
        ProcessIdentityTest.writeStat(proc, OURS, 'S', 20, 7);
        map(Integer.toString(OURS), "100:0:0", "100:0:1");
        rescue.learn(name("100:0:0"));
        rescue.watch(this, name("100:0:1"), name("100:0:0"));
        put("100:0:0", HELD);
        ProcessIdentityTest.writeStat(proc, OURS, 'Z', 1, 7);
        assertThat(rescue.doWork()).isZero();
    }

    @Test
    void theNamesOfAPeerGoWhenItHasEndedAndItsEndpointIsClosed() throws IOException {
        learnAndWatch();
        end();
        assertThat(rescue.doWork()).isZero();
        rescue.forget(this);
        Files.move(shm.resolve("200:0:0"), shm.resolve("kept")); // a later process's
        region("200:0:0", 24, FREE);
        assertThat(rescue.doWork()).isEqualTo(1);
        assertThat(shm.resolve("200:0:1")).doesNotExist();
        for (final String name : new String[] {"200:0:0", "kept", "100:0:1", "300:0:0"}) {
            assertThat(shm.resolve(name)).exists();
        }
        assertThat(rescue.doWork()).isZero();
    }

    @Test
    void theNamesOfAPeerThatLivesStay() throws IOException {
        learnAndWatch();
        rescue.forget(this);
        assertThat(rescue.doWork()).isZero();
        assertThat(shm.resolve("200:0:1")).exists();
        ProcessIdentityTest.writeStat(proc, PEER, 'S', 1, 8); // another process has its number, and might have taken them over
        assertThat(rescue.doWork()).isZero();
        assertThat(shm.resolve("200:0:1")).exists();
        ProcessIdentityTest.writeStat(proc, PEER, 'Z', 1, 8);
        assertThat(rescue.doWork()).isEqualTo(2);
        assertThat(shm.resolve("200:0:1")).doesNotExist();
    }

    @Test
    void aCloseDeletesTheNamesOfTheDead() throws IOException {
        learnAndWatch();
        rescue.forget(this);
        end();
        rescue.close();
        assertThat(shm.resolve("200:0:1")).doesNotExist();
        rescue.watch(this, name("100:0:1"), name("200:0:1"));
        assertThat(rescue.doWork()).isZero();
    }
}
