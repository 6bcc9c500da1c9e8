package io.nrt4j.sendrecv;

import io.nrt4j.concurrent.IdleStrategy;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.BooleanSupplier;

/**
 * The count of an LNC's open tasks, and how its service thread sleeps when there are none.
 *
 * <p>Three ways to wait: no tasks and nothing in flight in the transport: until woken. Tasks that do not move on (a peer that is not
 * there, no room): from microseconds up to a millisecond, and up to ten after a while if all of them are peers that do not come; or
 * until woken. Something in flight that only the transport's progress moves: the same, and for a while after it, so that a ping-pong
 * does not pay a wake-up for each message.
 *
 * <p>Waiting allocates nothing: the thread parks, since a condition would make a node for each back-off.
 *
 * <p>Threads: {@code taskN} is raised by producers under the lock and lowered by the service thread. {@code fresh} and
 * {@code shutdown} are read and written under the lock, under which the service thread re-checks all of them, and says in
 * {@code sleeper} that it is about to park. So who wakes it either was there first, and is seen by this check, or comes
 * later, sees the sleeper, and unparks it; an unpark before the park lets the park return at once. No wake-up can be lost. One that
 * comes when the thread is awake again ends a later park for nothing, which is harmless: it looks again. {@code asleep} is
 * written by the service thread under the lock before it asks the transport one last time, and read by a poster after its
 * request is in the transport: one of the two sees the other.
 *
 * <p>Ports {@code task_mutex}, {@code task_cv}, {@code task_n} and {@code service_thread_shutdown_signal} of
 * {@code async_sr_context}.
 */
final class TaskSignal implements IdleStrategy {
    private static final long MIN_BACKOFF_NS = 1_000;
    private static final long MAX_BACKOFF_NS = 1_000_000;
    /** A wake-up can cost 50 us: ten milliseconds keep a thread that waits for an absent peer under 2 % of a core. */
    private static final long PATIENT_BACKOFF_NS = 10_000_000;
    private static final int TICKS_TO_PATIENCE = 200;
    private static final int LINGER_TICKS = 100;
    private static final long FOR_EVER = 0;

    private final ReentrantLock mutex = new ReentrantLock();
    private final AtomicInteger taskN = new AtomicInteger();
    private final BooleanSupplier transportNeedsProgress;
    private boolean fresh;
    private boolean shutdown;
    /** The thread that parks, or is about to; null while it is awake. */
    private Thread sleeper;
    private volatile boolean asleep;
    private long backoffNs = MIN_BACKOFF_NS;
    private int linger;
    private boolean patient;
    private int idleTicks;

    TaskSignal(final BooleanSupplier transportNeedsProgress) {
        this.transportNeedsProgress = transportNeedsProgress;
    }

    /** Producer: one more task, and the service thread wakes up. */
    void add() {
        final Thread waiting;
        mutex.lock();
        try {
            taskN.incrementAndGet();
            fresh = true;
            waiting = sleeper;
        } finally {
            mutex.unlock();
        }
        LockSupport.unpark(waiting); // without the lock, which the woken thread takes first of all; null is nobody
    }

    /** One task is done; by the service thread, or by the producer that withdraws its own. */
    void retire() {
        final int left = taskN.decrementAndGet();
        if (left < 0) {
            throw new IllegalStateException("task count below zero: " + left);
        }
    }

    /** Service thread, before it idles: whether it only waits for absent peers, none of which has moved on in this duty cycle. */
    void setPatient(final boolean nothingButAbsentPeers) {
        patient = nothingButAbsentPeers;
    }

    /** Open tasks; a snapshot. */
    int count() {
        return taskN.get();
    }

    /** Poster, after its request went to the transport: makes sure that somebody ticks the transport. */
    void postedToTransport() {
        if (asleep && transportNeedsProgress.getAsBoolean()) {
            wakeUp();
        }
    }

    /** Ends all waiting for good. */
    void shutDown() {
        final Thread waiting;
        mutex.lock();
        try {
            shutdown = true;
            waiting = sleeper;
        } finally {
            mutex.unlock();
        }
        LockSupport.unpark(waiting);
    }

    @Override
    public void wakeUp() {
        final Thread waiting;
        mutex.lock();
        try {
            fresh = true;
            waiting = sleeper;
        } finally {
            mutex.unlock();
        }
        LockSupport.unpark(waiting);
    }

    @Override
    public void idle(final int workCount) {
        idleTicks = patient || workCount == 0 ? idleTicks + 1 : 0;
        if (workCount > 0 && !isPatient()) {
            backoffNs = MIN_BACKOFF_NS;
            linger = LINGER_TICKS;
            return;
        }
        mutex.lock();
        try {
            if (!fresh && !shutdown) {
                if (taskN.get() > 0 || keepTicking()) {
                    backOff();
                } else {
                    sleep();
                }
            }
            if (fresh) {
                fresh = false;
                backoffNs = MIN_BACKOFF_NS;
                idleTicks = 0;
            }
        } finally {
            mutex.unlock();
        }
    }

    /** Whether it was told to be patient for long enough; then its questions to absent peers do not keep it awake either. */
    private boolean isPatient() {
        return patient && idleTicks > TICKS_TO_PATIENCE;
    }

    private boolean keepTicking() {
        if (transportNeedsProgress.getAsBoolean()) {
            linger = LINGER_TICKS;
            return true;
        }
        return linger-- > 0;
    }

    private void backOff() {
        final long maxNs = isPatient() ? PATIENT_BACKOFF_NS : MAX_BACKOFF_NS;
        backoffNs = Math.min(backoffNs, maxNs);
        asleep = backoffNs > MAX_BACKOFF_NS; // too long for a poster to wait for the next look at the transport
        try {
            if (asleep && transportNeedsProgress.getAsBoolean() || !park(backoffNs) || fresh || shutdown) {
                return;
            }
        } finally {
            asleep = false;
        }
        backoffNs = Math.min(2 * backoffNs, maxNs);
    }

    private void sleep() {
        asleep = true;
        try {
            while (!fresh && !shutdown && taskN.get() == 0 && !transportNeedsProgress.getAsBoolean()) {
                if (!park(FOR_EVER)) {
                    return;
                }
            }
        } finally {
            asleep = false;
        }
    }

    /**
     * With the lock, which it gives away meanwhile: waits for an unpark, or so long; may return for nothing.
     *
     * @return false if it was interrupted. Nobody interrupts this thread on purpose: the duty cycle goes on, and a shutdown is seen at
     *     the next check.
     */
    private boolean park(final long timeNs) {
        sleeper = Thread.currentThread();
        mutex.unlock();
        try {
            if (timeNs == FOR_EVER) {
                LockSupport.park(this);
            } else {
                LockSupport.parkNanos(this, timeNs);
            }
        } finally {
            mutex.lock();
            sleeper = null;
        }
        return !Thread.interrupted();
    }

    @Override
    public String toString() {
        return taskN.get() + " tasks" + (asleep ? ", asleep" : ", backing off " + TimeUnit.NANOSECONDS.toMicros(backoffNs) + " us");
    }
}
