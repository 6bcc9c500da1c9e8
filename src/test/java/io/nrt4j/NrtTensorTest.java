package io.nrt4j;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.sun.jna.Pointer;
import com.sun.management.OperatingSystemMXBean;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.ref.Cleaner;
import java.lang.ref.WeakReference;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.ReadOnlyBufferException;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Tensors and the life of their memory. */
class NrtTensorTest {
    private static void collectUntil(final String what, final BooleanSupplier condition) {
        final long start = System.nanoTime();
        while (!condition.getAsBoolean()) {
            if (System.nanoTime() - start > TimeUnit.SECONDS.toNanos(20)) {
                throw new AssertionError("the garbage collector did not see to it in 20 s: " + what);
            }
            System.gc();
            Thread.yield();
        }
    }

    private static NrtStatus statusOf(final Throwable ex) {
        return ((NrtException) ex).status();
    }

    @Test
    void allocatedMemoryIsZeroedAndHolds() {
        try (NrtTensor tensor = NrtTensor.allocate(4096)) {
            assertThat(tensor.read(0, 4096)).containsOnly(0);
            tensor.write(4093, new byte[] {1, 2, 3});
            assertThat(tensor.read(4092, 4)).containsExactly(0, 1, 2, 3);
            assertThat(tensor.sizeBytes()).isEqualTo(4096);
            assertThat(tensor.address()).isNotZero();
            assertThat(tensor.placement()).isEqualTo(Placement.HOST);
            assertThat(tensor.isReadOnly()).isFalse();
        }
    }

    @Test
    void aSizeThatCannotBeIsRefused() {
        for (final long size : new long[] {0, -1, Long.MIN_VALUE}) {
            assertThatThrownBy(() -> NrtTensor.allocate(size)).isInstanceOf(NrtException.class)
                .hasMessageContaining("" + size).satisfies(ex -> assertThat(statusOf(ex)).isEqualTo(NrtStatus.INVALID));
        }
        assertThatThrownBy(() -> NrtTensor.allocate(Long.MAX_VALUE)).isInstanceOf(NrtException.class)
            .satisfies(ex -> assertThat(statusOf(ex)).isEqualTo(NrtStatus.FAIL_HOST_MEM_ALLOC));
    }

    @Test
    @Tag("slow")
    @Timeout(value = 5, unit = TimeUnit.MINUTES) // touching fresh memory is slow on a busy machine
    void memoryBeyond2GiB() {
        final OperatingSystemMXBean system = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        assumeTrue(system.getFreeMemorySize() > 4L << 30, "less than 4 GiB of memory is free");
        final long size = (1L << 31) + 16;
        try (NrtTensor tensor = NrtTensor.allocate(size)) {
            tensor.write(size - 4, new byte[] {1, 2, 3, 4});
            assertThat(tensor.read(size - 5, 5)).containsExactly(0, 1, 2, 3, 4);
            assertThat(tensor.view(size - 8, 8).order(ByteOrder.BIG_ENDIAN).getInt(4)).isEqualTo(0x01020304);
            assertThatThrownBy(() -> tensor.view(size - 4, 5)).isInstanceOf(IndexOutOfBoundsException.class);
        }
    }

    @Test
    void aViewSharesTheMemory() {
        try (NrtTensor tensor = NrtTensor.allocate(64)) {
            final ByteBuffer view = tensor.view(8, 16);
            assertThat(view.isDirect()).isTrue();
            assertThat(view.capacity()).isEqualTo(16);
            assertThat(view.order()).isEqualTo(ByteOrder.nativeOrder());
            view.put(0, (byte) 77);
            assertThat(tensor.read(8, 1)).containsExactly(77);
            assertThat(tensor.view(64, 0).capacity()).isZero();
        }
    }

    @Test
    void rangesOutsideAreRefused() {
        try (NrtTensor tensor = NrtTensor.allocate(64)) {
            final long[][] ranges = {{64, 1}, {-1, 1}, {0, 65}, {0, -1}, {Long.MAX_VALUE, 1}, {Long.MAX_VALUE - 1, 2},
                {Long.MIN_VALUE, 1}, {63, Integer.MAX_VALUE}};
            for (final long[] range : ranges) {
                assertThatThrownBy(() -> tensor.view(range[0], (int) range[1])).as("%d+%d", range[0], range[1])
                    .isInstanceOf(IndexOutOfBoundsException.class);
            }
            assertThatThrownBy(() -> tensor.write(63, new byte[2])).isInstanceOf(IndexOutOfBoundsException.class);
            assertThatThrownBy(() -> tensor.read(63, 2)).isInstanceOf(IndexOutOfBoundsException.class);
        }
    }

    @Test
    void aWrappedBufferIsTheRangeFromPositionToLimit() {
        final ByteBuffer buffer = ByteBuffer.allocateDirect(100);
        buffer.position(10).limit(30);
        try (NrtTensor tensor = NrtTensor.wrap(buffer)) {
            assertThat(tensor.sizeBytes()).isEqualTo(20);
            tensor.write(0, new byte[] {9});
            tensor.write(19, new byte[] {8});
            assertThat(buffer.get(10)).isEqualTo((byte) 9);
            assertThat(buffer.get(29)).isEqualTo((byte) 8);
            assertThat(buffer.position()).isEqualTo(10);
        }
        assertThat(buffer.get(10)).as("memory after the close, which is not the tensor's to free").isEqualTo((byte) 9);
    }

    @Test
    void buffersThatCannotBeWrappedAreRefused() {
        assertThatThrownBy(() -> NrtTensor.wrap(ByteBuffer.allocate(8))).isInstanceOf(NrtException.class)
            .hasMessageContaining("direct").satisfies(ex -> assertThat(statusOf(ex)).isEqualTo(NrtStatus.INVALID));
        assertThatThrownBy(() -> NrtTensor.wrap(ByteBuffer.allocateDirect(8).position(8))).isInstanceOf(NrtException.class)
            .satisfies(ex -> assertThat(statusOf(ex)).isEqualTo(NrtStatus.INVALID));
        assertThatThrownBy(() -> NrtTensor.wrap(null)).isInstanceOf(NullPointerException.class);
    }

    @Test
    void aReadOnlyBufferMakesAReadOnlyTensor(@TempDir final Path folder) throws IOException {
        final Path file = Files.write(folder.resolve("weights"), new byte[] {1, 2, 3, 4});
        try (FileChannel channel = FileChannel.open(file);
            NrtTensor tensor = NrtTensor.wrap(channel.map(FileChannel.MapMode.READ_ONLY, 1, 3))) {
            assertThat(tensor.isReadOnly()).isTrue();
            assertThat(tensor.read(0, 3)).containsExactly(2, 3, 4);
            assertThat(tensor.view(0, 3).isReadOnly()).isTrue();
            assertThatThrownBy(() -> tensor.write(0, new byte[1])).isInstanceOf(ReadOnlyBufferException.class);
        }
    }

    @Test
    void aWrappedBufferStaysAliveWithItsTensor() {
        final List<NrtTensor> tensors = new ArrayList<>();
        for (int i = 0; i < 64; i++) {
            final ByteBuffer buffer = ByteBuffer.allocateDirect(1 << 16);
            buffer.putInt(0, i);
            tensors.add(NrtTensor.wrap(buffer));
        }
        final AtomicBoolean collected = new AtomicBoolean();
        Cleaner.create().register(new Object(), () -> collected.set(true));
        collectUntil("an object that nobody keeps", collected::get);
        for (int i = 0; i < 64; i++) {
            ByteBuffer.allocateDirect(1 << 16).putInt(0, -1); // would land where a freed buffer was
        }
        for (int i = 0; i < 64; i++) {
            assertThat(tensors.get(i).view(0, 4).order(ByteOrder.BIG_ENDIAN).getInt()).isEqualTo(i);
            tensors.get(i).close();
        }
    }

    @Test
    void aForeignAddressIsWrappedButNeverFreed() {
        try (NrtTensor owner = NrtTensor.allocate(64)) {
            final NrtTensor device = NrtTensor.wrapAddress(owner.address() + 8, 16, Placement.DEVICE, 5);
            assertThat(device.placement()).isEqualTo(Placement.DEVICE);
            assertThat(device.deviceIndex()).isEqualTo(5);
            device.write(0, new byte[] {3});
            device.close();
            assertThat(owner.read(8, 1)).containsExactly(3);
        }
        for (final long[] range : new long[][] {{0, 8}, {8, 0}, {8, -1}, {-8, 8}, {-8, 9}, {Long.MIN_VALUE, Long.MIN_VALUE}}) {
            assertThatThrownBy(() -> NrtTensor.wrapAddress(range[0], range[1], Placement.HOST, 0)).isInstanceOf(NrtException.class)
                .satisfies(ex -> assertThat(statusOf(ex)).isEqualTo(NrtStatus.INVALID));
        }
    }

    @Test
    void aClosedTensorIsRefused() {
        final NrtTensor tensor = NrtTensor.allocate(8);
        tensor.close();
        tensor.close();
        assertThat(tensor.isClosed()).isTrue();
        assertThat(tensor.storage().retain()).isFalse();
        assertThatThrownBy(() -> tensor.read(0, 1)).isInstanceOf(NrtException.class)
            .satisfies(ex -> assertThat(statusOf(ex)).isEqualTo(NrtStatus.CLOSED));
        assertThat(tensor.toString()).contains("closed");
    }

    @Test
    void closingWithUsersDefersTheFreeToTheLastOne() {
        final NrtTensor tensor = NrtTensor.allocate(8);
        final TensorStorage storage = tensor.storage();
        final AtomicInteger told = new AtomicInteger();
        assertThat(storage.retain()).isTrue();
        assertThat(storage.retain()).isTrue();
        storage.addReleaseListener(of -> {
            assertThat(of).isSameAs(storage);
            // the memory is still in place
            assertThat(new Pointer(of.address()).getByte(0)).isZero();
            told.incrementAndGet();
        });
        tensor.close();
        assertThat(storage.isClosed()).isTrue();
        assertThat(storage.retain()).as("a new user of a closed tensor").isFalse();
        storage.release();
        assertThat(told).hasValue(0);
        storage.release();
        assertThat(told).hasValue(1);
        tensor.close();
        assertThat(told).hasValue(1);
        assertThatThrownBy(() -> storage.addReleaseListener(of -> { })).isInstanceOf(IllegalStateException.class);
    }

    @Test
    void aListenerThatWasTakenBackIsNotTold() {
        final NrtTensor tensor = NrtTensor.allocate(8);
        final AtomicInteger told = new AtomicInteger();
        final TensorStorage.ReleaseListener listener = of -> told.incrementAndGet();
        tensor.storage().addReleaseListener(listener);
        tensor.storage().removeReleaseListener(listener);
        tensor.close();
        assertThat(told).hasValue(0);
    }

    @Test
    void aListenerThatFailsKeepsTheMemoryAndTheOthersInformed() {
        try (NrtTensor owner = NrtTensor.allocate(8)) {
            final NrtTensor tensor = NrtTensor.wrapAddress(owner.address(), 8, Placement.HOST, 0);
            final AtomicInteger told = new AtomicInteger();
            tensor.storage().addReleaseListener(of -> {
                throw new IllegalStateException("cannot deregister");
            });
            tensor.storage().addReleaseListener(of -> told.incrementAndGet());
            tensor.close(); // whoever completes the last transfer must not be told another's failure
            assertThat(told).hasValue(1);
        }
    }

    @Test
    void aBufferUnderARegistrationThatCannotBeEndedIsKeptForEver() {
        final WeakReference<ByteBuffer> kept = dropWrapped(of -> {
            throw new IllegalStateException("cannot deregister");
        });
        final WeakReference<ByteBuffer> dropped = dropWrapped(of -> { });
        collectUntil("a buffer that nobody keeps", () -> dropped.get() == null);
        assertThat(kept.get()).as("a buffer that may still be written to").isNotNull();
    }

    private static WeakReference<ByteBuffer> dropWrapped(final TensorStorage.ReleaseListener listener) {
        final ByteBuffer buffer = ByteBuffer.allocateDirect(64);
        final NrtTensor tensor = NrtTensor.wrap(buffer);
        tensor.storage().addReleaseListener(listener);
        tensor.close();
        return new WeakReference<>(buffer);
    }

    @Test
    void readsThatCannotBeAreRefusedBeforeAnythingIsAllocated() {
        try (NrtTensor tensor = NrtTensor.allocate(8)) {
            for (final int length : new int[] {-1, 9, Integer.MAX_VALUE}) {
                assertThatThrownBy(() -> tensor.read(0, length)).as("%s bytes", length).isInstanceOf(IndexOutOfBoundsException.class);
            }
            assertThatThrownBy(() -> tensor.read(-1, 1)).isInstanceOf(IndexOutOfBoundsException.class);
            assertThatThrownBy(() -> tensor.read(Long.MAX_VALUE, 1)).isInstanceOf(IndexOutOfBoundsException.class);
            assertThat(tensor.read(8, 0)).isEmpty();
        }
    }

    @Test
    void releaseWithoutRetainIsRefusedAndChangesNothing() {
        final NrtTensor tensor = NrtTensor.allocate(8);
        assertThatThrownBy(() -> tensor.storage().release()).isInstanceOf(IllegalStateException.class)
            .hasMessageContaining("release without retain");
        assertThat(tensor.isClosed()).isFalse();
        assertThat(tensor.storage().retain()).isTrue();
        tensor.storage().release();
        tensor.close();
        assertThatThrownBy(() -> tensor.storage().release()).isInstanceOf(IllegalStateException.class);
        assertThat(tensor.storage().retain()).isFalse();
    }

    @Test
    void oneThreadReleasesHoweverManyCloseAtOnce() throws Exception {
        final ExecutorService threads = Executors.newFixedThreadPool(3);
        try {
            for (int round = 0; round < 2000; round++) {
                final NrtTensor tensor = NrtTensor.allocate(8);
                final TensorStorage storage = tensor.storage();
                final AtomicInteger told = new AtomicInteger();
                storage.addReleaseListener(of -> told.incrementAndGet());
                assertThat(storage.retain()).isTrue();
                final CountDownLatch go = new CountDownLatch(1);
                final List<Future<?>> ends = List.of(
                    threads.submit(() -> run(go, tensor::close)), threads.submit(() -> run(go, storage::release)),
                    threads.submit(() -> run(go, () -> {
                        if (storage.retain()) {
                            storage.release();
                        }
                    })));
                go.countDown();
                for (final Future<?> end : ends) {
                    end.get(20, TimeUnit.SECONDS);
                }
                assertThat(told).hasValue(1);
            }
        } finally {
            threads.shutdownNow();
        }
    }

    private static Void run(final CountDownLatch go, final Runnable task) throws InterruptedException {
        go.await();
        task.run();
        return null;
    }

    @Test
    void aDroppedTensorIsFreed() {
        final AtomicBoolean freed = new AtomicBoolean();
        drop(freed);
        collectUntil("a dropped tensor's release", freed::get);
    }

    private static void drop(final AtomicBoolean freed) {
        NrtTensor.allocate(1 << 20).storage().addReleaseListener(of -> freed.set(true));
    }
}
