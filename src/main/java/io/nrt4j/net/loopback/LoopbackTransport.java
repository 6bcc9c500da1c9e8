package io.nrt4j.net.loopback;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.Placement;
import io.nrt4j.net.NetTransport;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicLong;

/**
 * A transport between the instances of one JVM. It really moves the bytes, straight from the sender's memory to the receiver's,
 * checks every registration, and can be given faults.
 *
 * <p>Each engine makes an instance of its own; they find each other by the listen handles.
 *
 * <p>Threads: as {@link NetTransport} says. {@code openEnds}, {@code connects} and {@code closed} are guarded by {@code monitor}, which
 * is never held while a channel's lock or a listener's monitor is taken. Tables and channels guard themselves. The data path takes
 * one lock, the channel's, and only to post and to copy.
 */
public final class LoopbackTransport implements NetTransport {
    /** Longest message: 1 TiB. */
    static final long MAX_MESSAGE_BYTES = 1L << 40;

    /** Ends of all transports of this JVM, so that a request's handle never means anything to another transport. */
    private static final HandleTable<LoopbackEnd> ENDS = new HandleTable<>(LoopbackEnd.MAX_ENDS);
    /** Numbers of connects, of this JVM, so that a copied handle never continues the connect of another transport. */
    private static final AtomicLong CONNECT_NUMBERS = new AtomicLong();
    private static final long MAX_REGISTERED_BYTES = 1L << 44;

    private final HandleTable<LoopbackListener> listeners = new HandleTable<>(Integer.MAX_VALUE);
    private final HandleTable<Registration> registrations = new HandleTable<>(Integer.MAX_VALUE);
    private final Backlogs backlogs = new Backlogs();
    private final FaultPlan plan;

    private final Object monitor = new Object();
    private final Set<LoopbackEnd> openEnds = new HashSet<>();
    private final Set<LoopbackListener> openListeners = new HashSet<>();
    private final Map<Long, LoopbackListener.Connect> connects = new HashMap<>();
    private boolean closed;

    /** Makes a transport without faults. */
    public LoopbackTransport() {
        this(null);
    }

    /**
     * Makes a transport.
     *
     * @param plan faults, or null for none.
     */
    public LoopbackTransport(final FaultPlan plan) {
        this.plan = plan;
    }

    @Override
    public String name() {
        return LoopbackTransportProvider.NAME;
    }

    @Override
    public long maxMessageBytes() {
        return MAX_MESSAGE_BYTES;
    }

    // ---- control path

    @Override
    public long listen(final int nic, final byte[] handleOut) {
        planned(FaultPlan.Operation.LISTEN);
        final LoopbackListener listener = new LoopbackListener(this, nic);
        ListenHandle.write(handleOut, listener.open());
        synchronized (monitor) {
            if (!closed) {
                openListeners.add(listener);
                return listeners.add(listener);
            }
        }
        listener.close();
        throw closed("listen");
    }

    @Override
    public long connect(final int nic, final byte[] handle) {
        final UUID id = ListenHandle.readId(handle);
        final LoopbackListener.Connect connect;
        synchronized (monitor) {
            if (closed) {
                throw closed("connect");
            }
            connect = connects.get(ListenHandle.readPending(handle));
        }
        try {
            if (planned(FaultPlan.Operation.CONNECT)) {
                return NOT_YET;
            }
        } catch (final NrtException ex) {
            abandonConnect(nic, handle); // as a connect that really fails leaves nothing behind
            throw ex;
        }
        return connect == null ? startConnect(nic, handle, id) : continueConnect(connect, handle, id);
    }

    private long startConnect(final int nic, final byte[] handle, final UUID id) {
        final LoopbackListener listener = LoopbackListener.find(id);
        final LoopbackListener.Connect connect = listener == null ? null : listener.enqueue(this, nic);
        if (connect == null) {
            throw stale(handle, id);
        }
        synchronized (monitor) {
            if (!closed) {
                final long number = CONNECT_NUMBERS.incrementAndGet();
                connects.put(number, connect);
                ListenHandle.writePending(handle, number);
                return NOT_YET;
            }
        }
        connect.withdraw();
        throw closed("connect");
    }

    private long continueConnect(final LoopbackListener.Connect connect, final byte[] handle, final UUID id) {
        final LoopbackEnd joined = connect.joined();
        if (joined == null) {
            if (connect.isStale()) {
                forget(handle);
                throw stale(handle, id);
            }
            return NOT_YET;
        }
        forget(handle);
        return joined.handle();
    }

    @Override
    public void abandonConnect(final int nic, final byte[] handle) {
        ListenHandle.readId(handle);
        final LoopbackListener.Connect connect = forget(handle);
        final LoopbackEnd joined = connect == null ? null : connect.withdraw();
        if (joined != null) {
            close(joined);
        }
    }

    /** Ends the connect that is under way with this array; null if there is none. */
    private LoopbackListener.Connect forget(final byte[] handle) {
        final long pending = ListenHandle.readPending(handle);
        ListenHandle.writePending(handle, 0);
        synchronized (monitor) {
            return connects.remove(pending);
        }
    }

    @Override
    public long accept(final long listenComm) {
        if (planned(FaultPlan.Operation.ACCEPT)) {
            return NOT_YET;
        }
        final LoopbackListener listener = listeners.get(listenComm);
        if (listener == null) {
            throw new NrtException(NrtStatus.INVALID_HANDLE,
                "loopback accept: no open listen communicator 0x" + Long.toHexString(listenComm));
        }
        final LoopbackEnd end = listener.accept();
        return end == null ? NOT_YET : end.handle();
    }

    @Override
    public void closeSend(final long comm, final long deadlineNs) {
        closeEnd("closeSend", comm, true);
    }

    @Override
    public void closeRecv(final long comm, final long deadlineNs) {
        closeEnd("closeRecv", comm, false);
    }

    private void closeEnd(final String call, final long comm, final boolean sending) {
        final LoopbackEnd end = ENDS.get(comm);
        if (end == null || end.transport() != this) {
            return; // closed before
        }
        if (end.isSending() != sending) {
            throw new NrtException(NrtStatus.INVALID_HANDLE, "loopback " + call + " of " + end);
        }
        close(end);
    }

    private void close(final LoopbackEnd end) {
        end.close(registrations);
        drop(end);
    }

    @Override
    public void closeListen(final long listenComm) {
        final LoopbackListener listener = listeners.get(listenComm);
        if (listener != null) {
            listener.close();
            synchronized (monitor) {
                openListeners.remove(listener);
                listeners.remove(listener);
            }
        }
    }

    @Override
    public void close() {
        final List<LoopbackListener> listening;
        final List<LoopbackListener.Connect> connecting;
        synchronized (monitor) {
            closed = true;
            listening = new ArrayList<>(openListeners);
            connecting = new ArrayList<>(connects.values());
            connects.clear();
        }
        connecting.forEach(LoopbackListener.Connect::withdraw);
        listening.forEach(listener -> closeListen(listener.handle()));
        final List<LoopbackEnd> ends;
        synchronized (monitor) {
            ends = new ArrayList<>(openEnds);
        }
        ends.forEach(this::close);
    }

    /** Takes a new end in, and gives it its handle; false if this transport is closed. */
    boolean adopt(final LoopbackEnd end) {
        synchronized (monitor) {
            if (closed) {
                return false;
            }
            ENDS.add(end);
            end.begin();
            openEnds.add(end);
            backlogs.reserve(openEnds.size());
            return true;
        }
    }

    /** Forgets an end that is closed or was never used. */
    void drop(final LoopbackEnd end) {
        synchronized (monitor) {
            if (openEnds.remove(end)) {
                ENDS.remove(end);
            }
        }
    }

    /**
     * Communicators that are open, for tests of leaks.
     *
     * @return number of send and receive communicators.
     */
    public int openComms() {
        synchronized (monitor) {
            return openEnds.size();
        }
    }

    /**
     * Listeners that are open, for tests of leaks.
     *
     * @return number of listen communicators.
     */
    public int openListeners() {
        return listeners.size();
    }

    /**
     * Registrations that stand, for tests of leaks.
     *
     * @return number of registrations of open communicators.
     */
    public int openRegistrations() {
        return registrations.size();
    }

    /**
     * Connects under way, for tests of leaks.
     *
     * @return number of connects that neither answered nor were abandoned.
     */
    public int pendingConnects() {
        synchronized (monitor) {
            return connects.size();
        }
    }

    Backlogs backlogs() {
        return backlogs;
    }

    // ---- memory

    @Override
    public long regMr(final long comm, final long address, final long sizeBytes, final Placement placement) {
        planned(FaultPlan.Operation.REG_MR);
        final LoopbackEnd end = endOf(FaultPlan.Operation.REG_MR, comm);
        if (address == 0 || sizeBytes <= 0 || sizeBytes > MAX_REGISTERED_BYTES
            || Long.compareUnsigned(address + sizeBytes, address) <= 0) {
            throw new NrtException(NrtStatus.INVALID, "loopback regMr on " + end + ": no memory can be at 0x"
                + Long.toHexString(address) + "+" + sizeBytes);
        }
        final Registration registration = end.register(registrations, address, sizeBytes);
        if (registration == null) {
            throw noSuchComm(FaultPlan.Operation.REG_MR, comm);
        }
        return registration.handle();
    }

    @Override
    public void deregMr(final long comm, final long registration) {
        planned(FaultPlan.Operation.DEREG_MR);
        final LoopbackEnd end = endOf(FaultPlan.Operation.DEREG_MR, comm);
        final Registration found = registrations.get(registration);
        if (found == null || found.end() != end || !end.deregister(registrations, found)) {
            throw notRegistered(FaultPlan.Operation.DEREG_MR, end, registration);
        }
    }

    // ---- data path

    @Override
    public long isend(final long comm, final long address, final long lengthBytes, final long registration) {
        return post(FaultPlan.Operation.ISEND, true, comm, address, lengthBytes, registration);
    }

    @Override
    public long irecv(final long comm, final long address, final long lengthBytes, final long registration) {
        return post(FaultPlan.Operation.IRECV, false, comm, address, lengthBytes, registration);
    }

    @Override
    public long iflush(final long comm, final long address, final long lengthBytes, final long registration) {
        return post(FaultPlan.Operation.IFLUSH, false, comm, address, lengthBytes, registration);
    }

    private long post(
        final FaultPlan.Operation operation, final boolean sending, final long comm, final long address, final long lengthBytes,
        final long registration) {
        final LoopbackEnd end = endOf(operation, comm);
        if (end.isSending() != sending) {
            throw new NrtException(NrtStatus.INVALID_HANDLE, "loopback " + operation.call() + " on " + end);
        }
        final Registration over = checkedRange(operation, end, address, lengthBytes, registration);
        if (plan != null && plan.notYet(operation)) {
            return NOT_YET;
        }
        return operation == FaultPlan.Operation.IFLUSH
            ? end.flush(over, address, lengthBytes, plan)
            : end.post(operation, over, address, lengthBytes, plan);
    }

    private Registration checkedRange(
        final FaultPlan.Operation operation, final LoopbackEnd end, final long address, final long lengthBytes,
        final long registration) {
        if (lengthBytes < 0 || lengthBytes > MAX_MESSAGE_BYTES) {
            throw new NrtException(NrtStatus.INVALID, "loopback " + operation.call() + " on " + end + ": a message has 0 to "
                + MAX_MESSAGE_BYTES + " bytes, not " + lengthBytes);
        }
        final Registration over = registrations.get(registration);
        if (over == null || over.end() != end) {
            throw notRegistered(operation, end, registration);
        }
        if (!over.covers(address, lengthBytes)) {
            throw new NrtException(NrtStatus.INVALID, "loopback " + operation.call() + " on " + end + ": 0x"
                + Long.toHexString(address) + "+" + lengthBytes + " is not inside " + over);
        }
        return over;
    }

    @Override
    public long test(final long request) {
        final LoopbackRequest found = LoopbackEnd.request(ENDS, this, request);
        if (found == null) {
            throw new NrtException(NrtStatus.INVALID_HANDLE, "loopback test: no request 0x" + Long.toHexString(request)
                + ": it was tested done, given up with its communicator, or is of another transport");
        }
        return plan == null ? found.end.test(found) : testAsPlanned(found);
    }

    private long testAsPlanned(final LoopbackRequest request) {
        try {
            if (plan.notYet(FaultPlan.Operation.TEST)) {
                return PENDING;
            }
        } catch (final NrtException ex) {
            request.end.giveUp(request);
            throw ex;
        }
        if (plan.isHeld(request)) {
            request.end.channel().help();
            return PENDING;
        }
        return request.end.test(request);
    }

    @Override
    public int progress() {
        return backlogs.isEmpty() ? 0 : backlogs.progress();
    }

    @Override
    public boolean needsProgress() {
        return !backlogs.isEmpty();
    }

    // ---- what all share

    private boolean planned(final FaultPlan.Operation operation) {
        return plan != null && plan.notYet(operation);
    }

    private LoopbackEnd endOf(final FaultPlan.Operation operation, final long comm) {
        final LoopbackEnd end = ENDS.get(comm);
        if (end == null || end.transport() != this) {
            throw noSuchComm(operation, comm);
        }
        return end;
    }

    private static NrtException noSuchComm(final FaultPlan.Operation operation, final long comm) {
        return new NrtException(NrtStatus.INVALID_HANDLE,
            "loopback " + operation.call() + ": no open communicator 0x" + Long.toHexString(comm));
    }

    private static NrtException notRegistered(
        final FaultPlan.Operation operation, final LoopbackEnd end, final long registration) {
        return new NrtException(NrtStatus.INVALID, "loopback " + operation.call() + " on " + end
            + ": no registration 0x" + Long.toHexString(registration) + " stands for this communicator");
    }

    private static NrtException stale(final byte[] handle, final UUID id) {
        ListenHandle.writePending(handle, 0);
        return new NrtException(NrtStatus.CLOSED, "loopback connect: the handle is stale: listener " + id
            + " was closed, or is not in this JVM");
    }

    private static NrtException closed(final String call) {
        return new NrtException(NrtStatus.CLOSED, "loopback " + call + ": the transport is closed");
    }

    @Override
    public String toString() {
        return "loopback (" + openComms() + " communicators, " + openListeners() + " listeners, " + openRegistrations()
            + " registrations, " + pendingConnects() + " connects under way)";
    }
}
