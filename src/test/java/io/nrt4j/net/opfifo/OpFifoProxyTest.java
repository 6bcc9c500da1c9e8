package io.nrt4j.net.opfifo;

import static io.nrt4j.net.NetAddrMark.EXEC_COMPLETE;
import static io.nrt4j.net.NetAddrMark.NET_OP_COMPLETE;
import static io.nrt4j.net.NetAddrMark.NET_TRANSFER;
import static io.nrt4j.net.NetworkProxy.DONE;
import static io.nrt4j.net.NetworkProxy.IDLE;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.net.NetAddrMark;
import io.nrt4j.net.NetDestAddr;
import io.nrt4j.net.NetOpsInfo;
import io.nrt4j.net.NetSrcAddr;
import io.nrt4j.net.loopback.FaultPlan.Operation;
import java.lang.management.ManagementFactory;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The op-FIFO over loopback, ticked by hand: rank 0 sends, rank 1 receives. */
@Timeout(value = 120, unit = TimeUnit.SECONDS)
class OpFifoProxyTest {
    private static final NetSrcAddr[] NO_SENDS = {};
    private static final NetDestAddr[] NO_RECEIVES = {};
    private static final int SLICE = 100;

    private FifoPair pair;

    @BeforeEach
    void open() {
        pair = new FifoPair();
        fill();
    }

    private void fill() {
        final byte[] bytes = new byte[FifoPair.BYTES];
        new Random(1).nextBytes(bytes);
        pair.data[0].write(0, bytes);
    }

    @AfterEach
    void close() {
        pair.close();
    }

    // ---- what the tests build

    private NetSrcAddr[] sends(final int stream, final int count, final NetAddrMark middle) {
        final NetSrcAddr[] entries = new NetSrcAddr[count + 1];
        for (int i = 0; i < count; i++) {
            entries[i] = NetSrcAddr.send(0, pair.data[0].address() + (long) i * SLICE, pair.sendMrs[0][stream], SLICE,
                i == count - 1 ? NET_OP_COMPLETE : middle, 1);
        }
        entries[count] = NetSrcAddr.end();
        return entries;
    }

    private NetDestAddr[] receives(final int stream, final int count, final NetAddrMark middle) {
        final NetDestAddr[] entries = new NetDestAddr[count + 1];
        for (int i = 0; i < count; i++) {
            entries[i] = NetDestAddr.receive(0, pair.data[1].address() + (long) i * SLICE, pair.recvMrs[1][stream], SLICE,
                i == count - 1 ? NET_OP_COMPLETE : middle, 0);
        }
        entries[count] = NetDestAddr.end();
        return entries;
    }

    private NetOpsInfo.Builder sendInfo(final int count) {
        return NetOpsInfo.builder().entries(count, 0).completeSemaphores(pair.wordAddress(0, 0), 0)
            .handshakeSemaphores(pair.wordAddress(0, 1), 0);
    }

    private NetOpsInfo.Builder receiveInfo(final int count) {
        return NetOpsInfo.builder().entries(0, count).completeSemaphores(0, pair.wordAddress(1, 0))
            .handshakeSemaphores(0, pair.wordAddress(1, 1));
    }

    private void startSend(final int stream, final int block, final NetOpsInfo info, final NetSrcAddr... entries) {
        pair.proxies[0].start(pair.comms[0], stream, block, new NetOpsInfo[] {info}, entries, NO_RECEIVES);
    }

    private void startReceive(final int stream, final int block, final NetOpsInfo info, final NetDestAddr... entries) {
        pair.proxies[1].start(pair.comms[1], stream, block, new NetOpsInfo[] {info}, NO_SENDS, entries);
    }

    private void startBoth(final int stream, final int block, final int count) {
        startSend(stream, block, sendInfo(count).build(), sends(stream, count, NET_TRANSFER));
        startReceive(stream, block, receiveInfo(count).build(), receives(stream, count, NET_TRANSFER));
    }

    /** Ticks both ranks until both have said done. */
    private void run(final int stream, final int block) {
        boolean sent = false;
        boolean received = false;
        for (int i = 0; i < 10_000 && !(sent && received); i++) {
            sent |= sent || (pair.progress(0, stream, block) & DONE) != 0;
            received |= received || (pair.progress(1, stream, block) & DONE) != 0;
        }
        assertThat(sent && received).as("both done").isTrue();
    }

    private void assertArrived(final int count) {
        assertThat(pair.data[1].read(0, count * SLICE)).isEqualTo(pair.data[0].read(0, count * SLICE));
    }

    private static void assertRefused(final ThrowingCallable call, final String why) {
        assertThatThrownBy(call).isInstanceOfSatisfying(NrtException.class,
            ex -> assertThat(ex.status()).isEqualTo(NrtStatus.NETWORK_PROXY_FAILURE)).hasMessageContaining(why);
    }

    // ---- data and semaphores

    @Test
    void movesTheBytesAndTellsTheDeviceOnce() {
        startBoth(0, 0, 300);
        run(0, 0);
        assertArrived(300);
        assertThat(pair.word(0, 0).load()).isEqualTo(1);
        assertThat(pair.word(1, 0).load()).isEqualTo(1);
    }

    @Test
    void everyEntryThatEndsARoundCounts() {
        startSend(0, 0, sendInfo(10).semaShiftOffset(4).build(), sends(0, 10, NET_OP_COMPLETE));
        startReceive(0, 0, receiveInfo(10).build(), receives(0, 10, NET_OP_COMPLETE));
        run(0, 0);
        assertThat(pair.word(0, 0).load()).isEqualTo(10 << 4);
        assertThat(pair.word(1, 0).load()).isEqualTo(10);
        assertThat(pair.word(1, 1).load()).as("posted receives").isEqualTo(10);
    }

    @Test
    void anIncrementRegisterIsWrittenTheAmountToAdd() {
        pair.close();
        pair = new FifoPair(SemaphoreStyle.INCREMENT_REGISTER, Map.of());
        fill();
        startSend(0, 0, sendInfo(10).semaShiftOffset(4).build(), sends(0, 10, NET_OP_COMPLETE));
        startReceive(0, 0, receiveInfo(10).build(), receives(0, 10, NET_OP_COMPLETE));
        run(0, 0);
        assertThat(pair.word(0, 0).load()).isEqualTo(1 << 4);
        assertThat(pair.word(1, 0).load()).isEqualTo(1);
    }

    @Test
    void aTerminatorWithAnAddressIsATransferThatEndsItsOperation() {
        final NetSrcAddr send = NetSrcAddr.send(0, pair.data[0].address(), pair.sendMrs[0][0], SLICE, EXEC_COMPLETE, 1);
        final NetDestAddr receive = NetDestAddr.receive(0, pair.data[1].address(), pair.recvMrs[1][0], SLICE, EXEC_COMPLETE, 0);
        startSend(0, 0, sendInfo(1).build(), send);
        startReceive(0, 0, receiveInfo(1).build(), receive);
        run(0, 0);
        assertArrived(1);
        assertThat(pair.word(1, 0).load()).isEqualTo(1);
    }

    @Test
    void aBlockWithoutEntriesIsDoneAtOnce() {
        pair.proxies[0].start(pair.comms[0], 0, 5, new NetOpsInfo[0], NO_SENDS, NO_RECEIVES);
        assertThat(pair.progress(0, 0, 5)).isEqualTo(IDLE | DONE);
    }

    @Test
    void aSemaphoreCountsAPrefixOnly() {
        startSend(0, 0, sendInfo(3).build(), sends(0, 3, NET_OP_COMPLETE));
        startReceive(0, 0, receiveInfo(3).build(), receives(0, 3, NET_OP_COMPLETE));
        pair.plans[1].neverComplete(Operation.IRECV, 1);
        for (int i = 0; i < 20; i++) {
            assertThat(pair.progress(0, 0, 0) & pair.progress(1, 0, 0) & DONE).isZero();
        }
        assertThat(pair.word(1, 0).load()).as("the first has not completed").isZero();
        pair.plans[1].release(Operation.IRECV);
        for (int i = 0; i < 20 && (pair.progress(1, 0, 0) & DONE) == 0; i++) {
            Thread.onSpinWait();
        }
        assertThat(pair.word(1, 0).load()).isEqualTo(3);
    }

    // ---- windows, credits, early posting and completion

    @Test
    void atMost128InFlight() {
        startBoth(0, 0, 300);
        pair.progress(1, 0, 0);
        assertThat(pair.word(1, 1).load()).as("receives that are posted").isEqualTo(128);
        pair.progress(1, 0, 0);
        assertThat(pair.word(1, 1).load()).isEqualTo(128);
    }

    @Test
    void creditsBoundTheSendsInFlightAndComeBack() {
        startSend(0, 0, sendInfo(10).initialSendCredits(3).build(), sends(0, 10, NET_TRANSFER));
        pair.progress(0, 0, 0);
        pair.progress(0, 0, 0);
        assertThat(pair.plans[0].calls(Operation.ISEND)).isEqualTo(3);
        assertThat(pair.word(0, 1).load()).as("credits of the device").isEqualTo(3);
        startReceive(0, 0, receiveInfo(10).build(), receives(0, 10, NET_TRANSFER));
        run(0, 0);
        assertThat(pair.word(0, 1).load()).isEqualTo(13);
        assertArrived(10);
        run(0, 0);
        assertThat(pair.word(0, 1).load()).as("a second run finds the credits that the first gave back").isEqualTo(23);
    }

    @Test
    void earlyPostingPostsInStartAndOnlyIfAllowed() {
        startReceive(0, 0, receiveInfo(4).earlyRecvPosting(true).build(), receives(0, 4, NET_TRANSFER));
        assertThat(pair.word(1, 1).load()).isEqualTo(4);
        startReceive(1, 0, receiveInfo(4).build(), receives(1, 4, NET_TRANSFER));
        assertThat(pair.word(1, 1).load()).as("without the wish").isEqualTo(4);
        pair.close();
        pair = new FifoPair(SemaphoreStyle.RUNNING_COUNT, Map.of("NEURON_RT_DBG_EARLY_POSTING", "0"));
        fill();
        startReceive(0, 0, receiveInfo(4).earlyRecvPosting(true).build(), receives(0, 4, NET_TRANSFER));
        assertThat(pair.word(1, 1).load()).as("switched off").isZero();
    }

    @Test
    void earlyReceivesOfALaterBlockWaitForTheRunningOne() {
        startReceive(0, 0, receiveInfo(4).earlyRecvPosting(true).build(), receives(0, 4, NET_TRANSFER));
        startReceive(0, 1, receiveInfo(4).earlyRecvPosting(true).build(), receives(0, 4, NET_TRANSFER));
        assertThat(pair.plans[1].calls(Operation.IRECV)).isEqualTo(4);
        startSend(0, 0, sendInfo(4).build(), sends(0, 4, NET_TRANSFER));
        startSend(0, 1, sendInfo(4).build(), sends(0, 4, NET_TRANSFER));
        run(0, 0);
        run(0, 1);
        assertArrived(4);
    }

    /** The links are the first block's: it has not run, whether it waits for its trigger or only sends. */
    @Test
    void earlyReceivesWaitForABlockThatWasStartedBeforeAndHasNotRun() {
        startReceive(0, 0, receiveInfo(4).build(), receives(0, 4, NET_TRANSFER));
        startReceive(0, 1, receiveInfo(6).earlyRecvPosting(true).build(), receives(0, 6, NET_TRANSFER));
        assertThat(pair.plans[1].calls(Operation.IRECV)).as("block 0 comes first").isZero();
        startSend(0, 0, sendInfo(4).build(), sends(0, 4, NET_TRANSFER));
        startSend(0, 1, sendInfo(6).build(), sends(0, 6, NET_TRANSFER));
        run(0, 0);
        assertArrived(4);
        run(0, 1);
        assertArrived(6);
    }

    @Test
    void earlyReceivesWaitForABlockThatOnlySends() {
        pair.proxies[1].start(pair.comms[1], 0, 0, new NetOpsInfo[0], NO_SENDS, NO_RECEIVES);
        startReceive(0, 1, receiveInfo(4).earlyRecvPosting(true).build(), receives(0, 4, NET_TRANSFER));
        assertThat(pair.progress(1, 0, 0) & DONE).isEqualTo(DONE);
        startReceive(0, 2, receiveInfo(4).earlyRecvPosting(true).build(), receives(0, 4, NET_TRANSFER));
        assertThat(pair.plans[1].calls(Operation.IRECV)).as("block 1 comes first").isZero();
        startSend(0, 1, sendInfo(4).build(), sends(0, 4, NET_TRANSFER));
        run(0, 1);
        startReceive(0, 3, receiveInfo(4).earlyRecvPosting(true).build(), receives(0, 4, NET_TRANSFER));
        assertThat(pair.plans[1].calls(Operation.IRECV)).as("block 2 comes first; these are of block 1").isEqualTo(4);
    }

    @Test
    void aBlockThatIsGivenUpIsForgotten() {
        startReceive(0, 0, receiveInfo(4).build(), receives(0, 4, NET_TRANSFER));
        pair.proxies[1].abandon(pair.comms[1], 0, 0, new NrtException(NrtStatus.NETWORK_PROXY_FAILURE, "the other block is malformed"));
        assertThat(pair.proxies[1].blocks(pair.comms[1], 0)).isZero();
        startBoth(0, 1, 4);
        run(0, 1);
        assertArrived(4);
    }

    /** Nobody would run it, and whatever comes next would be matched with its receives. */
    @Test
    void aBlockThatIsGivenUpWithItsReceivesPostedFailsTheStreamAndNoOther() {
        startReceive(0, 0, receiveInfo(4).earlyRecvPosting(true).build(), receives(0, 4, NET_TRANSFER));
        startReceive(0, 1, receiveInfo(4).build(), receives(0, 4, NET_TRANSFER));
        startBoth(1, 0, 4);
        pair.proxies[1].abandon(pair.comms[1], 0, 0, new NrtException(NrtStatus.NETWORK_PROXY_FAILURE, "the other block is malformed"));
        assertRefused(() -> pair.progress(1, 0, 1), "block 0 had posted receives and was given up: the other block is malformed");
        assertRefused(() -> startReceive(0, 0, receiveInfo(4).build(), receives(0, 4, NET_TRANSFER)), "has failed before");
        run(1, 0);
    }

    @Test
    void earlyCompletionCountsWhenTheNetworkTookTheSend() {
        startSend(0, 0, sendInfo(2).earlySendCompletion(true).build(), sends(0, 2, NET_OP_COMPLETE));
        assertThat(pair.progress(0, 0, 0) & DONE).as("the memory is still in use").isZero();
        assertThat(pair.word(0, 0).load()).isEqualTo(2);
        startSend(1, 0, sendInfo(2).completeSemaphores(pair.wordAddress(0, 2), 0).build(), sends(1, 2, NET_OP_COMPLETE));
        pair.progress(0, 1, 0);
        assertThat(pair.word(0, 2).load()).as("without the wish").isZero();
    }

    @Test
    void noRoomIsNoFailure() {
        startBoth(0, 0, 10);
        pair.plans[0].notYet(Operation.ISEND, 5);
        pair.plans[1].notYet(Operation.IRECV, 5);
        assertThat(pair.progress(0, 0, 0)).isEqualTo(IDLE);
        run(0, 0);
        assertArrived(10);
    }

    @Test
    void twoOperationsToOnePeerKeepTheListsOrder() {
        // The entries alternate between the operations on the sending side; the receiving side has one operation.
        final NetSrcAddr[] entries = new NetSrcAddr[41];
        for (int i = 0; i < 40; i++) {
            entries[i] = NetSrcAddr.send(i % 2, pair.data[0].address() + (long) i * SLICE, pair.sendMrs[0][0], SLICE, NET_TRANSFER, 1);
        }
        entries[40] = NetSrcAddr.end();
        // The first operation has one credit only, so that the second would overtake it.
        final NetOpsInfo narrow = NetOpsInfo.builder().entries(20, 0).initialSendCredits(1).build();
        final NetOpsInfo wide = NetOpsInfo.builder().entries(20, 0).build();
        pair.proxies[0].start(pair.comms[0], 0, 0, new NetOpsInfo[] {narrow, wide}, entries, NO_RECEIVES);
        startReceive(0, 0, receiveInfo(40).build(), receives(0, 40, NET_TRANSFER));
        run(0, 0);
        assertArrived(40);
    }

    // ---- blocks

    @Test
    void aFinishedBlockRunsAgain() {
        startBoth(0, 0, 5);
        for (int round = 1; round <= 3; round++) {
            fill();
            run(0, 0);
            assertArrived(5);
            assertThat(pair.word(1, 0).load()).as("the count goes on").isEqualTo(round);
        }
    }

    @Test
    void anotherBlockIsPendingUntilTheRunningOneIsDone() {
        startBoth(0, 7, 3);
        startBoth(0, 8, 3);
        startBoth(0, 9, 3);
        assertThat(pair.progress(0, 0, 7) & DONE).isZero();
        assertThat(pair.progress(0, 0, 9)).isEqualTo(IDLE);
        assertThat(pair.progress(0, 0, 8)).isEqualTo(IDLE);
        assertThat(pair.plans[0].calls(Operation.ISEND)).as("only of the running block").isEqualTo(3);
        run(0, 7);
        assertThat(pair.progress(0, 0, 8)).as("block 9 was pending first").isEqualTo(IDLE);
        run(0, 9);
        run(0, 8);
    }

    @Test
    void stopForgetsWhatHasRunAndNothingElse() {
        startBoth(0, 0, 3);
        startBoth(0, 1, 3);
        startBoth(0, 2, 3);
        run(0, 0);
        pair.progress(0, 0, 1);
        pair.proxies[0].stop(pair.comms[0], 0);
        assertThat(pair.proxies[0].blocks(pair.comms[0], 0)).isEqualTo(2);
        assertRefused(() -> pair.progress(0, 0, 0), "not started");
        run(0, 1);
        run(0, 2);
    }

    @Test
    void aRunningBlockIsNotReplacedAFinishedOneIs() {
        startBoth(0, 0, 3);
        pair.progress(0, 0, 0);
        assertRefused(() -> startSend(0, 0, sendInfo(3).build(), sends(0, 3, NET_TRANSFER)), "is running");
        run(0, 0);
        startBoth(0, 0, 6);
        run(0, 0);
        assertArrived(6);
        assertThat(pair.proxies[0].blocks(pair.comms[0], 0)).isEqualTo(1);
    }

    @Test
    void streamsDoNotWaitForOneAnother() {
        startBoth(0, 0, 3);
        startBoth(1, 0, 3);
        pair.progress(0, 0, 0);
        run(1, 0);
        run(0, 0);
    }

    // ---- bad input

    @Test
    void listsMustEndInExecCompleteAndOnlyEnd() {
        final NetSrcAddr[] good = sends(0, 2, NET_TRANSFER);
        final NetSrcAddr[] endless = {good[0], good[1]};
        assertRefused(() -> startSend(0, 0, sendInfo(2).build(), endless), "EXEC_COMPLETE");
        final NetSrcAddr[] early = {good[0], good[2], good[1], good[2]};
        assertRefused(() -> startSend(0, 0, sendInfo(2).build(), early), "EXEC_COMPLETE");
        final NetDestAddr[] endlessReceives = {receives(0, 1, NET_TRANSFER)[0]};
        assertRefused(() -> startReceive(0, 0, receiveInfo(1).build(), endlessReceives), "EXEC_COMPLETE");
    }

    @Test
    void malformedListsAreRefused() {
        final NetSrcAddr[] good = sends(0, 2, NET_TRANSFER);
        assertRefused(() -> startSend(0, 0, sendInfo(3).build(), good), "announces");
        assertRefused(() -> startSend(0, 0, sendInfo(1).build(), good), "no such entry");
        assertRefused(() -> startSend(0, 0, sendInfo(9).build(), good), "announces");
        assertRefused(() -> startSend(0, 0, null, good), "null");
        assertRefused(() -> startSend(0, 0, sendInfo(2).build(), good[0], null, good[2]), "null");
        assertRefused(() -> startSend(0, 0, sendInfo(2).build(), (NetSrcAddr[]) null), "sources");
        assertRefused(() -> startSend(0, 0, sendInfo(2).semaShiftOffset(32).build(), good), "shifts");
        assertRefused(() -> startSend(0, 0, sendInfo(2).completeSemaphores(3, 0).build(), good), "word");
        final NetSrcAddr nowhere = NetSrcAddr.send(0, pair.data[0].address(), 0, 1, NET_OP_COMPLETE, 5);
        assertRefused(() -> startSend(0, 0, sendInfo(1).build(), nowhere, NetSrcAddr.end()), "rank 5");
        final NetSrcAddr self = NetSrcAddr.send(0, pair.data[0].address(), 0, 1, NET_OP_COMPLETE, 0);
        assertRefused(() -> startSend(0, 0, sendInfo(1).build(), self, NetSrcAddr.end()), "no link");
        final NetSrcAddr negative = NetSrcAddr.send(0, pair.data[0].address(), 0, -1, NET_OP_COMPLETE, 1);
        assertRefused(() -> startSend(0, 0, sendInfo(1).build(), negative, NetSrcAddr.end()), "size -1");
        final NetSrcAddr noMemory = NetSrcAddr.send(0, 0, 0, 1, NET_OP_COMPLETE, 1);
        assertRefused(() -> startSend(0, 0, sendInfo(1).build(), noMemory, NetSrcAddr.end()), "address 0x0");
        assertRefused(() -> pair.progress(0, 0, 0), "not started");
        startBoth(0, 0, 2);
        run(0, 0);
    }

    @Test
    void wrongHandlesStreamsAndBlocksAreRefused() {
        startBoth(0, 0, 2);
        assertRefused(() -> pair.proxies[0].progress(0, 0, 0), "no open communicator");
        assertRefused(() -> pair.proxies[0].progress(pair.comms[0] + (1L << 16), 0, 0), "no open communicator");
        assertRefused(() -> pair.progress(0, -1, 0), "no such stream");
        assertRefused(() -> pair.progress(0, FifoPair.STREAMS, 0), "no such stream");
        assertRefused(() -> pair.progress(0, 0, -1), "no such stream or block");
        pair.proxies[0].closeComm(pair.comms[0]);
        pair.proxies[0].closeComm(pair.comms[0]);
        assertRefused(() -> pair.progress(0, 0, 0), "no open communicator");
        assertRefused(() -> pair.proxies[0].stop(pair.comms[0], 0), "no open communicator");
    }

    // ---- failures

    @Test
    void aFailedPostFailsTheStreamForGoodAndNoOther() {
        startBoth(0, 0, 5);
        startBoth(1, 0, 5);
        pair.plans[0].fail(Operation.ISEND, 3, "the third slice");
        assertRefused(() -> pair.progress(0, 0, 0), "send 3 of 5 to rank 1");
        assertRefused(() -> pair.progress(0, 0, 0), "the third slice");
        assertRefused(() -> startSend(0, 1, sendInfo(1).build(), sends(0, 1, NET_TRANSFER)), "failed before");
        run(1, 0);
    }

    @Test
    void aFailedTransferIsAFailure() {
        startBoth(0, 0, 5);
        pair.plans[1].fail(Operation.TEST, 2, "broken wire");
        assertRefused(() -> {
            for (int i = 0; i < 10; i++) {
                pair.progress(0, 0, 0);
                pair.progress(1, 0, 0);
            }
        }, "broken wire");
    }

    @Test
    void aShorterMessageIsAFailureUnlessSizesAreDynamic() {
        final NetDestAddr longer = NetDestAddr.receive(0, pair.data[1].address(), pair.recvMrs[1][0], 2 * SLICE, NET_OP_COMPLETE, 0);
        startSend(0, 0, sendInfo(1).build(), sends(0, 1, NET_TRANSFER));
        startReceive(0, 0, receiveInfo(1).dynamicSizes(true).build(), longer, NetDestAddr.end());
        run(0, 0);
        startSend(0, 0, sendInfo(1).build(), sends(0, 1, NET_TRANSFER));
        startReceive(0, 0, receiveInfo(1).build(), longer, NetDestAddr.end());
        assertRefused(() -> run(0, 0), SLICE + " bytes came instead of " + 2 * SLICE);
    }

    @Test
    void aPeerThatIsGoneIsAFailure() {
        startBoth(0, 0, 5);
        pair.progress(1, 0, 0);
        pair.transports[0].close();
        assertRefused(() -> pair.progress(1, 0, 0), "from rank 0");
    }

    // ---- cost

    @Test
    void ticksAllocateNothing() {
        pair.close();
        pair = FifoPair.withoutPlans();
        startBoth(0, 0, 1000);
        final com.sun.management.ThreadMXBean threads = (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
        long least = Long.MAX_VALUE;
        for (int round = 0; round < 20; round++) {
            final long before = threads.getCurrentThreadAllocatedBytes();
            runQuietly();
            least = Math.min(least, threads.getCurrentThreadAllocatedBytes() - before);
        }
        assertThat(least).isZero();
    }

    private void runQuietly() {
        boolean sent = false;
        boolean received = false;
        while (!(sent && received)) {
            sent |= sent || (pair.progress(0, 0, 0) & DONE) != 0;
            received |= received || (pair.progress(1, 0, 0) & DONE) != 0;
        }
    }
}
