package io.nrt4j.proxy;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.net.NetDestAddr;
import io.nrt4j.net.NetOpsInfo;
import io.nrt4j.net.NetSrcAddr;
import io.nrt4j.net.NetworkProxy;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** A network side that answers what a test tells it to, and keeps a list of the calls. Any thread. */
final class ScriptedProxy implements NetworkProxy {
    private final List<String> calls = new ArrayList<>();
    private final Map<String, ArrayDeque<Integer>> answers = new HashMap<>();
    private final Map<String, RuntimeException> failures = new HashMap<>();
    private int otherwise = IDLE;

    /** Answers of the next progress calls of a block; {@link #otherwise} afterwards. */
    synchronized ScriptedProxy answer(final int stream, final int block, final int... flags) {
        final ArrayDeque<Integer> queue = answers.computeIfAbsent(stream + "/" + block, key -> new ArrayDeque<>());
        for (final int flag : flags) {
            queue.add(flag);
        }
        return this;
    }

    synchronized ScriptedProxy otherwise(final int flags) {
        otherwise = flags;
        return this;
    }

    /** Lets a call fail, such as {@code start 0/1}, {@code progress 0/1} or {@code stop 0}. */
    synchronized ScriptedProxy fail(final String call, final RuntimeException failure) {
        failures.put(call, failure);
        return this;
    }

    static NrtException failure(final String text) {
        return new NrtException(NrtStatus.NETWORK_PROXY_FAILURE, text);
    }

    synchronized List<String> calls() {
        return List.copyOf(calls);
    }

    private void called(final String call) {
        calls.add(call);
        final RuntimeException failure = failures.get(call);
        if (failure != null) {
            throw failure;
        }
    }

    @Override
    public synchronized void start(
        final long comm, final int stream, final int basicBlock, final NetOpsInfo[] operations, final NetSrcAddr[] sources,
        final NetDestAddr[] destinations) {
        called("start " + stream + "/" + basicBlock);
    }

    @Override
    public synchronized int progress(final long comm, final int stream, final int basicBlock) {
        called("progress " + stream + "/" + basicBlock);
        final ArrayDeque<Integer> queue = answers.get(stream + "/" + basicBlock);
        return queue == null || queue.isEmpty() ? otherwise : queue.remove();
    }

    @Override
    public synchronized void abandon(final long comm, final int stream, final int basicBlock, final NrtException cause) {
        called("abandon " + stream + "/" + basicBlock);
    }

    @Override
    public synchronized void stop(final long comm, final int stream) {
        called("stop " + stream);
    }
}
