package io.nrt4j.sendrecv;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import io.nrt4j.NrtStatus;
import io.nrt4j.NrtTensor;
import io.nrt4j.net.loopback.FaultPlan;
import io.nrt4j.net.loopback.FaultPlan.Operation;
import io.nrt4j.testing.Await;
import io.nrt4j.testing.HandClock;
import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * What is said about a request that failed or is late: operation, length, LNC, peer, state, elapsed time and first cause. By hand: nobody
 * but the test makes a duty cycle, and the clock stands still.
 */
class ErrorTextTest {
    private static final int POLLS = 20_000;
    private static final int WARM_UP = 2_000;
    private static final String RECV = "1234 bytes on recv communicator of lnc 1 with 127.0.0.1 lnc 0 ";

    private final EngineRig rig = new EngineRig();
    private final HandClock clock = new HandClock();
    private final FaultPlan plan = new FaultPlan();
    private final NrtTensor tensor = NrtTensor.allocate(4096);
    private final SendRecvRequest request = new SendRecvRequest();
    private NrtAsyncSendRecv a;
    private NrtAsyncSendRecv b;
    private EngineRig.Pair pair;

    @AfterEach
    void closeAll() {
        rig.close();
        tensor.close();
    }

    private void connect(final Duration requestLimit, final FaultPlan faults) {
        a = rig.handDriven(builder -> builder, null, clock);
        b = rig.handDriven(builder -> builder.requestTimeout(requestLimit), faults, clock);
        EngineRig.init(a, 0);
        EngineRig.init(b, 1);
        pair = EngineRig.begin(a, 0, b, 1);
        Await.until(EngineRig.LIMIT, () -> pair + " in " + a + " and " + b, () -> {
            tick();
            clock.advance(100, TimeUnit.MICROSECONDS);
            return pair.send().connected() && pair.recv().connected();
        });
    }

    private void tick() {
        a.context(0).service().doWork();
        b.context(1).service().doWork();
    }

    private void receive() {
        assertThat(b.recvTensor(tensor, 0, 1234, pair.recv(), request)).as(b.lastError()).isEqualTo(NrtStatus.SUCCESS);
    }

    @Test
    void aFailedRequestSaysWhatItWasAndHowLongItLasted() {
        connect(Duration.ZERO, plan);
        receive();
        tick();
        assertThat(b.testRequest(request)).isEqualTo(NrtStatus.SUCCESS);
        clock.advance(4321, TimeUnit.MILLISECONDS);
        plan.fail(Operation.TEST, 1, "the peer ended");
        assertThat(b.testRequest(request)).isEqualTo(NrtStatus.FAILURE);
        assertThat(b.lastError()).isEqualTo("testRequest: " + RECV
            + "failed in OFI_POSTED after 4321 ms: loopback test (planned fault): the peer ended");
    }

    /** The clock is not read for a request that is done at once. */
    @Test
    void aRequestThatHasFailedWhenItIsFirstTestedSaysSo() {
        connect(Duration.ZERO, plan);
        receive(); // whose memory is registered now
        tick();
        final SendRecvRequest next = new SendRecvRequest();
        assertThat(b.recvTensor(tensor, 0, 1234, pair.recv(), next)).as(b.lastError()).isEqualTo(NrtStatus.SUCCESS);
        plan.fail(Operation.TEST, 1, "the peer ended");
        assertThat(b.testRequest(next)).isEqualTo(NrtStatus.FAILURE);
        assertThat(b.lastError()).isEqualTo("testRequest: " + RECV
            + "failed in OFI_POSTED when it was tested first: loopback test (planned fault): the peer ended");
    }

    @Test
    void aRequestThatCouldNotBePostedSaysSo() {
        connect(Duration.ZERO, plan);
        receive();
        plan.fail(Operation.REG_MR, 1, "not enough pinned memory");
        clock.advance(7, TimeUnit.MILLISECONDS);
        tick();
        assertThat(b.testRequest(request)).isEqualTo(NrtStatus.FAILURE);
        assertThat(b.lastError()).isEqualTo("testRequest: " + RECV
            + "failed in ERROR after 7 ms: loopback regMr (planned fault): not enough pinned memory");
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aLateRequestSaysHowLateItIsAndPollingItAllocatesNothing(final boolean posted) {
        connect(Duration.ofMillis(50), null); // a fault plan allocates
        receive();
        if (posted) {
            tick();
        }
        clock.advance(50, TimeUnit.MILLISECONDS);
        assertThat(b.testRequest(request)).isEqualTo(NrtStatus.SUCCESS);
        clock.advance(25, TimeUnit.MILLISECONDS);
        assertThat(b.testRequest(request)).isEqualTo(NrtStatus.TIMEOUT);
        final String state = posted ? "OFI_POSTED" : "STASHED";
        assertThat(b.lastError()).isEqualTo("testRequest: " + RECV + "are still " + state + " after 75 ms, the limit is 50 ms");
        clock.advance(925, TimeUnit.MILLISECONDS);
        assertThat(allocatedByPolls(POLLS)).as("bytes of %s polls", POLLS).isLessThan(POLLS);
        assertThat(b.lastError()).contains("still " + state + " after 1000 ms");
        assertThat(b.flush(99)).isEqualTo(NrtStatus.FAILURE);
        assertThat(b.lastError()).as("of the last call that failed").contains("lnc 99");
    }

    private long allocatedByPolls(final int polls) {
        poll(WARM_UP);
        final ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        final long me = Thread.currentThread().getId();
        final long before = threads.getThreadAllocatedBytes(me);
        poll(polls);
        return threads.getThreadAllocatedBytes(me) - before;
    }

    private void poll(final int polls) {
        for (int i = 0; i < polls; i++) {
            if (b.testRequest(request) != NrtStatus.TIMEOUT) {
                throw new AssertionError(b.lastError());
            }
        }
    }

    /** Waiting for peers that do not come is no reason to allocate at each look. */
    @Test
    void dutyCyclesThatOnlyWaitForPeersAllocateNothing() {
        a = rig.handDriven(builder -> builder, null, clock);
        EngineRig.init(a, 0);
        for (int peer = 1; peer <= 3; peer++) {
            assertThat(a.connect("127.0.0.7" + peer, peer, 0, new SendRecvComm())).isEqualTo(NrtStatus.SUCCESS);
            assertThat(a.accept("127.0.0.7" + peer, peer, 0, new SendRecvComm())).isEqualTo(NrtStatus.SUCCESS);
        }
        final LncService service = a.context(0).service();
        for (int i = 0; i < WARM_UP; i++) {
            service.doWork(); // refused; the clock stands still, so that nobody is asked again
        }
        final ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        final long me = Thread.currentThread().getId();
        final long before = threads.getThreadAllocatedBytes(me);
        for (int i = 0; i < POLLS; i++) {
            service.doWork();
        }
        assertThat(threads.getThreadAllocatedBytes(me) - before).as("bytes of %s duty cycles", POLLS).isLessThan(POLLS);
        assertThat(a.context(0).communicatorCount()).isEqualTo(6);
    }
}
