package io.nrt4j.tools;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import java.nio.ByteBuffer;

/**
 * One measurement, as the measuring end tells it to the listening one, little endian:
 *
 * <pre>
 *   magic u64, version u32, mode u32, size u64, count u64, warm-up u64, window u32, layers u32, blocks u32, u32 0     (56 bytes)
 * </pre>
 *
 * <p>The listening end prepares its memory, posts its first receives, and answers one byte; then the measurement begins.
 *
 * @param mode      what is done.
 * @param sizeBytes of a message or a block.
 * @param count     PING_PONG: round trips; BANDWIDTH: windows; KV: rounds.
 * @param warmUp    as many before them that are not measured.
 * @param window    messages in flight.
 * @param layers    KV: tensors that the blocks of a round are in.
 * @param blocks    KV: blocks of a layer.
 */
record PerfPlan(Mode mode, long sizeBytes, long count, long warmUp, int window, int layers, int blocks) {
    static final int BYTES = 56;

    private static final long MAGIC = 0x4652_4550_4a54_524eL; // "NRTJPERF"
    private static final int VERSION = 1;
    private static final int MAX_IN_FLIGHT = 128;
    /** How many samples make a measurement. */
    private static final int SAMPLES = 10;
    /** Most memory that a plan may ask of either end. */
    private static final long MAX_MEMORY_BYTES = 64L << 30;

    /** What is done. The order is part of the wire. */
    enum Mode { END, PING_PONG, BANDWIDTH, KV }

    static PerfPlan end() {
        return new PerfPlan(Mode.END, 0, 0, 0, 1, 1, 1);
    }

    static PerfPlan pingPong(final long sizeBytes, final long count, final long warmUp) {
        return new PerfPlan(Mode.PING_PONG, sizeBytes, count, warmUp, 1, 1, 1);
    }

    static PerfPlan bandwidth(final long sizeBytes, final int window, final long count, final long warmUp) {
        return new PerfPlan(Mode.BANDWIDTH, sizeBytes, count, warmUp, window, 1, 1);
    }

    static PerfPlan kv(final long sizeBytes, final int window, final int layers, final int blocks, final long rounds) {
        return new PerfPlan(Mode.KV, sizeBytes, rounds, 1, window, layers, blocks);
    }

    /** A piece of it, for warming up. */
    PerfPlan sample() {
        return new PerfPlan(mode, sizeBytes, Math.max(1, count / SAMPLES), 0, window, layers, blocks);
    }

    /** Memory that each end needs for it, each way. */
    long memoryBytes() {
        return switch (mode) {
            case END -> 0;
            case PING_PONG -> sizeBytes;
            case BANDWIDTH -> sizeBytes * window;
            case KV -> sizeBytes * layers * blocks;
        };
    }

    /** Refuses what cannot be. */
    PerfPlan checked() {
        if (mode != Mode.END && (sizeBytes < 1 || count < 1 || warmUp < 0 || window < 1 || window > MAX_IN_FLIGHT || layers < 1
            || blocks < 1 || (double) sizeBytes * window * layers * blocks > MAX_MEMORY_BYTES * (double) MAX_IN_FLIGHT
            || memoryBytes() > MAX_MEMORY_BYTES || count > Integer.MAX_VALUE || warmUp > Integer.MAX_VALUE)) {
            throw new NrtException(NrtStatus.INVALID, "a measurement cannot be: " + this);
        }
        return this;
    }

    byte[] encode() {
        final byte[] bytes = new byte[BYTES];
        TransferWire.wrap(bytes).putLong(MAGIC).putInt(VERSION).putInt(mode.ordinal()).putLong(sizeBytes).putLong(count)
            .putLong(warmUp).putInt(window).putInt(layers).putInt(blocks);
        return bytes;
    }

    static PerfPlan decode(final byte[] bytes) {
        final ByteBuffer in = TransferWire.wrap(bytes);
        if (bytes.length != BYTES || in.getLong() != MAGIC) {
            throw new NrtException(NrtStatus.INVALID, "the peer is not measuring: its message is no plan of a measurement");
        }
        final int version = in.getInt();
        final int mode = in.getInt();
        if (version != VERSION || mode < 0 || mode >= Mode.values().length) {
            throw new NrtException(NrtStatus.INVALID, "the peer speaks version " + version + ", not " + VERSION + ", mode " + mode);
        }
        return new PerfPlan(Mode.values()[mode], in.getLong(), in.getLong(), in.getLong(), in.getInt(), in.getInt(), in.getInt())
            .checked();
    }
}
