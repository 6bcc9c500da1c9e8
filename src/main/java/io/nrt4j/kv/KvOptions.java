package io.nrt4j.kv;

import io.nrt4j.NrtConfig;
import io.nrt4j.concurrent.NanoClock;
import java.util.Objects;
import java.util.concurrent.TimeUnit;

/**
 * What clients and servers of the key-value store have in common, and the limits of each.
 *
 * @param secret           shared secret of the job; empty when frames carry no mac.
 * @param clock            where time comes from.
 * @param lossBudget       client: how often in a row a connection may be cut before an answer came; 0 fails at the first time, as the
 *                         original does. A server that dies while it is asked cuts each client once.
 * @param maxEntries       server: entries that it holds.
 * @param maxBytes         server: bytes of all keys and values that it holds.
 * @param maxConnections   server: connections that it holds.
 * @param frameTimeLimitNs server: time for the first byte of a connection, for the rest of a frame, and for taking the answer.
 */
public record KvOptions(
    String secret, NanoClock clock, int lossBudget, int maxEntries, long maxBytes, int maxConnections, long frameTimeLimitNs) {

    /** No secret, the system's clock, the usual limits. */
    public static final KvOptions DEFAULT = new KvOptions("", NanoClock.SYSTEM, 16, 16_384, 12L << 20, 1024,
        TimeUnit.SECONDS.toNanos(10));

    /** Checks that nothing is missing. */
    public KvOptions {
        Objects.requireNonNull(secret, "secret");
        Objects.requireNonNull(clock, "clock");
    }

    /**
     * The options of a configuration.
     *
     * @param config gives the secret.
     * @return the usual limits with its secret.
     */
    public static KvOptions of(final NrtConfig config) {
        return DEFAULT.withSecret(config.kvSecret());
    }

    /**
     * The same with another secret.
     *
     * @param other empty is off.
     * @return a copy.
     */
    public KvOptions withSecret(final String other) {
        return new KvOptions(other, clock, lossBudget, maxEntries, maxBytes, maxConnections, frameTimeLimitNs);
    }

    /**
     * The same with another clock.
     *
     * @param other such as one that a test sets by hand.
     * @return a copy.
     */
    public KvOptions withClock(final NanoClock other) {
        return new KvOptions(secret, other, lossBudget, maxEntries, maxBytes, maxConnections, frameTimeLimitNs);
    }

    /**
     * The same with another budget of lost connections.
     *
     * @param losses in a row; 0 or more.
     * @return a copy.
     */
    public KvOptions withLossBudget(final int losses) {
        return new KvOptions(secret, clock, losses, maxEntries, maxBytes, maxConnections, frameTimeLimitNs);
    }

    /**
     * The same with other limits on what a server stores.
     *
     * @param entries how many.
     * @param bytes   of all keys and values.
     * @return a copy.
     */
    public KvOptions withMaxEntries(final int entries, final long bytes) {
        return new KvOptions(secret, clock, lossBudget, entries, bytes, maxConnections, frameTimeLimitNs);
    }

    /**
     * The same with another limit of connections.
     *
     * @param connections at least 1.
     * @return a copy.
     */
    public KvOptions withMaxConnections(final int connections) {
        return new KvOptions(secret, clock, lossBudget, maxEntries, maxBytes, connections, frameTimeLimitNs);
    }

    /**
     * The same with another time limit for frames.
     *
     * @param limit how long.
     * @param unit  its unit.
     * @return a copy.
     */
    public KvOptions withFrameTimeLimit(final long limit, final TimeUnit unit) {
        return new KvOptions(secret, clock, lossBudget, maxEntries, maxBytes, maxConnections, unit.toNanos(limit));
    }

    @Override
    public String toString() {
        return "KvOptions[secret=" + (secret.isEmpty() ? "none" : "***") + ", lossBudget=" + lossBudget + ", maxEntries=" + maxEntries
            + ", maxBytes=" + maxBytes + ", maxConnections=" + maxConnections + ", frameTimeLimitNs=" + frameTimeLimitNs + "]";
    }
}
