package io.nrt4j.net.libnccom;

import static io.nrt4j.net.NetAddrMark.EXEC_COMPLETE;
import static io.nrt4j.net.NetAddrMark.NET_OP_COMPLETE;
import static io.nrt4j.net.NetAddrMark.NET_TRANSFER;
import static io.nrt4j.net.NetworkProxy.DONE;
import static io.nrt4j.net.NetworkProxy.IDLE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.management.ThreadMXBean;
import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.NrtTensor;
import io.nrt4j.net.NativeWord;
import io.nrt4j.net.NetAddrMark;
import io.nrt4j.net.NetDestAddr;
import io.nrt4j.net.NetOpsInfo;
import io.nrt4j.net.NetSrcAddr;
import io.nrt4j.testing.Await;
import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;

/** The seam over the stand-in, ticked by hand: rank 0 sends, rank 1 receives. */
@ExtendWith(StandInGuard.class)
@Timeout(value = 120, unit = TimeUnit.SECONDS)
class LibnccomNetworkProxyTest {
    private static final Duration LIMIT = Duration.ofSeconds(20);
    private static final NetSrcAddr[] NO_SENDS = {};
    private static final NetDestAddr[] NO_RECEIVES = {};
    private static final int SLICE = 100;
    private static final int BYTES = 300 * SLICE;
    private static int root = 1;

    private final NrtTensor out = NrtTensor.allocate(BYTES);
    private final NrtTensor in = NrtTensor.allocate(BYTES);
    private final NrtTensor words = NrtTensor.allocate(64);
    private LibnccomNetworkProxy proxy;
    private long sender;
    private long receiver;
    private long outMr;
    private long inMr;

    @BeforeEach
    void open() {
        proxy = new LibnccomNetworkProxy(NccomStandIn.config().build());
        final String rootId = "127.0.0.1:" + ProcessHandle.current().pid() + "-" + root++;
        sender = proxy.openComm(0, 2, rootId, 0);
        receiver = proxy.openComm(1, 2, rootId, 0);
        outMr = proxy.regMr(sender, out.address(), BYTES);
        inMr = proxy.regMr(receiver, in.address(), BYTES);
        final byte[] bytes = new byte[BYTES];
        new Random(1).nextBytes(bytes);
        out.write(0, bytes);
    }

    @AfterEach
    void close() {
        proxy.close();
        out.close();
        in.close();
        words.close();
        NccomStandIn.assertNothingOpen();
    }

    private NativeWord word(final int index) {
        return NativeWord.at(words.address() + 4L * index);
    }

    private NetSrcAddr[] sends(final int count, final NetAddrMark middle) {
        final NetSrcAddr[] entries = new NetSrcAddr[count + 1];
        for (int i = 0; i < count; i++) {
            entries[i] = NetSrcAddr.send(0, out.address() + (long) i * SLICE, outMr, SLICE,
                i == count - 1 ? NET_OP_COMPLETE : middle, 1);
        }
        entries[count] = NetSrcAddr.end();
        return entries;
    }

    private NetDestAddr[] receives(final int count, final NetAddrMark middle) {
        final NetDestAddr[] entries = new NetDestAddr[count + 1];
        for (int i = 0; i < count; i++) {
            entries[i] = NetDestAddr.receive(0, in.address() + (long) i * SLICE, inMr, SLICE,
                i == count - 1 ? NET_OP_COMPLETE : middle, 0);
        }
        entries[count] = NetDestAddr.end();
        return entries;
    }

    private void startBoth(final int stream, final int block, final int count) {
        startSend(stream, block, sends(count, NET_TRANSFER));
        startReceive(stream, block, receives(count, NET_TRANSFER));
    }

    private void startSend(final int stream, final int block, final NetSrcAddr... entries) {
        proxy.start(sender, stream, block, new NetOpsInfo[] {NetOpsInfo.builder().entries(entries.length, 0).semaShiftOffset(4)
            .completeSemaphores(words.address(), 0).build()}, entries, NO_RECEIVES);
    }

    private void startReceive(final int stream, final int block, final NetDestAddr... entries) {
        proxy.start(receiver, stream, block, new NetOpsInfo[] {NetOpsInfo.builder().entries(0, entries.length)
            .completeSemaphores(0, words.address() + 4).build()}, NO_SENDS, entries);
    }

    private void run(final int stream, final int block) {
        final boolean[] done = new boolean[2];
        Await.until(LIMIT, "both are done", () -> {
            for (int i = 0; i < 100 && !(done[0] && done[1]); i++) {
                done[0] |= !done[0] && (proxy.progress(sender, stream, block) & DONE) != 0;
                done[1] |= !done[1] && (proxy.progress(receiver, stream, block) & DONE) != 0;
            }
            return done[0] && done[1];
        });
    }

    private static void assertRefused(final ThrowingCallable call, final String why) {
        assertThatThrownBy(call).isInstanceOfSatisfying(NrtException.class,
            ex -> assertThat(ex.status()).isEqualTo(NrtStatus.NETWORK_PROXY_FAILURE)).hasMessageContaining(why);
    }

    @Test
    void movesTheBytesAndStoresTheAmountToAdd() {
        startBoth(0, 0, 300);
        run(0, 0);
        assertThat(in.read(0, BYTES)).isEqualTo(out.read(0, BYTES));
        assertThat(word(0).load()).isEqualTo(1 << 4);
        assertThat(word(1).load()).isEqualTo(1);
    }

    @Test
    void withoutTheOtherEndATickIsIdleAndNotDone() {
        startReceive(0, 0, receives(3, NET_TRANSFER));
        Await.until(LIMIT, "nothing to do", () -> proxy.progress(receiver, 0, 0) == IDLE);
        startSend(0, 0, sends(3, NET_TRANSFER));
        run(0, 0);
    }

    /** The library works on the records of the start, which therefore must still be there. */
    @Test
    void aFinishedBlockRunsAgain() {
        startBoth(2, 7, 10);
        for (int round = 0; round < 5; round++) {
            in.write(0, new byte[BYTES]);
            System.gc();
            run(2, 7);
            assertThat(in.read(0, 10 * SLICE)).isEqualTo(out.read(0, 10 * SLICE));
        }
        startBoth(2, 7, 20);
        run(2, 7);
        assertThat(in.read(0, 20 * SLICE)).isEqualTo(out.read(0, 20 * SLICE));
    }

    @Test
    void anotherBlockWaitsAndAStopForgetsWhatHasRun() {
        startReceive(0, 1, receives(5, NET_TRANSFER));
        startReceive(0, 2, receives(5, NET_TRANSFER));
        startSend(0, 1, sends(5, NET_TRANSFER));
        startSend(0, 2, sends(5, NET_TRANSFER));
        assertThat(proxy.progress(receiver, 0, 1) & DONE).isZero();
        assertThat(proxy.progress(receiver, 0, 2) & DONE).as("block 1 runs").isZero();
        run(0, 1);
        run(0, 2);
        proxy.stop(sender, 0);
        proxy.stop(receiver, 0);
        assertRefused(() -> proxy.progress(sender, 0, 1), "1206 (NETWORK_PROXY_FAILURE)");
    }

    @Test
    void listsThatDoNotEndInExecCompleteAreRefused() {
        final NetSrcAddr[] whole = sends(3, NET_TRANSFER);
        final NetSrcAddr[] cut = java.util.Arrays.copyOf(whole, 3);
        assertRefused(() -> startSend(0, 0, cut), "neuronStartNetworkProxy of stream 0, block 0 answered 1 (FAILURE)");
        assertRefused(() -> startReceive(0, 0, NetDestAddr.end(), NetDestAddr.end()), "neuronStartNetworkProxy");
        assertRefused(() -> startSend(0, 0, whole[0], null), "null");
        assertRefused(() -> proxy.start(sender, 0, 0, null, NO_SENDS, NO_RECEIVES), "null");
        assertRefused(() -> proxy.start(sender, 4, 0, new NetOpsInfo[0], NO_SENDS, NO_RECEIVES), "no stream 4");
        assertRefused(() -> proxy.progress(sender, -1, 0), "no stream -1");
    }

    /** The library may let nobody go before all ranks of the communicator have come, in whichever threads they are. */
    @Test
    void twoRanksOfOneProcessJoinThoughEachWaitsForTheOther() throws Exception {
        NccomStandIn.set("INIT_WAITS", 1);
        NccomStandIn.configure();
        final String rootId = "127.0.0.1:" + ProcessHandle.current().pid() + "-" + root++;
        final CompletableFuture<Long> other = CompletableFuture.supplyAsync(() -> proxy.openComm(1, 2, rootId, 0));
        final long mine = proxy.openComm(0, 2, rootId, 0);
        assertThat(other.get()).isNotEqualTo(mine);
        proxy.closeComm(mine);
        proxy.closeComm(other.get());
    }

    @Test
    void bothListsMayBeEmpty() {
        proxy.start(sender, 0, 0, new NetOpsInfo[0], NO_SENDS, NO_RECEIVES);
        assertThat(proxy.progress(sender, 0, 0) & DONE).isEqualTo(DONE);
    }

    @Test
    void aTransferMayEndTheList() {
        startSend(0, 0, new NetSrcAddr(0, 0, out.address(), outMr, SLICE, EXEC_COMPLETE, 1));
        startReceive(0, 0, new NetDestAddr(0, 0, in.address(), inMr, SLICE, EXEC_COMPLETE, 0));
        run(0, 0);
        assertThat(in.read(0, SLICE)).isEqualTo(out.read(0, SLICE));
        assertThat(word(1).load()).isEqualTo(1);
    }

    @Test
    void aShorterMessageThanTheEntrySaysFailsTheStream() {
        startSend(0, 0, NetSrcAddr.send(0, out.address(), outMr, SLICE - 1, NET_OP_COMPLETE, 1), NetSrcAddr.end());
        startReceive(0, 0, receives(1, NET_TRANSFER));
        Await.until(LIMIT, "the failure", () -> {
            try {
                proxy.progress(sender, 0, 0);
                proxy.progress(receiver, 0, 0);
                return false;
            } catch (final NrtException ex) {
                assertThat(ex).hasMessage("neuronNetworkProxyProgress of stream 0, block 0 answered 1206 (NETWORK_PROXY_FAILURE)");
                return true;
            }
        });
    }

    @Test
    void theErrorsOfTheLibraryAreNamed() {
        startBoth(0, 0, 3);
        NccomStandIn.reset();
        NccomStandIn.set("FAIL", "neuronNetworkProxyProgress:2:6,neuronStopNetworkProxy:1:7,neuronNetRegMr:1:4,neuronInitGlobalComm:1");
        NccomStandIn.configure();
        proxy.progress(sender, 0, 0);
        assertRefused(() -> proxy.progress(sender, 0, 0), "neuronNetworkProxyProgress of stream 0, block 0 answered 6 (HW_ERROR)");
        assertRefused(() -> proxy.stop(sender, 0), "neuronStopNetworkProxy of stream 0 answered 7 (QUEUE_FULL)");
        assertThatThrownBy(() -> proxy.regMr(sender, out.address(), 10)).hasMessageContaining("answered 4 (RESOURCE)");
        assertThatThrownBy(() -> proxy.openComm(0, 1, "1:1", 0)).hasMessageContaining("answered 1 (FAILURE)");
    }

    @Test
    void aClosedCommunicatorTakesNothingAndAClosedPeerFailsTheStream() {
        startBoth(0, 0, 3);
        run(0, 0);
        proxy.closeComm(sender);
        proxy.closeComm(sender);
        assertRefused(() -> proxy.progress(sender, 0, 0), "is no open communicator");
        assertRefused(() -> startSend(0, 0, sends(1, NET_TRANSFER)), "is no open communicator");
        Await.until(LIMIT, "the failure", () -> {
            try {
                proxy.progress(receiver, 0, 0);
                return false;
            } catch (final NrtException ex) {
                return ex.status() == NrtStatus.NETWORK_PROXY_FAILURE;
            }
        });
        assertThatThrownBy(() -> proxy.deregMr(receiver, 4711)).isInstanceOf(NrtException.class);
        proxy.deregMr(receiver, inMr);
    }

    @Test
    void aTickAllocatesNothing() {
        startReceive(0, 0, receives(3, NET_TRANSFER));
        final ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        final int ticks = 50_000;
        int flags = 0;
        long before = 0;
        for (int i = 0; i < 2 * ticks; i++) {
            if (i == ticks) {
                before = threads.getThreadAllocatedBytes(Thread.currentThread().getId());
            }
            flags |= proxy.progress(receiver, 0, 0);
        }
        assertThat(threads.getThreadAllocatedBytes(Thread.currentThread().getId()) - before).isLessThan(ticks / 10);
        assertThat(flags & DONE).isZero();
    }
}
