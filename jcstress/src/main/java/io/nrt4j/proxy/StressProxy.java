package io.nrt4j.proxy;

import io.nrt4j.NrtConfig;
import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.concurrent.AgentThread;
import io.nrt4j.net.NetDestAddr;
import io.nrt4j.net.NetOpsInfo;
import io.nrt4j.net.NetSrcAddr;
import io.nrt4j.net.NetworkProxy;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** A registry, and a communicator on a queue of its own, whose worker is a thread or played by an actor. */
final class StressProxy {
    static final NrtConfig CONFIG = NrtConfig.builder(Map.of(), Map.of()).build();

    /** Workers that were started, in order. */
    final List<AgentThread> workers = new ArrayList<>();
    final SharedProxyQueues registry;

    StressProxy(final boolean threads) {
        registry = new SharedProxyQueues(worker -> {
            synchronized (workers) {
                workers.add(worker);
            }
            if (threads) {
                worker.start();
            }
        });
    }

    int workersStarted() {
        synchronized (workers) {
            return workers.size();
        }
    }

    GlobalComm comm() {
        return GlobalComm.setup(registry, CONFIG, 0, 0, new NoNetwork(), 1, new ProcessBarrier(1).of(0));
    }

    /** Whether a queue takes tasks: one whose worker was stopped does not. */
    static boolean takesTasks(final ProxyQueue queue, final EncContext ctx) {
        try {
            queue.append(new OneStep(ctx));
            return true;
        } catch (final NrtException ex) {
            return false;
        }
    }

    /** A task that is done in its first step. */
    static final class OneStep extends ProxyTask {
        OneStep(final EncContext ctx) {
            super(ctx, 0, TaskType.NETWORK);
        }

        @Override
        public NrtStatus step() {
            move(RunState.DONE);
            return NrtStatus.SUCCESS;
        }

        /** For who plays the worker. */
        void failNow(final NrtException cause) {
            fail(cause);
        }
    }

    private static final class NoNetwork implements NetworkProxy {
        @Override
        public void start(
            final long comm, final int stream, final int basicBlock, final NetOpsInfo[] operations, final NetSrcAddr[] sources,
            final NetDestAddr[] destinations) {
            // There is nothing to prepare.
        }

        @Override
        public int progress(final long comm, final int stream, final int basicBlock) {
            return DONE;
        }

        @Override
        public void stop(final long comm, final int stream) {
            // There is nothing to end.
        }
    }
}
