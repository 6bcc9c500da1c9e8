package io.nrt4j.proxy;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.net.NativeWord;

/**
 * The gate that the device opens: one word of host memory for each stream, {@link #BLOCKED} until the device's program has reached
 * the network stage, anything else from then on.
 *
 * <p>Looking is one volatile load a word; nothing blocks, nothing is allocated. Words past {@code streams_n} are never touched.
 *
 * <p>Threads: the words are written by the device and consumed by the worker. Ports {@code can_start_proxy_task},
 * {@code clear_start_proxy_task_flag} and {@code start_proxy_task_host_mem_addrs[4]}.
 */
public final class DeviceTrigger {
    /** Most words of a task. */
    public static final int MAX_WORDS = 4;

    /** Value of a word that the device has not written: -1. */
    public static final int BLOCKED = 0xFFFFFFFF;

    private static final int CONSUMED = 0;

    private final NativeWord[] words;

    /**
     * Makes the gate.
     *
     * @param addresses the words' addresses; those from {@code streamsN} on may be anything.
     * @param streamsN  how many of them count, 0 to 4.
     * @throws NrtException INVALID when one that counts is null or not aligned, or there are too many.
     */
    public DeviceTrigger(final long[] addresses, final int streamsN) {
        if (streamsN < 0 || streamsN > MAX_WORDS || streamsN > addresses.length) {
            throw new NrtException(NrtStatus.INVALID, "a device trigger has 0 to " + MAX_WORDS + " words, not " + streamsN + " of "
                + addresses.length);
        }
        words = new NativeWord[streamsN];
        for (int i = 0; i < streamsN; i++) {
            words[i] = NativeWord.at(addresses[i]);
        }
    }

    /**
     * Whether the device has written every word.
     *
     * @return false as long as one of them reads {@link #BLOCKED}.
     */
    public boolean canStart() {
        for (final NativeWord word : words) {
            if (word.load() == BLOCKED) {
                return false;
            }
        }
        return true;
    }

    /** Consumes the trigger: each word becomes 0. */
    public void clear() {
        for (final NativeWord word : words) {
            word.store(CONSUMED);
        }
    }
}
