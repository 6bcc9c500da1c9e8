package io.nrt4j.net.loopback;

import java.util.Arrays;

/**
 * The channels of a transport that have matched messages still to copy.
 *
 * <p>Threads: {@code channels} and {@code count} are written under the lock; {@code count} is also read without it, as a hint
 * that there is something to do. The lock is taken under a channel's lock, never the other way round. Nothing is allocated but
 * by {@link #reserve(int)}.
 */
final class Backlogs {
    private final SpinLock lock = new SpinLock();
    private LoopbackChannel[] channels = new LoopbackChannel[16];
    private volatile int count;

    /** Makes room, so that {@link #add} need not. Before a channel of this many comes into use. */
    void reserve(final int capacity) {
        lock.lock();
        try {
            if (capacity > channels.length) {
                channels = Arrays.copyOf(channels, Math.max(capacity, 2 * channels.length));
            }
        } finally {
            lock.unlock();
        }
    }

    void add(final LoopbackChannel channel) {
        lock.lock();
        try {
            final int at = count;
            channels[at] = channel;
            count = at + 1;
        } finally {
            lock.unlock();
        }
    }

    void remove(final LoopbackChannel channel) {
        lock.lock();
        try {
            final int last = count - 1;
            for (int i = 0; i <= last; i++) {
                if (channels[i] == channel) {
                    channels[i] = channels[last];
                    channels[last] = null;
                    count = last;
                    return;
                }
            }
        } finally {
            lock.unlock();
        }
    }

    boolean isEmpty() {
        return count == 0;
    }

    /** Moves each channel on by a slice. */
    int progress() {
        int work = 0;
        for (int i = 0; i < count; i++) {
            final LoopbackChannel channel = at(i);
            if (channel != null) {
                work += channel.help();
            }
        }
        return work;
    }

    private LoopbackChannel at(final int index) {
        lock.lock();
        try {
            return index < count ? channels[index] : null;
        } finally {
            lock.unlock();
        }
    }
}
