package io.nrt4j.kv;

import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;

/**
 * The entries of a server ({@code kv_store_map}) and what it answers. Bounded in number and in bytes; values are kept at their exact
 * size. The entries that it was made with are fixed: they are read by all, but neither taken nor overwritten.
 *
 * <p>Threads: the server's only.
 */
final class KvStore {
    private static final byte[] NOTHING = {};

    private final Map<String, byte[]> fixed;
    private final Map<String, byte[]> entries = new HashMap<>();
    private final KvOptions options;
    private final long epoch;
    private long bytes;

    /**
     * A store.
     *
     * @param epoch   of the server, not 0.
     * @param fixed   keys of one character a byte, with their values.
     * @param options limits.
     */
    KvStore(final long epoch, final Map<String, byte[]> fixed, final KvOptions options) {
        this.epoch = epoch;
        this.fixed = Map.copyOf(fixed);
        this.options = options;
    }

    /** A value that was taken, so that it can be put back when its taker never got it. */
    record Taken(String key, byte[] value) {
    }

    int size() {
        return entries.size();
    }

    /**
     * Turns a request into its answer, in place; the answer is not sealed yet.
     *
     * @param frame a valid SET, GET or TAKE.
     * @return what the answer takes out of the store, or null.
     */
    Taken answer(final byte[] frame) {
        final String key = KvFrame.key(frame);
        if (key.isEmpty()) {
            error(frame, "the key is empty");
            return null;
        }
        final int opcode = KvFrame.opcode(frame);
        if (opcode == KvFrame.SET) {
            set(frame, key);
            return null;
        }
        final byte[] known = fixed.get(key);
        final byte[] value = known != null ? known : entries.get(key);
        if (value == null) {
            KvFrame.encode(frame, KvFrame.NOT_FOUND, epoch, KvFrame.nonce(frame));
            return null;
        }
        KvFrame.encode(frame, opcode, NOTHING, value, epoch, KvFrame.nonce(frame));
        if (opcode != KvFrame.TAKE || known != null) {
            return null;
        }
        entries.remove(key);
        bytes -= key.length() + value.length;
        return new Taken(key, value);
    }

    private void set(final byte[] frame, final String key) {
        if (fixed.containsKey(key)) {
            error(frame, "the key is fixed");
            return;
        }
        final byte[] old = entries.get(key);
        final int oldBytes = old == null ? 0 : key.length() + old.length;
        final int newBytes = key.length() + KvFrame.valueLength(frame);
        if (old == null && entries.size() >= options.maxEntries()) {
            error(frame, "the store is full: " + options.maxEntries() + " entries");
        } else if (bytes - oldBytes + newBytes > options.maxBytes()) {
            error(frame, "the store is full: " + options.maxBytes() + " bytes");
        } else {
            entries.put(key, KvFrame.value(frame));
            bytes += newBytes - oldBytes;
            KvFrame.encode(frame, KvFrame.SET, epoch, KvFrame.nonce(frame));
        }
    }

    /** Turns a request into a refusal, in place. */
    void error(final byte[] frame, final String reason) {
        KvFrame.encode(frame, KvFrame.ERROR, NOTHING, reason.getBytes(StandardCharsets.US_ASCII), epoch, KvFrame.nonce(frame));
    }

    /** Puts back what was taken, unless somebody has set it anew. */
    void putBack(final Taken taken) {
        if (entries.putIfAbsent(taken.key(), taken.value()) == null) {
            bytes += taken.key().length() + taken.value().length;
        }
    }
}
