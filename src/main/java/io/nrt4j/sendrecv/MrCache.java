package io.nrt4j.sendrecv;

import io.nrt4j.Placement;
import io.nrt4j.TensorStorage;
import io.nrt4j.net.NetTransport;
import java.util.IdentityHashMap;
import java.util.Map;
import java.util.concurrent.locks.ReentrantLock;

/**
 * The memory registrations of one communicator, by the storage of the tensor (not by its bare address, which can be freed and
 * handed out again). An entry lives until its storage is released or the communicator is closed.
 *
 * <p>Threads: posters look up, the service thread registers, whoever releases a storage deregisters, the closer ends all; each
 * under {@code lock}, the transport's calls included: a registration is made once and ended once, and a storage's memory is
 * not freed while its registration is being ended. Who calls in holds a use of the storage, so that it cannot be released
 * between a look-up and the post.
 *
 * <p>Ports {@code mhandle_cache} and {@code mhandle_cache_mutex}.
 */
final class MrCache implements TensorStorage.ReleaseListener {
    /** No registration. */
    static final long NONE = 0;

    private final ReentrantLock lock = new ReentrantLock();
    private final Map<TensorStorage, Long> registrations = new IdentityHashMap<>();
    private final NetTransport transport;
    private final long netComm;
    private boolean closed;

    MrCache(final NetTransport transport, final long netComm) {
        this.transport = transport;
        this.netComm = netComm;
    }

    /** Poster: the registration of a storage, or {@link #NONE}. Allocates nothing. */
    long find(final TensorStorage storage) {
        lock.lock();
        try {
            final Long registration = registrations.get(storage);
            return registration == null ? NONE : registration;
        } finally {
            lock.unlock();
        }
    }

    /** Service thread: the registration of a storage, made now if there is none. */
    long findOrRegister(final TensorStorage storage, final Placement placement) {
        lock.lock();
        try {
            if (closed) {
                throw new IllegalStateException("registration on a closed communicator");
            }
            final Long known = registrations.get(storage);
            if (known != null) {
                return known;
            }
            final long made = transport.regMr(netComm, storage.address(), storage.sizeBytes(), placement);
            if (made == NONE) {
                throw new IllegalStateException(transport.name() + " registered " + storage + " without a handle");
            }
            registrations.put(storage, made);
            storage.addReleaseListener(this);
            return made;
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void onRelease(final TensorStorage storage) {
        lock.lock();
        try {
            final Long registration = registrations.remove(storage);
            if (registration != null) {
                transport.deregMr(netComm, registration);
            }
        } finally {
            lock.unlock();
        }
    }

    /**
     * Closer: forgets all registrations once {@code closeComm} has ended them together with the communicator. Until then the
     * cache listens on: who releases a storage meanwhile waits for the lock, and frees its memory after the registration.
     */
    void close(final Runnable closeComm) {
        lock.lock();
        try {
            if (!closed) {
                closed = true;
                try {
                    closeComm.run();
                } finally {
                    registrations.keySet().forEach(storage -> storage.removeReleaseListener(this));
                    registrations.clear();
                }
            }
        } finally {
            lock.unlock();
        }
    }

    int size() {
        lock.lock();
        try {
            return registrations.size();
        } finally {
            lock.unlock();
        }
    }
}
