package io.nrt4j.proxy;

import io.nrt4j.NrtConfig;
import io.nrt4j.NrtStatus;
import io.nrt4j.NrtTensor;
import io.nrt4j.concurrent.AgentThread;
import io.nrt4j.net.NativeWord;
import io.nrt4j.net.NetOpsInfo;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/**
 * A registry with communicators over scripted network sides, and words of memory. With {@link #byHand()} no worker's thread runs:
 * the test calls the passes itself.
 */
final class ProxyRig implements AutoCloseable {
    static final Duration LIMIT = Duration.ofSeconds(20);
    static final FifoSet EMPTY = new FifoSet(new NetOpsInfo[0], new io.nrt4j.net.NetSrcAddr[0], new io.nrt4j.net.NetDestAddr[0]);
    private static final int WORDS = 64;

    final SharedProxyQueues registry;
    final List<AgentThread> workers = new ArrayList<>();
    final NrtTensor words = NrtTensor.allocate(4L * WORDS);
    private final List<GlobalComm> comms = new ArrayList<>();
    private final Map<String, String> settings = new HashMap<>();

    private ProxyRig(final boolean threads) {
        registry = new SharedProxyQueues(worker -> {
            synchronized (workers) {
                workers.add(worker);
            }
            if (threads) {
                worker.start();
            }
        });
        for (int i = 0; i < WORDS; i++) {
            word(i).store(DeviceTrigger.BLOCKED);
        }
    }

    static ProxyRig threaded() {
        return new ProxyRig(true);
    }

    static ProxyRig byHand() {
        return new ProxyRig(false);
    }

    ProxyRig with(final String variable, final String value) {
        settings.put(variable, value);
        return this;
    }

    NrtConfig config() {
        return NrtConfig.builder(Map.of(), settings).build();
    }

    GlobalComm comm(final int necDev, final int rank, final io.nrt4j.net.NetworkProxy proxy, final HostBarrier barrier) {
        final GlobalComm comm = GlobalComm.setup(registry, config(), necDev, rank, proxy, 1, barrier);
        synchronized (comms) {
            comms.add(comm);
        }
        return comm;
    }

    GlobalComm comm(final int necDev, final io.nrt4j.net.NetworkProxy proxy) {
        return comm(necDev, necDev, proxy, alone());
    }

    /** The barrier of a single rank. */
    static HostBarrier alone() {
        return new ProcessBarrier(1).of(0);
    }

    /** A context with one empty block on stream 0. */
    static EncContext.Builder context(final GlobalComm comm) {
        return EncContext.builder(comm).block(0, 0, EMPTY);
    }

    NativeWord word(final int index) {
        return NativeWord.at(address(index));
    }

    long address(final int index) {
        return words.address() + 4L * index;
    }

    static NrtStatus consume(final EncContext ctx, final TaskType type, final TaskStatus status) {
        return ProxyTasks.consumeTaskStatus(ctx, type, status, LIMIT, LIMIT, text -> { });
    }

    @Override
    public void close() {
        final List<GlobalComm> left;
        synchronized (comms) {
            left = List.copyOf(comms);
        }
        for (final GlobalComm comm : left) {
            if (workers.stream().noneMatch(worker -> worker.thread().isAlive())) {
                // By hand: the passes that fail the tasks are the test's.
                comm.queue().abandon(comm, 0, TimeUnit.MILLISECONDS);
                comm.queue().doWork();
            }
            comm.close();
        }
        words.close();
    }
}
