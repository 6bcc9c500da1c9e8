package io.nrt4j.concurrent;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** The thread around a duty cycle. */
class AgentThreadTest {
    /** An agent that runs what it is given and notes what happens to it. */
    private static final class NotingAgent implements Agent {
        private final List<String> notes;
        private final Runnable work;

        private NotingAgent(final List<String> notes, final Runnable work) {
            this.notes = notes;
            this.work = work;
        }

        @Override
        public void onStart() {
            notes.add("start");
        }

        @Override
        public int doWork() {
            work.run();
            return 0;
        }

        @Override
        public void onClose() {
            notes.add("close");
        }

        @Override
        public String roleName() {
            return "nrt4j-noting";
        }
    }

    /** Waits until it is woken, however long. */
    private static final class WaitForWakeUp implements IdleStrategy {
        private final Semaphore wakeUps = new Semaphore(0);

        @Override
        public void idle(final int workCount) {
            wakeUps.acquireUninterruptibly();
        }

        @Override
        public void wakeUp() {
            wakeUps.release();
        }
    }

    private final List<String> notes = new CopyOnWriteArrayList<>();
    private final WaitForWakeUp idle = new WaitForWakeUp();
    private final CountDownLatch unblock = new CountDownLatch(1);
    private AgentThread made;

    private AgentThread agent(final Runnable work) {
        made = new AgentThread(new NotingAgent(notes, work), idle, ex -> notes.add("failed: " + ex.getMessage()));
        return made;
    }

    /** A thread whose agent blocks, as long as the test wants. */
    private AgentThread startBlocked() {
        final CountDownLatch blocked = new CountDownLatch(1);
        final AgentThread thread = agent(() -> {
            blocked.countDown();
            await(unblock);
        }).start();
        await(blocked);
        return thread;
    }

    @AfterEach
    void endThread() {
        unblock.countDown();
        if (made != null) {
            assertThat(made.close(20, TimeUnit.SECONDS)).as("end of the thread").isTrue();
        }
    }

    private static void await(final CountDownLatch latch) {
        boolean interrupted = false;
        while (true) {
            try {
                if (!latch.await(30, TimeUnit.SECONDS)) {
                    throw new AssertionError("not released in 30 s");
                }
                break;
            } catch (final InterruptedException ex) {
                interrupted = true;
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    @Test
    void runsOnADaemonThreadOfItsNameUntilItIsClosed() {
        final CountDownLatch ran = new CountDownLatch(3);
        final AtomicReference<Thread> on = new AtomicReference<>();
        final AgentThread thread = agent(() -> {
            on.set(Thread.currentThread());
            ran.countDown();
        }).start();
        idle.wakeUp();
        idle.wakeUp();
        await(ran);
        assertThat(thread.close(20, TimeUnit.SECONDS)).isTrue();
        assertThat(thread.close(20, TimeUnit.SECONDS)).isTrue();
        assertThat(on.get()).isSameAs(thread.thread());
        assertThat(thread.thread().isDaemon()).isTrue();
        assertThat(thread.thread().getName()).isEqualTo("nrt4j-noting");
        assertThat(thread.thread().isAlive()).isFalse();
        assertThat(thread.failure()).isNull();
        assertThat(notes).containsExactly("start", "close");
    }

    @Test
    void closeWakesAnIdleAgent() {
        final CountDownLatch ran = new CountDownLatch(1);
        final AgentThread thread = agent(ran::countDown).start();
        await(ran);
        assertThat(thread.close(Long.MAX_VALUE, TimeUnit.DAYS)).isTrue();
    }

    @Test
    void closeWithoutStartEndsAtOnce() {
        final AgentThread thread = agent(() -> { });
        assertThat(thread.close(20, TimeUnit.SECONDS)).isTrue();
        assertThat(notes).isEmpty();
    }

    @Test
    void aFailedDutyCycleIsToldBeforeTheCloseAndKept() {
        final AssertionError error = new AssertionError("broken");
        final CountDownLatch ran = new CountDownLatch(1);
        final AgentThread thread = agent(() -> {
            ran.countDown();
            throw error;
        }).start();
        await(ran);
        assertThat(thread.close(20, TimeUnit.SECONDS)).isTrue();
        assertThat(thread.failure()).isSameAs(error);
        assertThat(notes).containsExactly("start", "failed: broken", "close");
    }

    @Test
    void aFailingStartIsAFailureToo() {
        final CountDownLatch told = new CountDownLatch(1);
        made = new AgentThread(new Agent() {
            @Override
            public void onStart() {
                throw new IllegalStateException("no start");
            }

            @Override
            public int doWork() {
                throw new AssertionError("must not run");
            }

            @Override
            public String roleName() {
                return "nrt4j-broken";
            }
        }, idle, ex -> {
            notes.add(ex.getMessage());
            told.countDown();
        }).start();
        await(told);
        assertThat(made.close(20, TimeUnit.SECONDS)).isTrue();
        assertThat(made.failure()).hasMessage("no start");
        assertThat(notes).containsExactly("no start");
    }

    @Test
    void closeOnTheAgentsOwnThreadDoesNotWait() throws Exception {
        final CompletableFuture<Boolean> answer = new CompletableFuture<>();
        final AtomicReference<AgentThread> self = new AtomicReference<>();
        final CountDownLatch ready = new CountDownLatch(1);
        self.set(agent(() -> {
            await(ready);
            answer.complete(self.get().close(20, TimeUnit.SECONDS));
        }));
        self.get().start();
        ready.countDown();
        assertThat(answer.get(20, TimeUnit.SECONDS)).isFalse();
        self.get().thread().join(20_000);
        assertThat(self.get().thread().isAlive()).isFalse();
        assertThat(notes).containsExactly("start", "close");
    }

    @Test
    void closeOfAnAgentThatBlocksIsBounded() {
        final AgentThread thread = startBlocked();
        final long start = System.nanoTime();
        assertThat(thread.close(100, TimeUnit.MILLISECONDS)).isFalse();
        final long elapsedMs = TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - start);
        assertThat(elapsedMs).isBetween(99L, 5_000L);
        assertThat(thread.close(0, TimeUnit.MILLISECONDS)).isFalse();
        unblock.countDown();
        assertThat(thread.close(20, TimeUnit.SECONDS)).isTrue();
    }

    @Test
    void anInterruptedCloserStillWaitsAndStaysInterrupted() {
        final AgentThread thread = startBlocked();
        Thread.currentThread().interrupt();
        assertThat(thread.close(50, TimeUnit.MILLISECONDS)).isFalse();
        assertThat(Thread.interrupted()).isTrue();
    }

    @Test
    void whatIsMissingIsRefused() {
        final Agent agent = new NotingAgent(notes, () -> { });
        assertThatThrownBy(() -> new AgentThread(null, idle, ex -> { })).isInstanceOf(NullPointerException.class);
        assertThatThrownBy(() -> new AgentThread(agent, null, ex -> { })).isInstanceOf(NullPointerException.class);
        assertThatThrownBy(() -> new AgentThread(agent, idle, null)).isInstanceOf(NullPointerException.class);
    }

    /** The thread ends while the close that gave it up says where it is. */
    @Test
    void aCloseThatGivesUpAtTheLastMomentStillAnswers() {
        final Agent spinning = new Agent() {
            @Override
            public int doWork() {
                return 0;
            }

            @Override
            public String roleName() {
                return "spinning";
            }
        };
        final IdleStrategy busy = new IdleStrategy() {
            @Override
            public void idle(final int workCount) {
                Thread.onSpinWait();
            }

            @Override
            public void wakeUp() {
                // It never waits.
            }
        };
        for (int i = 0; i < 2000; i++) {
            final AgentThread thread = new AgentThread(spinning, busy, ex -> { }).start();
            thread.close(i % 50 * 500, TimeUnit.NANOSECONDS);
            thread.awaitEnd();
        }
    }
}
