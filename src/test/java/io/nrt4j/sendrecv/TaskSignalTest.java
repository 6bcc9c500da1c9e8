package io.nrt4j.sendrecv;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.management.ThreadMXBean;
import io.nrt4j.NrtStatus;
import io.nrt4j.NrtTensor;
import io.nrt4j.concurrent.NanoClock;
import io.nrt4j.net.loopback.FaultPlan;
import io.nrt4j.net.loopback.FaultPlan.Operation;
import io.nrt4j.testing.Await;
import io.nrt4j.testing.Spin;
import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.SplittableRandom;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** How a service thread sleeps and wakes up: no wake-up is lost, and it is patient only when it is told to be. */
class TaskSignalTest {
    private static final Duration ROUND_LIMIT = Duration.ofSeconds(10);
    private static final int ROUNDS = 20_000;
    /** More ticks than patience takes. */
    private static final int MANY_TICKS = 260;

    private final ExecutorService pool = Executors.newFixedThreadPool(2);
    private final SplittableRandom random = new SplittableRandom(8);

    @AfterEach
    void closePool() {
        pool.shutdownNow();
    }

    /** A number that is raised round by round. */
    private static final class Counter {
        private volatile int value;

        void raise() {
            value++; // by one thread only
        }

        void await(final int wanted, final Object what) {
            final long deadlineNs = System.nanoTime() + ROUND_LIMIT.toNanos();
            for (int spins = 0; value < wanted; spins++) {
                if (System.nanoTime() - deadlineNs > 0) {
                    throw new AssertionError("a wake-up was lost in round " + wanted + ": " + what);
                }
                Spin.pause(spins);
            }
        }
    }

    /** Hits the sleeper at another point of its way to sleep each time. */
    private void spinALittle() {
        for (int i = random.nextInt(300); i > 0; i--) {
            Thread.onSpinWait();
        }
    }

    @Test
    void anAddedTaskIsSeenWhateverTheSleeperIsDoing() throws Exception {
        final TaskSignal signal = new TaskSignal(() -> false);
        final Counter done = new Counter();
        final Future<?> sleeper = pool.submit(() -> {
            for (int round = 0; round < ROUNDS; round++) {
                while (signal.count() == 0) {
                    signal.idle(0);
                }
                signal.retire();
                done.raise();
            }
        });
        for (int round = 1; round <= ROUNDS; round++) {
            spinALittle();
            signal.add();
            done.await(round, signal);
        }
        sleeper.get(ROUND_LIMIT.toSeconds(), TimeUnit.SECONDS);
        assertThat(signal.count()).isZero();
        assertThatThrownBy(signal::retire).isInstanceOf(IllegalStateException.class);
    }

    @Test
    void aWakeUpIsKeptUntilAnIdleHasSeenIt() throws Exception {
        final TaskSignal signal = new TaskSignal(() -> false);
        final Counter asked = new Counter();
        final Counter done = new Counter();
        final Future<?> sleeper = pool.submit(() -> {
            for (int round = 1; round <= ROUNDS; round++) {
                while (asked.value < round) {
                    signal.idle(0);
                }
                done.raise();
            }
        });
        for (int round = 1; round <= ROUNDS; round++) {
            spinALittle();
            asked.raise();
            signal.wakeUp();
            done.await(round, signal);
        }
        sleeper.get(ROUND_LIMIT.toSeconds(), TimeUnit.SECONDS);
    }

    @Test
    void aShutDownEndsEverySleepAndEveryLaterOne() throws Exception {
        for (int round = 0; round < ROUNDS / 10; round++) {
            final TaskSignal signal = new TaskSignal(() -> false);
            final AtomicBoolean running = new AtomicBoolean(true);
            final Future<?> sleeper = pool.submit(() -> {
                while (running.get()) {
                    signal.idle(0);
                }
                signal.idle(0); // it must not sleep any more
            });
            spinALittle();
            running.set(false);
            signal.shutDown();
            sleeper.get(ROUND_LIMIT.toSeconds(), TimeUnit.SECONDS);
        }
    }

    @Test
    void aPostIsSeenByAServiceThreadThatGoesToSleep() throws Exception {
        for (int round = 0; round < ROUNDS / 4; round++) {
            final AtomicBoolean inFlight = new AtomicBoolean();
            final TaskSignal signal = new TaskSignal(inFlight::get); // a new one each time: it goes to sleep at once
            final Future<?> sleeper = pool.submit(() -> {
                while (!inFlight.get()) {
                    signal.idle(0);
                }
            });
            spinALittle();
            inFlight.set(true);
            signal.postedToTransport();
            sleeper.get(ROUND_LIMIT.toSeconds(), TimeUnit.SECONDS);
        }
    }

    /** A post between the service thread's decision to sleep and its sleep; the thread asks the transport twice on its way. */
    private final class PostAt implements BooleanSupplier {
        private final int nth;
        private final AtomicInteger asked = new AtomicInteger();
        private final AtomicBoolean inFlight = new AtomicBoolean();
        private volatile TaskSignal signal;
        private volatile Future<?> poster;

        PostAt(final int nth) {
            this.nth = nth;
        }

        @Override
        public boolean getAsBoolean() {
            final boolean answer = inFlight.get();
            if (asked.incrementAndGet() == nth) {
                final Thread[] posting = new Thread[1];
                poster = pool.submit(() -> {
                    posting[0] = Thread.currentThread();
                    inFlight.set(true);
                    signal.postedToTransport();
                });
                // It has posted, and has either seen nobody asleep or waits for the lock under which this thread asks.
                Await.until(ROUND_LIMIT, "a post",
                    () -> inFlight.get() && (poster.isDone() || posting[0].getState() == Thread.State.WAITING));
            }
            return answer;
        }
    }

    @Test
    void aPostBeforeTheThreadIsAsleepIsSeenByItsLastLookAtTheTransport() throws Exception {
        assertWakesUp(new PostAt(1));
    }

    @Test
    void aPostAfterTheLastLookAtTheTransportWakesTheThread() throws Exception {
        assertWakesUp(new PostAt(2));
    }

    private void assertWakesUp(final PostAt post) throws Exception {
        final TaskSignal signal = new TaskSignal(post);
        post.signal = signal;
        pool.submit(() -> signal.idle(0)).get(ROUND_LIMIT.toSeconds(), TimeUnit.SECONDS);
        assertThat(post.asked.get()).isGreaterThanOrEqualTo(2);
        post.poster.get(ROUND_LIMIT.toSeconds(), TimeUnit.SECONDS);
        assertThat(signal.toString()).doesNotContain("asleep");
    }

    private static void idle(final TaskSignal signal, final int ticks) {
        for (int i = 0; i < ticks; i++) {
            signal.idle(0);
        }
    }

    @Test
    void itBacksOffToOneMillisecondAndToTenOnlyWhenToldToBePatient() {
        final TaskSignal signal = new TaskSignal(() -> false);
        signal.add();
        idle(signal, 1);
        assertThat(signal).asString().contains("backing off 1 us");
        idle(signal, MANY_TICKS);
        assertThat(signal).asString().contains("backing off 1000 us");
        signal.setPatient(true);
        idle(signal, 5);
        assertThat(signal).asString().contains("backing off 10000 us");
        signal.setPatient(false);
        idle(signal, 5);
        assertThat(signal).asString().contains("backing off 1000 us");
    }

    @Test
    void backingOffAllocatesNothing() {
        final TaskSignal signal = new TaskSignal(() -> false);
        signal.add();
        idle(signal, 20);
        final ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        final long me = Thread.currentThread().getId();
        final long before = threads.getThreadAllocatedBytes(me);
        idle(signal, 200);
        assertThat(threads.getThreadAllocatedBytes(me) - before).as("bytes of 200 back-offs").isLessThan(2_000);
    }

    @Test
    void anInterruptEndsAWaitAndIsTakenAway() throws Exception {
        for (final boolean task : new boolean[] {false, true}) {
            final TaskSignal signal = new TaskSignal(() -> false);
            if (task) {
                signal.add();
                signal.idle(0); // has seen it
            }
            pool.submit(() -> {
                Thread.currentThread().interrupt();
                signal.idle(0);
                assertThat(Thread.currentThread().isInterrupted()).isFalse();
            }).get(ROUND_LIMIT.toSeconds(), TimeUnit.SECONDS);
        }
    }

    @Test
    void freshWorkEndsThePatience() {
        final TaskSignal signal = new TaskSignal(() -> false);
        signal.add();
        signal.setPatient(true);
        idle(signal, 100);
        assertThat(signal).asString().as("not patient yet").contains("backing off 1000 us");
        idle(signal, MANY_TICKS - 100);
        assertThat(signal).asString().contains("backing off 10000 us");
        signal.add();
        idle(signal, 1);
        assertThat(signal).asString().as("a new task").contains("backing off 1 us");
        idle(signal, 100);
        assertThat(signal).asString().as("patience begins anew").contains("backing off 1000 us");
        idle(signal, MANY_TICKS - 100);
        assertThat(signal).asString().contains("backing off 10000 us");
        signal.setPatient(false);
        signal.idle(1);
        assertThat(signal).asString().as("somebody moved on").contains("backing off 1 us");
        signal.setPatient(true);
        idle(signal, 100);
        assertThat(signal).asString().contains("backing off 1000 us");
    }

    /** A peer that refuses is asked again and again: that is work in every other tick, and must not keep the thread awake. */
    @Test
    void questionsToAbsentPeersDoNotEndThePatience() {
        final TaskSignal signal = new TaskSignal(() -> false);
        signal.add();
        signal.setPatient(true);
        for (int i = 0; i < MANY_TICKS; i++) {
            signal.idle(i % 2);
        }
        assertThat(signal).asString().contains("backing off 10000 us");
    }

    /** A long back-off is a sleep for whoever posts to a transport that needs ticking. */
    @Test
    void aPostWakesAPatientThread() throws Exception {
        final AtomicBoolean inFlight = new AtomicBoolean();
        final TaskSignal signal = new TaskSignal(inFlight::get);
        signal.add();
        signal.setPatient(true);
        idle(signal, MANY_TICKS);
        boolean woken = false;
        for (int round = 0; round < 1000 && !woken; round++) { // it may have slept its ten milliseconds before the post
            final Future<?> sleeper = pool.submit(() -> signal.idle(0));
            while (!sleeper.isDone() && !signal.toString().contains("asleep")) {
                Thread.onSpinWait();
            }
            inFlight.set(true);
            signal.postedToTransport();
            sleeper.get(ROUND_LIMIT.toSeconds(), TimeUnit.SECONDS);
            inFlight.set(false);
            woken = signal.toString().contains("backing off 1 us");
        }
        assertThat(woken).isTrue();
    }

    /** What tells it: only peers that are not there may be waited for patiently, not a transfer that waits for room. */
    @Test
    void onlyAbsentPeersAreWaitedForPatiently() {
        final FaultPlan plan = new FaultPlan();
        try (EngineRig rig = new EngineRig(); NrtTensor tensor = NrtTensor.allocate(8)) {
            final NrtAsyncSendRecv a = rig.handDriven(builder -> builder, plan, NanoClock.SYSTEM);
            final NrtAsyncSendRecv b = rig.initialised(1);
            EngineRig.init(a, 0);
            final LncContext context = a.context(0);
            final EngineRig.Pair pair = EngineRig.begin(a, 0, b, 1);
            Await.until(EngineRig.LIMIT, pair::toString, () -> {
                context.service().doWork();
                return pair.send().connected();
            });
            assertThat(a.connect("127.0.0.40", 3, 0, new SendRecvComm())).isEqualTo(NrtStatus.SUCCESS);
            tick(context);
            assertThat(context.signal()).asString().contains("backing off 10000 us");
            plan.notYetUntilReleased(Operation.ISEND);
            assertThat(a.sendTensor(tensor, 0, 8, pair.send(), new SendRecvRequest())).isEqualTo(NrtStatus.SUCCESS);
            for (int i = 0; i < MANY_TICKS; i++) {
                context.signal().idle(context.service().doWork());
                assertThat(context.signal()).asString().contains("2 tasks").matches(".*backing off 1?\\d{1,3} us");
            }
            plan.releaseAll();
        }
    }

    private static void tick(final LncContext context) {
        for (int i = 0; i < MANY_TICKS; i++) {
            context.signal().idle(context.service().doWork());
        }
    }
}
