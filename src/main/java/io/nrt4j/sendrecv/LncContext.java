package io.nrt4j.sendrecv;

import io.nrt4j.NrtConfig;
import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.concurrent.AgentThread;
import io.nrt4j.concurrent.NanoClock;
import io.nrt4j.concurrent.SpscRing;
import io.nrt4j.concurrent.Uninterrupted;
import io.nrt4j.net.NetTransport;
import java.net.InetAddress;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.ReentrantLock;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Everything of one initialised LNC: service thread, hand-over ring, communicators, data path, flush fence.
 *
 * <p>Threads: {@code comms} is read and written under {@code connectMutex}, which is also the producer lock of the hand-over ring.
 * {@code closed} is written under it, and read by every call. {@code fatal} is written once by the service thread when a duty cycle
 * throws, and read by every call. {@link #close} is called by the thread that holds the LNC's init lock.
 *
 * <p>Ports {@code async_sr_context}.
 */
final class LncContext {
    /** Communicators of an LNC, and slots of its hand-over ring. */
    static final int MAX_COMMUNICATORS = 128;

    private static final Logger LOG = LoggerFactory.getLogger(LncContext.class);

    private final NrtAsyncSendRecv owner;
    private final int lnc;
    private final int vtpbIndex;
    private final long requestTimeoutNs;
    private final long flushTimeoutNs;
    private final NanoClock clock;
    private final LockedNet net;
    private final TaskSignal signal;
    private final FlushFence fence;
    private final LncService service;
    private final AgentThread thread;
    private final ReentrantLock connectMutex = new ReentrantLock();
    private final SpscRing<Communicator> handover = new SpscRing<>(MAX_COMMUNICATORS);
    private final Set<Communicator> comms = new HashSet<>();
    private volatile boolean closed;
    private volatile Throwable fatal;

    /**
     * Sets the LNC up without starting its service thread.
     *
     * @throws NrtException when the flush fence cannot be set up before the deadline.
     */
    LncContext(
        final NrtAsyncSendRecv owner,
        final int lnc,
        final NrtConfig config,
        final NetTransport transport,
        final Rendezvous rendezvous,
        final NanoClock clock,
        final long deadlineNs) {
        this.owner = owner;
        this.lnc = lnc;
        this.clock = clock;
        vtpbIndex = config.vtpbIndex(lnc);
        requestTimeoutNs = config.requestTimeout().toNanos();
        flushTimeoutNs = config.flushTimeout().toNanos();
        net = new LockedNet(transport, lnc);
        signal = new TaskSignal(transport::needsProgress);
        final ConnectMachine machine =
            new ConnectMachine(lnc, transport, rendezvous, config.connectTimeout().toNanos(), clock);
        service = new LncService(this, handover, machine, net, signal);
        thread = new AgentThread(service, signal, this::onServiceFailure);
        fence = FlushFence.open(net, lnc, deadlineNs);
    }

    void start() {
        thread.start();
    }

    NrtAsyncSendRecv owner() {
        return owner;
    }

    int lnc() {
        return lnc;
    }

    int vtpbIndex() {
        return vtpbIndex;
    }

    long requestTimeoutNs() {
        return requestTimeoutNs;
    }

    NanoClock clock() {
        return clock;
    }

    LockedNet net() {
        return net;
    }

    NetTransport transport() {
        return net.transport();
    }

    TaskSignal signal() {
        return signal;
    }

    /** Whether it was closed, or is being closed. */
    boolean isClosed() {
        return closed;
    }

    /** For diagnostics: the service thread. */
    Thread thread() {
        return thread.thread();
    }

    /** For tests that drive the duty cycle by hand. */
    LncService service() {
        return service;
    }

    /** Why the service thread has ended before its time; null while it has not. */
    Throwable fatal() {
        return fatal;
    }

    private void onServiceFailure(final Throwable cause) {
        fatal = cause;
        LOG.error("The service thread of lnc {} has failed; every call on it fails from now on", lnc, cause);
    }

    /**
     * Makes a communicator and hands it to the service thread.
     *
     * @return the communicator, or null when the limit is reached.
     * @throws NrtException CLOSED when the LNC is being closed.
     */
    Communicator newCommunicator(final CommType type, final InetAddress peerAddress, final int peerLnc) {
        connectMutex.lock();
        try {
            if (closed) {
                throw new NrtException(NrtStatus.CLOSED, "lnc " + lnc + " is being closed");
            }
            if (comms.size() >= MAX_COMMUNICATORS) {
                return null;
            }
            final Communicator comm = new Communicator(this, type, peerAddress, peerLnc, clock.nanoTime());
            signal.add();
            if (!handover.offer(comm)) {
                throw new BrokenMachineException("hand-over ring of lnc " + lnc + " is full with " + comms.size() + " communicators");
            }
            comms.add(comm);
            return comm;
        } finally {
            connectMutex.unlock();
        }
    }

    /** Service thread: a communicator that failed to connect no longer counts. */
    void forget(final Communicator comm) {
        connectMutex.lock();
        try {
            comms.remove(comm);
        } finally {
            connectMutex.unlock();
        }
    }

    int communicatorCount() {
        connectMutex.lock();
        try {
            return comms.size();
        } finally {
            connectMutex.unlock();
        }
    }

    void flush() {
        fence.flush(this::fatal, System.nanoTime() + flushTimeoutNs);
    }

    /**
     * Ends the LNC whatever its state: no call gets through any more, the thread ends, communicators and registrations go.
     *
     * <p>What enters the transport is done by a thread of its own, since the transport may not come back from there, as when another LNC
     * is stuck in it. A thread that does not come back from the transport in time, be it the service thread or an application's, keeps
     * what it uses: that is closed when it has come back, and never under it. So are the tensors of requests.
     *
     * @param timeoutNs  bound of all waits together.
     * @param afterwards called once when all is closed, by the thread that closes, maybe long after the return.
     * @return null when all was in order; otherwise what was not.
     */
    String close(final long timeoutNs, final Runnable afterwards) {
        final List<Communicator> all;
        connectMutex.lock();
        try {
            closed = true;
            all = new ArrayList<>(comms);
        } finally {
            connectMutex.unlock();
        }
        final long deadlineNs = System.nanoTime() + timeoutNs;
        final boolean quiet = net.close(timeoutNs);
        all.forEach(Communicator::kill);
        final String trouble = describeTrouble(all);
        signal.shutDown();
        final boolean ended = thread.close(Math.max(0, deadlineNs - System.nanoTime()), TimeUnit.NANOSECONDS);
        final String[] closeTrouble = {"its close was cut short"}; // read when the thread that writes it has ended
        final Thread closer = startCloser(() -> closeTrouble[0] = closeRest(all, deadlineNs, afterwards));
        if (!quiet || !ended) {
            return (quiet ? "its service thread did not end" : "a call did not come back from the transport") + " within "
                + TimeUnit.NANOSECONDS.toMillis(timeoutNs) + " ms; " + service;
        }
        if (!Uninterrupted.join(closer, deadlineNs - System.nanoTime())) {
            return "the transport did not close its communicators within " + TimeUnit.NANOSECONDS.toMillis(timeoutNs)
                + " ms, which " + closer.getName() + " goes on waiting for" + (trouble == null ? "" : "; " + trouble);
        }
        if (fatal != null) {
            return "its service thread had failed: " + fatal;
        }
        return trouble != null ? trouble : closeTrouble[0];
    }

    private Thread startCloser(final Runnable rest) {
        final Thread closer = new Thread(rest, "nrt4j-close-" + lnc);
        closer.setDaemon(true);
        try {
            closer.start();
        } catch (final OutOfMemoryError ex) { // no thread is left
            LOG.debug("lnc {} is closed by its caller", lnc, ex);
            rest.run();
        }
        return closer;
    }

    /** When nobody is inside the transport for this LNC any more, and the service thread touches nothing: closes what is left. */
    private String closeRest(final List<Communicator> all, final long deadlineNs, final Runnable afterwards) {
        net.awaitQuiet();
        thread.awaitEnd();
        final String trouble;
        try {
            trouble = closeParts(all, deadlineNs);
        } finally {
            afterwards.run();
        }
        if (System.nanoTime() - deadlineNs > 0) {
            LOG.warn("lnc {} is closed at last", lnc);
        }
        return trouble;
    }

    /** Closes one after the other, whatever the others' fate; returns what failed first, or null. */
    private String closeParts(final List<Communicator> all, final long deadlineNs) {
        String first = closeOne("what still connects", service::abortConnecting);
        for (final Communicator comm : all) {
            final String next = closeOne(comm, () -> beginClose(comm));
            first = first == null ? next : first;
        }
        // One wait for all of them, which leaves time for the transport's own end.
        final long startNs = System.nanoTime();
        final long leftNs = deadlineNs - startNs;
        final long giveUpNs = startNs + (leftNs < 0 ? NetTransport.CLOSE_WAIT_NS : Math.min(NetTransport.CLOSE_WAIT_NS, leftNs / 2));
        for (final Communicator comm : all) {
            final String next = closeOne(comm, () -> closeComm(comm, giveUpNs));
            first = first == null ? next : first;
        }
        final String last = closeOne("the flush buffer", fence::close);
        return first == null ? last : first;
    }

    private String closeOne(final Object what, final Runnable close) {
        try {
            close.run();
            return null;
        } catch (final RuntimeException | LinkageError ex) { // a native library that lacks a function costs the others nothing
            LOG.error("lnc {}: closing {} failed", lnc, what, ex);
            return "closing " + what + " failed: " + ex.getMessage();
        }
    }

    private static String describeTrouble(final List<Communicator> all) {
        for (final Communicator comm : all) {
            if (!comm.status().isTerminal()) {
                return comm + " is not connected yet (" + comm.status() + ")";
            }
        }
        for (final Communicator comm : all) {
            final int inFlight = comm.requestsInFlight();
            if (inFlight > 0) {
                return inFlight + " requests are in flight on " + comm;
            }
        }
        return null;
    }

    private void beginClose(final Communicator comm) {
        if (comm.mrCache() != null) {
            transport().beginClose(comm.netComm());
        }
    }

    private void closeComm(final Communicator comm, final long deadlineNs) {
        boolean memoryIsOurs = false; // whatever the transport throws
        try {
            if (comm.mrCache() != null) {
                comm.mrCache().close(() -> closeNetComm(comm, deadlineNs));
            }
            memoryIsOurs = true;
        } finally {
            final int requests = comm.reclaimSlots(memoryIsOurs);
            if (!memoryIsOurs && requests > 0) {
                // Lost memory is better than memory that is somebody else's when a late message is written into it.
                LOG.error("lnc {}: the tensors of {} requests on {} are never freed: the transport may use them", lnc, requests, comm);
            }
        }
    }

    private void closeNetComm(final Communicator comm, final long deadlineNs) {
        if (comm.type() == CommType.SEND_COMM) {
            transport().closeSend(comm.netComm(), deadlineNs);
        } else {
            transport().closeRecv(comm.netComm(), deadlineNs);
        }
    }

    @Override
    public String toString() {
        return "lnc " + lnc + " (" + service + ")";
    }
}
