package io.nrt4j.proxy;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nrt4j.NrtConfig;
import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.testing.ModelChecking;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.jetbrains.lincheck.datastructures.Operation;
import org.jetbrains.lincheck.datastructures.Validate;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The registry of queues and a queue, model-checked against what they are for one thread. Workers are operations, not threads. */
@Tag("slow")
@Timeout(600)
class ProxyModelTest {
    private static final int GID = 3;
    private static final NrtConfig CONFIG = NrtConfig.builder(Map.of(), Map.of()).build();

    /** A group's queue that comes and goes with its users. */
    public static class Registry {
        private final SharedProxyQueues registry = new SharedProxyQueues(worker -> { });
        private final EncContext ctx = context();

        /** A communicator's life: it must never get a queue whose worker stops. */
        @Operation
        public boolean use() {
            final ProxyQueue queue = registry.acquire(GID, CONFIG);
            try {
                queue.append(new DoneInOneStep(ctx));
                return true;
            } catch (final NrtException ex) {
                return false;
            } finally {
                registry.release(queue);
            }
        }

        /** Two uses of one user overlap. */
        @Operation
        public boolean useTwice() {
            final ProxyQueue queue = registry.acquire(GID, CONFIG);
            final boolean same = registry.acquire(GID, CONFIG) == queue;
            registry.release(queue);
            registry.release(queue);
            return same;
        }

        @Validate
        public void nothingIsLeft() {
            check(registry.size() == 0 && registry.users(GID) == 0, "left in the registry: " + registry.users(GID));
        }
    }

    /** The same for one thread. */
    public static class SequentialRegistry {
        public boolean use() {
            return true;
        }

        public boolean useTwice() {
            return true;
        }
    }

    /** A registry that forgets to mark a queue that stops, in the fewest words: users are counted outside its lock. */
    public static class RegistryWithoutMark {
        private final EncContext ctx = context();
        private ProxyQueue queue;
        private int users;

        @Operation
        public boolean use() {
            final ProxyQueue mine;
            synchronized (this) {
                queue = users++ == 0 && queue == null ? new ProxyQueue(GID, false, List.of()) : queue;
                mine = queue;
            }
            try {
                mine.append(new DoneInOneStep(ctx));
                return true;
            } catch (final NrtException ex) {
                return false;
            } finally {
                final boolean last;
                synchronized (this) {
                    last = --users == 0;
                }
                if (last) {
                    mine.stop(0, TimeUnit.SECONDS);
                    synchronized (this) {
                        queue = null;
                    }
                }
            }
        }

        @Operation
        public boolean useTwice() {
            return true;
        }
    }

    /**
     * A queue, its producers, its worker, its consumers, and the owner that frees it. A pass steps one task after the other and is no
     * single step, so the answers are not specified; what is: at the end, every task that was taken was told once, or was forgotten with
     * its communicator.
     */
    public static class Queue {
        private final EncContext ctx = context();
        private final ProxyQueue queue = ctx.comm().queue();
        private final AtomicInteger taken = new AtomicInteger();
        private final AtomicInteger told = new AtomicInteger();

        @Operation
        public void append() {
            try {
                queue.append(new DoneInOneStep(ctx));
                taken.incrementAndGet();
            } catch (final NrtException ex) {
                check(ctx.comm().isFreed(), "refused");
            }
        }

        @Operation(nonParallelGroup = "worker")
        public void pass() {
            queue.doWork();
        }

        @Operation
        public void poll() {
            final TaskStatus status = new TaskStatus();
            if (queue.checkProxyTaskStatus(ctx, TaskType.NETWORK, status) == NrtStatus.SUCCESS && status.done()) {
                told.incrementAndGet();
            }
        }

        @Operation(runOnce = true)
        public void free() {
            queue.abandon(ctx.comm(), 0, TimeUnit.SECONDS);
        }

        @Validate
        public void everythingIsTold() {
            pass();
            pass();
            for (int i = queue.publishedStates(); i > 0; i--) {
                poll();
            }
            check(ctx.comm().liveTasks() == 0 && queue.publishedStates() == 0, "tasks or states are left");
            check(ctx.comm().isFreed() ? told.get() <= taken.get() : told.get() == taken.get(), told + " told of " + taken);
        }
    }

    /** For one thread the operations answer nothing either. */
    public static class SequentialQueue {
        public void append() {
            // Nothing to answer.
        }

        public void pass() {
            // Nothing to answer.
        }

        public void poll() {
            // Nothing to answer.
        }

        public void free() {
            // Nothing to answer.
        }
    }

    /** What a queue answers its producers and the owner, while its worker makes passes: taken or refused, and how many states there are. */
    public static class Producers {
        private final EncContext ctx = context();
        private final ProxyQueue queue = ctx.comm().queue();

        @Operation
        public boolean append() {
            try {
                queue.append(new DoneInOneStep(ctx));
                return true;
            } catch (final NrtException ex) {
                return false;
            }
        }

        @Operation
        public int published() {
            return queue.publishedStates();
        }

        @Operation(nonParallelGroup = "worker")
        public void pass() {
            queue.doWork();
        }

        @Operation(runOnce = true)
        public void free() {
            queue.abandon(ctx.comm(), 0, TimeUnit.SECONDS);
        }
    }

    /** The same for one thread. */
    public static class SequentialProducers {
        private int published;
        private boolean freed;

        public boolean append() {
            published += freed ? 0 : 1;
            return !freed;
        }

        public int published() {
            return published;
        }

        public void pass() {
            // States stay until they are polled.
        }

        public void free() {
            freed = true;
            published = 0;
        }
    }

    /** An owner that marks the communicator first and forgets the states in a second step. */
    public static class ProducersOfATornFree {
        private final EncContext ctx = context();
        private final ProxyQueue queue = ctx.comm().queue();

        @Operation
        public boolean append() {
            try {
                queue.append(new DoneInOneStep(ctx));
                return true;
            } catch (final NrtException ex) {
                return false;
            }
        }

        @Operation
        public int published() {
            return queue.publishedStates();
        }

        @Operation(runOnce = true)
        public void free() {
            ctx.comm().markFreed();
            queue.abandon(ctx.comm(), 0, TimeUnit.SECONDS);
        }
    }

    /** A task that is done in its first step. */
    static final class DoneInOneStep extends ProxyTask {
        DoneInOneStep(final EncContext ctx) {
            super(ctx, 0, TaskType.NETWORK);
        }

        @Override
        public NrtStatus step() {
            move(RunState.DONE);
            return NrtStatus.SUCCESS;
        }
    }

    private static EncContext context() {
        return EncContext.builder(GlobalComm.setup(new SharedProxyQueues(worker -> { }), CONFIG, 0, 0, new ScriptedProxy(), 1,
            new ProcessBarrier(1).of(0))).build();
    }

    private static void check(final boolean right, final String otherwise) {
        if (!right) {
            throw new IllegalStateException(otherwise);
        }
    }

    @Test
    void theRegistryHandsOutNoQueueThatStops() {
        ModelChecking.check(4, 60, Registry.class, SequentialRegistry.class);
    }

    @Test
    void aRegistryWithoutMarkDoes() {
        assertThatThrownBy(() -> ModelChecking.check(10, 400, RegistryWithoutMark.class, SequentialRegistry.class))
            .isInstanceOf(AssertionError.class);
    }

    @Test
    void theQueueForgetsNothing() {
        ModelChecking.check(6, 120, Queue.class, SequentialQueue.class);
    }

    @Test
    void theQueueIsLinearizableForItsProducers() {
        ModelChecking.check(6, 150, Producers.class, SequentialProducers.class);
    }

    @Test
    void aTornFreeIsNot() {
        assertThatThrownBy(() -> ModelChecking.check(20, 100, ProducersOfATornFree.class, SequentialProducers.class))
            .isInstanceOf(AssertionError.class);
    }
}
