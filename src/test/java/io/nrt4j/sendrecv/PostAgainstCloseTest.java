package io.nrt4j.sendrecv;

import static org.assertj.core.api.Assertions.assertThat;

import io.nrt4j.NrtStatus;
import io.nrt4j.NrtTensor;
import io.nrt4j.concurrent.NanoClock;
import io.nrt4j.testing.Await;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** A close that comes in the middle of a post, at each point where it makes a difference; the test is the closer, step by step. */
class PostAgainstCloseTest {
    private static final long SECONDS = EngineRig.LIMIT.toSeconds();

    private final EngineRig rig = new EngineRig();
    private final NrtTensor tensor = NrtTensor.allocate(64);
    private final ExecutorService pool = Executors.newFixedThreadPool(2);
    /** What the transport does before its next call of this name, once. */
    private final AtomicReference<Runnable> beforeLimit = new AtomicReference<>();
    private final AtomicReference<Runnable> beforeProgress = new AtomicReference<>();
    private NrtAsyncSendRecv a;
    private EngineRig.Pair pair;
    private Communicator comm;

    @BeforeEach
    void connect() {
        a = rig.add(new NrtAsyncSendRecv(rig.config(builder -> builder), new AlteredLoopback(this::alter),
            NanoClock.SYSTEM, context -> { }));
        final NrtAsyncSendRecv b = rig.initialised(1);
        EngineRig.init(a, 0);
        pair = EngineRig.begin(a, 0, b, 1);
        Await.until(EngineRig.LIMIT, pair::toString, () -> {
            a.context(0).service().doWork();
            return pair.send().connected();
        });
        comm = pair.send().communicator();
    }

    private Object alter(final String call) {
        final AtomicReference<Runnable> hook =
            call.equals("maxMessageBytes") ? beforeLimit : call.equals("needsProgress") ? beforeProgress : null;
        final Runnable once = hook == null ? null : hook.getAndSet(null);
        if (once != null) {
            once.run();
        }
        return null;
    }

    @AfterEach
    void closeAll() {
        pool.shutdownNow();
        rig.close();
        tensor.close();
    }

    private NrtStatus post() {
        return a.sendTensor(tensor, 0, 8, pair.send(), new SendRecvRequest());
    }

    /** What LncContext.close does to a communicator. */
    private void closeByHand() {
        a.context(0).net().close(Long.MAX_VALUE / 2);
        comm.kill();
        comm.reclaimSlots(true);
    }

    private void assertNothingIsHeld() {
        assertThat(tensor.storage().toString()).contains(" 0 in use");
        assertThat(comm.stash().isEmpty()).isTrue();
        assertThat(a.context(0).signal().count()).isZero();
    }

    /** The close finds the request stashed, and ends it, before it is in the ring; the poster must not end it once more. */
    @Test
    void betweenTheStashingOfARequestAndItsPlaceInTheRing() throws Exception {
        final RequestSlot slot = comm.freelist().pop();
        comm.freelist().push(slot); // the next one to be used
        final CountDownLatch inside = new CountDownLatch(1);
        final CountDownLatch goOn = new CountDownLatch(1);
        a.context(0).signal().wakeUp();
        a.context(0).signal().idle(0); // has seen all there was to see: the next one asks the transport
        beforeProgress.set(() -> {
            inside.countDown();
            awaitLatch(goOn);
        });
        // An idling service thread holds the lock that the poster needs between the two.
        final Future<?> idling = pool.submit(() -> a.context(0).signal().idle(0));
        assertThat(inside.await(SECONDS, TimeUnit.SECONDS)).isTrue();
        final Future<NrtStatus> posting = pool.submit(this::post);
        Await.until(EngineRig.LIMIT, slot::toString, () -> RequestSlot.statusOf(slot.stateWord()) == RequestStatus.STASHED);
        final long generation = RequestSlot.generationOf(slot.stateWord());
        closeByHand();
        assertThat(posting.isDone()).isFalse();
        goOn.countDown();
        assertThat(posting.get(SECONDS, TimeUnit.SECONDS)).isEqualTo(NrtStatus.INVALID_HANDLE);
        idling.get(SECONDS, TimeUnit.SECONDS);
        assertThat(RequestSlot.statusOf(slot.stateWord())).isEqualTo(RequestStatus.FREE);
        assertThat(RequestSlot.generationOf(slot.stateWord())).as("ended once").isEqualTo(generation + 1);
        assertNothingIsHeld();
    }

    private static void awaitLatch(final CountDownLatch latch) {
        try {
            assertThat(latch.await(SECONDS, TimeUnit.SECONDS)).isTrue();
        } catch (final InterruptedException ex) {
            Thread.currentThread().interrupt();
        }
    }

    @Test
    void afterTheCheckThatItIsOpenAndBeforeASlotIsTaken() {
        beforeLimit.set(this::closeByHand);
        assertThat(post()).isEqualTo(NrtStatus.INVALID_HANDLE);
        assertThat(a.lastError()).contains("closed");
        assertThat(comm.requestsInFlight()).as("its slot is back").isZero();
        assertNothingIsHeld();
    }

    @Test
    void theSameOnTheFastPath() {
        assertThat(post()).isEqualTo(NrtStatus.SUCCESS);
        a.context(0).service().doWork(); // registers the memory
        beforeLimit.set(this::closeByHand);
        assertThat(post()).isEqualTo(NrtStatus.INVALID_HANDLE);
        assertThat(a.lastError()).contains("lnc 0 is closed");
        assertThat(comm.requestsInFlight()).as("only the first's, which the close has ended").isEqualTo(1);
        assertNothingIsHeld();
    }
}
