package io.nrt4j.sendrecv;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import io.nrt4j.NrtStatus;
import io.nrt4j.NrtTensor;
import io.nrt4j.testing.Leaks;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadInfo;
import java.util.Set;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Posting and testing for a long time: nothing is allocated, nothing grows. */
@Tag("slow")
class SteadyStateTest {
    private static final int IN_FLIGHT = 128;
    private static final int CYCLES = 100_000;
    private static final int WARM_UP = 20_000;
    private static final long MAX_HEAP_GROWTH = 512 << 10;

    private final SendRecvRequest[] sends = new SendRecvRequest[IN_FLIGHT];
    private final SendRecvRequest[] recvs = new SendRecvRequest[IN_FLIGHT];

    @Test
    void aHundredThousandCyclesWith128InFlightAllocateNothing() {
        try (EngineRig rig = new EngineRig(); NrtTensor tensor = NrtTensor.allocate(4096)) {
            final NrtAsyncSendRecv a = rig.initialised(0);
            final NrtAsyncSendRecv b = rig.initialised(1);
            final EngineRig.Pair pair = EngineRig.connect(a, 0, b, 1);
            for (int i = 0; i < IN_FLIGHT; i++) {
                sends[i] = new SendRecvRequest();
                recvs[i] = new SendRecvRequest();
            }
            cycle(a, b, pair, tensor, WARM_UP);
            final ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
            final long me = Thread.currentThread().getId();
            final Set<String> threadsBefore = Leaks.threads();
            final long heapBefore = Leaks.heapBytes();
            final long servicesBefore = allocatedByServices(threads);
            final long before = threads.getThreadAllocatedBytes(me);
            final NrtStatus worst = cycle(a, b, pair, tensor, CYCLES);
            final long allocated = threads.getThreadAllocatedBytes(me) - before;
            final long byServices = allocatedByServices(threads) - servicesBefore;
            assertThat(worst).isEqualTo(NrtStatus.SUCCESS);
            assertThat(allocated).as("bytes in %s cycles", CYCLES).isLessThan(CYCLES / 10);
            assertThat(byServices).as("bytes of the service threads in %s cycles", CYCLES).isLessThan(CYCLES / 2);
            assertThat(Leaks.heapBytes() - heapBefore).as("growth of the heap").isLessThan(MAX_HEAP_GROWTH);
            assertThat(Leaks.threads()).isEqualTo(threadsBefore);
        }
    }

    /** Bytes that the service threads of all LNCs have allocated so far; what they do while they wait is mostly sleeping. */
    private static long allocatedByServices(final ThreadMXBean threads) {
        long sum = 0;
        int count = 0;
        for (final long id : threads.getAllThreadIds()) {
            final ThreadInfo info = threads.getThreadInfo(id);
            if (info != null && info.getThreadName().startsWith("nrt4j-sr-")) {
                sum += threads.getThreadAllocatedBytes(id);
                count++;
            }
        }
        assertThat(count).as("service threads").isEqualTo(2);
        return sum;
    }

    /** Keeps 128 sends in flight, then receives, and posts each slot anew; allocates nothing itself. */
    private NrtStatus cycle(
        final NrtAsyncSendRecv a, final NrtAsyncSendRecv b, final EngineRig.Pair pair, final NrtTensor tensor, final int cycles) {
        int posted = 0;
        int done = 0;
        NrtStatus worst = NrtStatus.SUCCESS;
        final long deadlineNs = System.nanoTime() + EngineRig.LIMIT.toNanos();
        while (done < cycles && worst == NrtStatus.SUCCESS) {
            while (posted < cycles && posted - done < IN_FLIGHT && worst == NrtStatus.SUCCESS) {
                final int slot = posted % IN_FLIGHT;
                worst = a.sendTensor(tensor, slot * 8L, 8, pair.send(), sends[slot]);
                if (worst == NrtStatus.SUCCESS) {
                    worst = b.recvTensor(tensor, 2048 + slot * 8L, 8, pair.recv(), recvs[slot]);
                }
                posted++;
            }
            final int slot = done % IN_FLIGHT;
            while (worst == NrtStatus.SUCCESS && !sends[slot].done() && System.nanoTime() < deadlineNs) {
                worst = a.testRequest(sends[slot]);
            }
            while (worst == NrtStatus.SUCCESS && !recvs[slot].done() && System.nanoTime() < deadlineNs) {
                worst = b.testRequest(recvs[slot]);
            }
            if (!recvs[slot].done()) {
                return worst == NrtStatus.SUCCESS ? NrtStatus.TIMEOUT : worst;
            }
            done++;
        }
        return worst;
    }
}
