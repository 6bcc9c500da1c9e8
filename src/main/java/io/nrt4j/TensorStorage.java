package io.nrt4j;

import com.sun.jna.Native;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The memory behind a tensor: address, size, and who still uses it. For engines and transports, not for users of tensors.
 *
 * <p>A storage is open until {@link #close()}, and released when it is closed and nobody retains it any more; the release
 * first tells the {@link ReleaseListener}s, who deregister the memory, and then frees it. So memory is never freed under a
 * transport. What a transport may use for ever is kept for ever: see {@link #keepForever()}.
 *
 * <p>Threads: all methods may be called by any thread. {@code state} counts the users and holds the closed bit; it is
 * written by whoever retains, releases or closes, by compare-and-set, and the one transition to "closed and unused" elects
 * the thread that releases. {@code listeners} is guarded by the storage's monitor, under which no listener is called.
 * {@code KEPT} is a concurrent set, which is only ever added to: nobody reads it but the garbage collector.
 *
 * <p>Ports the {@code sto} that {@code nrt_tensor} points to.
 */
public final class TensorStorage {
    private static final Logger LOG = LoggerFactory.getLogger(TensorStorage.class);
    private static final VarHandle STATE;
    private static final int CLOSED = 1 << 31;
    private static final int COUNT_MASK = ~CLOSED;
    /** Storages whose memory may still be written to, and will be for all that is known: a wrapped buffer must not be collected. */
    private static final Set<TensorStorage> KEPT = ConcurrentHashMap.newKeySet();

    static {
        try {
            STATE = MethodHandles.lookup().findVarHandle(TensorStorage.class, "state", int.class);
        } catch (final ReflectiveOperationException ex) {
            throw new ExceptionInInitializerError(ex);
        }
    }

    /** How the memory came to be, hence how it goes. */
    enum Origin { ALLOCATED, WRAPPED_BUFFER, FOREIGN }

    /** Told once, by the releasing thread, before the memory is freed. */
    @FunctionalInterface
    public interface ReleaseListener {
        /**
         * The storage is closed and unused; its memory is freed when all listeners have returned.
         *
         * @param storage the storage that goes away.
         */
        void onRelease(TensorStorage storage);
    }

    private final long address;
    private final long sizeBytes;
    private final Origin origin;
    /** Keeps a wrapped buffer reachable; null otherwise. */
    private final ByteBuffer keptAlive;
    private final List<ReleaseListener> listeners = new ArrayList<>(2);
    private boolean released;
    private volatile int state;

    TensorStorage(final long address, final long sizeBytes, final Origin origin, final ByteBuffer keptAlive) {
        this.address = address;
        this.sizeBytes = sizeBytes;
        this.origin = origin;
        this.keptAlive = keptAlive;
    }

    /**
     * Address of the first byte.
     *
     * @return native address.
     */
    public long address() {
        return address;
    }

    /**
     * Size of the memory.
     *
     * @return bytes.
     */
    public long sizeBytes() {
        return sizeBytes;
    }

    /**
     * Whether {@link #close()} was called.
     *
     * @return true from the close on, even while users remain.
     */
    public boolean isClosed() {
        return (state & CLOSED) != 0;
    }

    /**
     * Takes a use of the memory, which keeps it in place until {@link #release()}.
     *
     * @return false if the storage is closed; nothing was taken then.
     */
    public boolean retain() {
        int seen = state;
        while ((seen & CLOSED) == 0) {
            if (STATE.compareAndSet(this, seen, seen + 1)) {
                return true;
            }
            seen = state;
        }
        return false;
    }

    /** Gives a use back. The last one of a closed storage releases the memory on this thread. */
    public void release() {
        int before;
        do {
            // Checked before the count goes down: below 0 it would flip the closed bit for whoever looks meanwhile.
            before = state;
            if ((before & COUNT_MASK) == 0) {
                throw new IllegalStateException("release without retain of " + this);
            }
        } while (!STATE.compareAndSet(this, before, before - 1));
        if (before == (CLOSED | 1)) {
            free();
        }
    }

    /** Refuses new users; the memory goes with the last present one, or now if there is none. Idempotent. */
    void close() {
        final int before = (int) STATE.getAndBitwiseOr(this, CLOSED);
        if (before == 0) {
            free();
        }
    }

    /**
     * Asks to be told before the memory is freed. The caller must hold a use.
     *
     * @param listener told at most once.
     */
    public void addReleaseListener(final ReleaseListener listener) {
        synchronized (this) {
            if (released) {
                throw new IllegalStateException("listener added to released memory " + this);
            }
            listeners.add(listener);
        }
    }

    /**
     * Takes a listener back. It may still be running on another thread when this returns.
     *
     * @param listener one that was added.
     */
    public void removeReleaseListener(final ReleaseListener listener) {
        synchronized (this) {
            listeners.remove(listener);
        }
    }

    /**
     * Keeps the memory in place, and whatever it belongs to reachable, until the process ends: a transport could not be made to let go
     * of it. Who calls this holds a use, and never gives it back. Lost memory is better than memory that is somebody else's when a late
     * message is written into it. Idempotent.
     */
    public void keepForever() {
        KEPT.add(this);
    }

    private void free() {
        final List<ReleaseListener> told;
        synchronized (this) {
            released = true;
            told = new ArrayList<>(listeners);
            listeners.clear();
        }
        boolean deregistered = true;
        for (final ReleaseListener listener : told) {
            try {
                listener.onRelease(this);
            } catch (final RuntimeException ex) {
                LOG.error("{} could not be deregistered and stays in place for ever", this, ex);
                deregistered = false;
            }
        }
        if (!deregistered) {
            keepForever(); // a registration may still stand on it
        } else if (origin == Origin.ALLOCATED) {
            Native.free(address);
        }
    }

    @Override
    public String toString() {
        final int seen = state;
        return "storage 0x" + Long.toHexString(address) + "+" + sizeBytes + " (" + origin + ", "
            + ((seen & CLOSED) != 0 ? "closed, " : "") + (seen & COUNT_MASK) + " in use"
            + (keptAlive == null ? "" : ", keeps " + keptAlive) + ")";
    }
}
