package io.nrt4j.proxy;

import io.nrt4j.net.NetDestAddr;
import io.nrt4j.net.NetOpsInfo;
import io.nrt4j.net.NetSrcAddr;
import io.nrt4j.net.NetworkProxy;

/** A network side that costs nothing: it answers one thing, and counts. */
final class IdleProxy implements NetworkProxy {
    /** Written by the worker, read by the benchmark. */
    private volatile long progressCalls;
    private final int answer;
    private final boolean counts;

    IdleProxy(final int answer, final boolean counts) {
        this.answer = answer;
        this.counts = counts;
    }

    @Override
    public void start(
        final long comm, final int stream, final int basicBlock, final NetOpsInfo[] operations, final NetSrcAddr[] sources,
        final NetDestAddr[] destinations) {
        // Nothing to know.
    }

    @Override
    public int progress(final long comm, final int stream, final int basicBlock) {
        if (counts) {
            progressCalls = progressCalls + 1;
        }
        return answer;
    }

    long progressCalls() {
        return progressCalls;
    }

    @Override
    public void stop(final long comm, final int stream) {
        // Nothing to forget.
    }
}
