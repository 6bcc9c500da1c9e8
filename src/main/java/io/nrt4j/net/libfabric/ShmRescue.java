package io.nrt4j.net.libfabric;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Frees what a killed peer leaves behind in shared memory: the locks that it held, and the names.
 *
 * <p>Every endpoint of libfabric's shm provider has a region of shared memory with a spin lock in it, which the owner takes when it polls
 * and a peer when it sends or answers. A process that is killed while it holds one leaves the others spinning inside
 * {@code fi_cq_read} or {@code fi_tsend} for ever. So a thread of ours looks at the two locks of each pair of endpoints, ours and
 * the peer's, ten times a second. One that is held although the peer's process has ended is freed, and the spinning call goes on.
 *
 * <p>That is safe because each peer has an endpoint of its own at both ends ({@link EndpointTuning#endpointPerPeer}): the two regions
 * are used by that peer, which is dead, and by us, one call at a time, under the engine's lock. Should one of our own calls be
 * holding the lock at that moment, it merely gives back what is free already. What the dead one had not finished was not visible
 * yet: the provider's queues publish an entry last. It is sure to be dead: it was seen alive at this machine, with that region
 * mapped, when its endpoint was introduced, and is gone now, or a zombie without threads, or another process has its number. A peer
 * that was not seen so, as one in another PID namespace, is not watched; nor is anything when the lock is not where it is looked for
 * ({@link ShmRegion#lockOffset}). A peer that merely stands still (SIGSTOP) while it holds a lock is alive: calls spin until
 * it goes on.
 *
 * <p>Threads: any; all state is guarded by this object's monitor. {@link #learn}, {@link #watch} and {@link #forget} are called under the
 * engine's lock, {@link #doWork} by the thread, which never takes that lock: it may be held by who waits to be rescued. The words in
 * shared memory are read and written without any lock, as other processes do.
 */
final class ShmRescue implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(ShmRescue.class);
    private static final long TICK_MS = 100;
    private static final long CLOSE_MS = 1000;
    private static final int UNKNOWN = -1;

    /** One peer. */
    private static final class Watch {
        private final Object owner;
        private final ProcessIdentity process;
        /** Regions that are named after the process, and the numbers of their files. */
        private final Map<ShmRegion, Long> names;
        private final ShmRegion[] regions;
        private final ShmRegion.Lock[] locks;
        /** When each lock was first seen to be held without a break; 0 while it is free. */
        private final long[] heldSinceNs = new long[2];
        /** The endpoint is closed, and only names are left. */
        private boolean forgotten;

        private Watch(final Object owner, final ProcessIdentity process, final Map<ShmRegion, Long> names,
            final ShmRegion[] regions, final ShmRegion.Lock[] locks) {
            this.owner = owner;
            this.process = process;
            this.names = names;
            this.regions = regions;
            this.locks = locks;
        }

        private boolean hasNames() {
            return names.entrySet().stream().anyMatch(name -> name.getKey().named(name.getValue()));
        }

        private void close() {
            for (final ShmRegion.Lock lock : locks) {
                if (lock != null) {
                    lock.close();
                }
            }
        }
    }

    private final Path proc;
    private final Path folder;
    private final boolean driven;
    private final List<Watch> watches = new ArrayList<>();
    private int lockOffset = UNKNOWN;
    private boolean learnt;
    private Thread thread;
    private boolean closed;

    ShmRescue() {
        this(Path.of("/proc"), Path.of("/dev/shm"), true);
    }

    /**
     * For tests.
     *
     * @param proc   the kernel's description of processes.
     * @param folder where shared memory has its names.
     * @param driven whether a thread of its own calls {@link #doWork}.
     */
    ShmRescue(final Path proc, final Path folder, final boolean driven) {
        this.proc = proc;
        this.folder = folder;
        this.driven = driven;
    }

    /**
     * Learns from an endpoint of ours, which nobody uses yet, where the lock is. Of the first one only; of another provider's nothing.
     *
     * @param endpointName from {@code fi_getname}.
     */
    synchronized void learn(final byte[] endpointName) {
        final ShmRegion region = ShmRegion.of(folder, endpointName);
        if (learnt || region == null) {
            return;
        }
        learnt = true;
        try {
            lockOffset = region.lockOffset(proc);
            LOG.debug("the lock of shared memory {} is at {}", region.name(), lockOffset);
        } catch (final IOException | NumberFormatException ex) {
            LOG.debug("cannot look for the lock of shared memory {}", region.name(), ex);
        }
        if (lockOffset == UNKNOWN) {
            LOG.info("found no lock in shared memory {}: if there is one, a peer that is killed while it holds it stops us", region.name());
        }
    }

    /**
     * Watches a peer from now on. To be called before anything is sent to it. Nothing happens if it cannot be watched.
     *
     * @param owner      for {@link #forget}.
     * @param endpoint   name of our endpoint.
     * @param peerName   name of the peer's.
     */
    synchronized void watch(final Object owner, final byte[] endpoint, final byte[] peerName) {
        final ShmRegion ours = ShmRegion.of(folder, endpoint);
        final ShmRegion theirs = ShmRegion.of(folder, peerName);
        if (closed || ours == null || theirs == null || ours.pid() == theirs.pid()) {
            return; // another provider, or an endpoint of this process
        }
        final ShmRegion.Lock[] locks = new ShmRegion.Lock[2];
        boolean watched = false;
        try {
            final ProcessIdentity process = ProcessIdentity.of(proc, theirs.pid());
            final Map<ShmRegion, Long> names = process == null ? Map.of() : theirs.allOf(process);
            if (!names.containsKey(theirs) || !theirs.named(names.get(theirs))) {
                throw new IOException("no process " + theirs.pid() + " of this machine has it mapped");
            }
            if (lockOffset != UNKNOWN) {
                locks[0] = ours.lock(lockOffset);
                locks[1] = theirs.lock(lockOffset);
            }
            watches.add(new Watch(owner, process, names, new ShmRegion[] {ours, theirs}, locks));
            watched = true;
            start();
        } catch (final IOException | NumberFormatException ex) {
            LOG.info("cannot watch the owner of shared memory {}: if it is killed while it holds a lock there, calls will wait for it: {}",
                theirs.name(), ex.toString());
        } finally {
            if (!watched && locks[0] != null) {
                locks[0].close();
            }
        }
    }

    private void start() {
        if (driven && thread == null) {
            thread = new Thread(this::run, "nrt4j-shm-rescue");
            thread.setDaemon(true);
            thread.start();
        }
        notifyAll();
    }

    /**
     * Ends a watch: the endpoint has been closed, and no call into it is under way. The names that its peer left are deleted
     * once it has ended.
     *
     * @param owner as it was given to {@link #watch}.
     */
    synchronized void forget(final Object owner) {
        for (final Watch watch : watches) {
            if (watch.owner == owner && !watch.forgotten) {
                watch.forgotten = true;
                watch.close();
            }
        }
        notifyAll();
    }

    /**
     * Looks at every lock and every name once.
     *
     * @return how much was freed and deleted.
     */
    synchronized int doWork() {
        int done = 0;
        for (int i = watches.size() - 1; i >= 0; i--) {
            final Watch watch = watches.get(i);
            if (!watch.forgotten) {
                done += free(watch);
            } else if (!watch.hasNames()) {
                watches.remove(i);
            } else if (watch.process.vacated()) {
                done += delete(watch);
                watches.remove(i);
            }
        }
        return done;
    }

    private static int free(final Watch watch) {
        final long now = System.nanoTime();
        boolean held = false;
        for (int i = 0; i < watch.locks.length; i++) {
            if (watch.locks[i] == null || !watch.locks[i].held()) {
                watch.heldSinceNs[i] = 0;
            } else {
                watch.heldSinceNs[i] = watch.heldSinceNs[i] == 0 ? now : watch.heldSinceNs[i];
                held = true;
            }
        }
        if (!held || !watch.process.ended()) {
            return 0;
        }
        int freed = 0;
        for (int i = 0; i < watch.locks.length; i++) {
            if (watch.heldSinceNs[i] != 0) {
                watch.locks[i].free();
                freed++;
                LOG.warn("process {} ended and left the lock of shared memory {} held, for {} ms at least; freed it", watch.process.pid(),
                    watch.regions[i].name(), TimeUnit.NANOSECONDS.toMillis(now - watch.heldSinceNs[i]));
            }
        }
        return freed;
    }

    private static int delete(final Watch watch) {
        int deleted = 0;
        for (final Map.Entry<ShmRegion, Long> name : watch.names.entrySet()) {
            try {
                if (name.getKey().named(name.getValue())) {
                    Files.delete(name.getKey().file());
                    deleted++;
                }
            } catch (final NoSuchFileException ex) {
                LOG.trace("another survivor was faster", ex);
            } catch (final IOException ex) {
                LOG.debug("cannot delete what process {} left", watch.process.pid(), ex);
            }
        }
        LOG.debug("process {} has ended; deleted {} of {}", watch.process.pid(), deleted, watch.names.keySet());
        return deleted;
    }

    /** The thread: a look at a lock costs nanoseconds; at the process it looks only when a lock is held. */
    private synchronized void run() {
        try {
            while (!closed) {
                doWork();
                wait(watches.isEmpty() ? 0 : TICK_MS);
            }
        } catch (final InterruptedException ex) {
            LOG.warn("interrupted: no peer is watched any more");
        } catch (final RuntimeException ex) {
            LOG.error("no peer is watched any more", ex);
        }
    }

    /** Ends the thread, after a last look at the names, and waits for it, at most a second. Idempotent. The endpoints are closed. */
    @Override
    public void close() {
        final Thread ending;
        synchronized (this) {
            ending = thread;
            if (!closed) {
                closed = true;
                doWork();
                watches.forEach(Watch::close);
                watches.clear();
                notifyAll();
            }
        }
        if (ending != null) {
            try {
                ending.join(CLOSE_MS);
            } catch (final InterruptedException ex) {
                Thread.currentThread().interrupt();
            }
        }
    }
}
