package io.nrt4j.net.libfabric;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;
import static org.openjdk.jcstress.annotations.Expect.FORBIDDEN;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.concurrent.atomic.AtomicInteger;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.LLL_Result;
import org.openjdk.jcstress.infra.results.LL_Result;

/**
 * The rescuer of shared memory between its thread, who closes, and the calls that spin. Processes and regions are files as the kernel and
 * the provider write them; provider and peer are played by actors, in mappings of their own.
 *
 * <p>Needs small strides: a state is a folder, two regions and their mappings.
 */
public final class ShmRescueEngineStress {
    private static final VarHandle WORD = MethodHandles.byteBufferViewVarHandle(int[].class, ByteOrder.nativeOrder());
    private static final long BASE = 0x7f12_3456_7000L;
    private static final int REGION_BYTES = 4096;
    private static final int LOCK_AT = 24;
    private static final int FREE = 1;
    private static final int HELD = 0;
    private static final int PATIENCE = 20_000_000;
    private static final AtomicInteger PIDS = new AtomicInteger(1000);

    private ShmRescueEngineStress() {
    }

    /** A rescuer that watches one peer, which has a region, as we have for it. */
    abstract static class Watched {
        final Path folder;
        final ShmRescue rescue;
        final ByteBuffer ours;
        final ByteBuffer theirs;
        private final int peer = PIDS.incrementAndGet();

        Watched() {
            try {
                folder = Files.createTempDirectory("nrt4j-stress");
                final Path proc = Files.createDirectories(folder.resolve("proc"));
                final Path shm = Files.createDirectories(folder.resolve("shm"));
                ours = region(shm.resolve("100:1"));
                theirs = region(shm.resolve(peer + ":1"));
                processMaps(proc.resolve("self"), shm.resolve("100:1"));
                processMaps(proc.resolve(Integer.toString(peer)), shm.resolve(peer + ":1"));
                setPeer('S', 5);
                rescue = new ShmRescue(proc, shm, false);
                rescue.learn(name("100:1"));
                rescue.watch(this, name("100:1"), name(peer + ":1"));
            } catch (final IOException ex) {
                throw new UncheckedIOException(ex);
            }
        }

        private static byte[] name(final String region) {
            return ("fi_shm://" + region + '\0').getBytes(StandardCharsets.US_ASCII);
        }

        private static ByteBuffer region(final Path file) throws IOException {
            final ByteBuffer header = ByteBuffer.allocate(REGION_BYTES).order(ByteOrder.nativeOrder());
            header.putLong(LOCK_AT - Long.BYTES, BASE).putInt(LOCK_AT, FREE);
            Files.write(file, header.array());
            try (FileChannel channel = FileChannel.open(file, StandardOpenOption.READ, StandardOpenOption.WRITE)) {
                return channel.map(FileChannel.MapMode.READ_WRITE, 0, REGION_BYTES);
            }
        }

        private static void processMaps(final Path process, final Path region) throws IOException {
            Files.createDirectories(process);
            Files.writeString(process.resolve("maps"), Long.toHexString(BASE) + "-" + Long.toHexString(BASE + REGION_BYTES)
                + " rw-s 00000000 00:01 " + Files.getAttribute(region, "unix:ino") + "      " + region + "\n");
        }

        private void setPeer(final char state, final int threads) throws IOException {
            Files.writeString(folder.resolve("proc").resolve(Integer.toString(peer)).resolve("stat"),
                peer + " (peer) " + state + " 0".repeat(16) + " " + threads + " 0 7\n");
        }

        /** The peer dies, with a lock in its hands. */
        final void dieHolding(final ByteBuffer region) {
            WORD.setVolatile(region, LOCK_AT, HELD);
            try {
                setPeer('Z', 1);
            } catch (final IOException ex) {
                throw new UncheckedIOException(ex);
            }
        }

        static boolean isFree(final ByteBuffer region) {
            return (int) WORD.getVolatile(region, LOCK_AT) == FREE;
        }

        /** As {@code pthread_spin_lock}; false when it spun for too long. */
        static boolean lock(final ByteBuffer region) {
            for (int i = 0; i < PATIENCE; i++) {
                if (WORD.compareAndSet(region, LOCK_AT, FREE, HELD)) {
                    return true;
                }
                Thread.onSpinWait();
            }
            return false;
        }

        static void unlock(final ByteBuffer region) {
            WORD.setRelease(region, LOCK_AT, FREE);
        }

        /** A look of the rescuer's thread: how much it freed and deleted, or what went wrong. */
        final String look() {
            try {
                return "" + rescue.doWork();
            } catch (final RuntimeException ex) {
                return ex.toString();
            }
        }

        /** Ends the state; how much a last look finds to do. */
        final String end() {
            final String last = look();
            try {
                rescue.close();
                try (var files = Files.walk(folder)) {
                    for (final Path file : files.sorted(java.util.Comparator.reverseOrder()).toList()) {
                        Files.delete(file);
                    }
                }
                return last;
            } catch (final IOException | RuntimeException ex) {
                return ex.toString();
            }
        }
    }

    /** The endpoint is closed, and its watch ended, while the rescuer looks at the lock that its dead peer held. */
    @JCStressTest
    @Outcome(id = "1, gone, 1", expect = ACCEPTABLE, desc = "The lock was freed; the peer's name went with the next look.")
    @Outcome(id = "1, gone, 0", expect = ACCEPTABLE, desc = "Ended before it looked: there was only the peer's name to delete.")
    @Outcome(expect = FORBIDDEN, desc = "It looked at a lock that was not mapped any more.")
    @State
    public static class LookAgainstForget extends Watched {
        public LookAgainstForget() {
            dieHolding(theirs);
        }

        @Actor
        public void rescuer(final LLL_Result result) {
            result.r1 = look();
        }

        @Actor
        public void closer(final LLL_Result result) {
            try {
                rescue.forget(this);
                result.r2 = "gone";
            } catch (final RuntimeException ex) {
                result.r2 = ex.toString();
            }
        }

        @Arbiter
        public void end(final LLL_Result result) {
            result.r3 = end();
        }
    }

    /** A call spins for a lock that the dead peer held, and takes it as soon as it is free, while the rescuer looks again. */
    @JCStressTest
    @Outcome(id = "went on, 1 (0|1), free 0", expect = ACCEPTABLE,
        desc = "The first look freed it; the second one at most gave back what the call gave back, too.")
    @Outcome(expect = FORBIDDEN, desc = "The call spins on, or the lock stayed held.")
    @State
    public static class CallSpinsUntilFreed extends Watched {
        public CallSpinsUntilFreed() {
            dieHolding(ours);
        }

        @Actor
        public void call(final LLL_Result result) {
            result.r1 = lock(ours) ? "went on" : "spins on";
            unlock(ours);
        }

        @Actor
        public void rescuer(final LLL_Result result) {
            result.r2 = look() + " " + look();
        }

        @Arbiter
        public void end(final LLL_Result result) {
            result.r3 = (isFree(ours) ? "free " : "held ") + end();
        }
    }

    /** The peer lives: what it holds is its own, however often the rescuer looks. */
    @JCStressTest
    @Outcome(id = "2, 0 0", expect = ACCEPTABLE, desc = "One after the other, and nothing for the rescuer to do.")
    @Outcome(expect = FORBIDDEN, desc = "The rescuer let one in beside the other.")
    @State
    public static class LookWhileThePeerHolds extends Watched {
        private int guarded;
        private String looks = "";

        private void use() {
            if (lock(ours)) {
                final int before = guarded;
                for (int i = 0; i < 200; i++) {
                    Thread.onSpinWait();
                }
                guarded = before + 1;
                unlock(ours);
            }
        }

        @Actor
        public void peer() {
            use();
        }

        @Actor
        public void rescuerBesideOurCall() {
            looks = look();
            use();
            looks += " " + look();
        }

        @Arbiter
        public void end(final LL_Result result) {
            result.r1 = guarded;
            result.r2 = looks;
            end();
        }
    }
}
