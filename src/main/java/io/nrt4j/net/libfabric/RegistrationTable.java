package io.nrt4j.net.libfabric;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import java.util.Arrays;
import java.util.concurrent.locks.ReentrantLock;

/**
 * The registrations of a transport, by number.
 *
 * <p>Threads: any. The table is written under the engine's lock; {@code slots} is replaced or its elements are set before the
 * number is handed out, and a post reads them through a volatile read. Looking one up allocates nothing.
 */
final class RegistrationTable {
    private final ReentrantLock lock;
    private final FabricEndpoint endpoint;
    private volatile Registration[] slots = new Registration[64];
    private long counter;
    private int searchFrom;

    RegistrationTable(final ReentrantLock lock, final FabricEndpoint endpoint) {
        this.lock = lock;
        this.endpoint = endpoint;
    }

    long register(final long comm, final long address, final long sizeBytes) {
        if (address == 0 || sizeBytes <= 0) {
            throw new NrtException(NrtStatus.INVALID, "memory of " + sizeBytes + " bytes at 0x" + Long.toHexString(address)
                + " cannot be registered");
        }
        lock.lock();
        try {
            final int index = freeIndex();
            final long id = ++counter << 24 | index;
            final long nativeRegistration = endpoint.needsRegistration() ? endpoint.register(address, sizeBytes) : 0;
            final Registration[] table = slots;
            table[index] = new Registration(id, comm, address, sizeBytes, endpoint, nativeRegistration);
            slots = table;
            return id;
        } finally {
            lock.unlock();
        }
    }

    private int freeIndex() {
        final int size = slots.length;
        for (int i = 0; i < size; i++) {
            final int index = (searchFrom + i) % size;
            if (slots[index] == null) {
                searchFrom = index + 1;
                return index;
            }
        }
        if (size >= 1 << 24) {
            throw new NrtException(NrtStatus.RESOURCE, "too many registrations");
        }
        slots = Arrays.copyOf(slots, size * 2);
        searchFrom = size + 1;
        return size;
    }

    void deregister(final long id) {
        lock.lock();
        try {
            final int index = (int) (id & 0xFF_FFFF);
            final Registration registration = index < slots.length ? slots[index] : null;
            if (registration == null || registration.id != id) {
                throw new NrtException(NrtStatus.INVALID, "0x" + Long.toHexString(id) + " is no registration");
            }
            slots[index] = null;
            registration.close();
        } finally {
            lock.unlock();
        }
    }

    /** Ends what a communicator that is closed has registered. An operation that the provider has not given up keeps its own. */
    void endAll(final long comm) {
        lock.lock();
        try {
            final Registration[] table = slots;
            for (int index = 0; index < table.length; index++) {
                final Registration registration = table[index];
                if (registration != null && registration.comm == comm) {
                    table[index] = null;
                    registration.close();
                }
            }
        } finally {
            lock.unlock();
        }
    }

    /** The registration with a number, if it is the communicator's and covers a range. */
    Registration covering(final long comm, final long id, final long address, final long lengthBytes) {
        final Registration[] table = slots;
        final int index = (int) (id & 0xFF_FFFF);
        final Registration registration = index < table.length ? table[index] : null;
        if (registration == null || registration.id != id || registration.comm != comm) {
            throw new NrtException(NrtStatus.INVALID, "0x" + Long.toHexString(id) + " is no registration of communicator 0x"
                + Long.toHexString(comm));
        }
        if (!registration.covers(address, lengthBytes)) {
            throw new NrtException(NrtStatus.INVALID, lengthBytes + " bytes at 0x" + Long.toHexString(address)
                + " are not within the registration that the post names");
        }
        return registration;
    }
}
