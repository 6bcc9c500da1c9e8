package io.nrt4j.net.libnccom;

import io.nrt4j.NrtConfig;
import io.nrt4j.NrtSetting;
import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.Placement;
import io.nrt4j.net.NetTransport;
import io.nrt4j.net.signals.SignalGuard;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The network functions of libnccom as a transport.
 *
 * <p>Handles are not the library's pointers but name table entries: what is closed, finished or never was is refused here, since
 * the library would follow the pointer. For the same reason ranges are checked against registrations before a post.
 *
 * <p>Where libnccom has no counterpart: a connect cannot be abandoned ({@link #abandonConnect}); requests are given up by ending
 * the communicator's registrations and closing it; progress is made by tests alone, of any request. It does not say why a
 * connect failed, but for status 14, which is a stale handle.
 *
 * <p>Threads: as {@link NetTransport} says; see {@link NccomComm} for what excludes what. {@code nics} caches what the library
 * answers, which is the same for all who ask; {@code closed} elects the one that closes. {@code netUses} counts, by
 * compare-and-set, this transport while it is open, each call that needs no communicator, and each communicator that is being
 * ended; who brings it to 0 gives the library's network back, so that it does not end under a call.
 *
 * <p>Ports the {@code ncclNet*} wrappers (0x1c3xxx).
 */
final class LibnccomTransport implements NetTransport {
    static final String NAME = "libnccom";

    private static final Logger LOG = LoggerFactory.getLogger(LibnccomTransport.class);
    private static final int UNKNOWN = -1;

    private final Nccom nccom;
    private final NrtConfig config;
    private final int memoryType;
    private final HandleTable<NccomComm> comms = new HandleTable<>();
    private final int[] nics = new int[NrtConfig.MAX_LNCS];
    private final AtomicBoolean closed = new AtomicBoolean();
    private final AtomicInteger netUses = new AtomicInteger(1);

    /**
     * Starts the library's network, unless it runs.
     *
     * @throws NrtException FAILURE with the cause when it cannot be loaded or started.
     */
    LibnccomTransport(final NrtConfig config) {
        this.config = config;
        nccom = NccomLoader.require(config);
        memoryType = config.libnccomMemoryType();
        Arrays.fill(nics, UNKNOWN);
        nccom.acquireNet(config.rootCommId());
    }

    @Override
    public String name() {
        return NAME;
    }

    /** Sizes are C ints. */
    @Override
    public long maxMessageBytes() {
        return Integer.MAX_VALUE;
    }

    @Override
    public int nicOf(final int lnc) {
        if (lnc < 0 || lnc >= nics.length) {
            throw new NrtException(NrtStatus.INVALID, "no lnc " + lnc);
        }
        if (nics[lnc] == UNKNOWN) {
            checkOpen(NccomSymbol.PREFERRED_NC_RID_NIC);
            enterNet(NccomSymbol.PREFERRED_NC_RID_NIC);
            try (NativeCall call = new NativeCall()) {
                final int status = nccom.neuronPreferredNcRidNic(call, lnc, config.vtpbIndex(lnc), call.outAddress(0));
                if (status != 0) {
                    throw NccomFailure.of(NccomSymbol.PREFERRED_NC_RID_NIC, "for lnc " + lnc, status);
                }
                nics[lnc] = call.outInt(0);
            } finally {
                releaseNet();
            }
        }
        return nics[lnc];
    }

    // ---- connecting

    @Override
    public long listen(final int nic, final byte[] handleOut) {
        checkHandle(NccomSymbol.NET_LISTEN, handleOut);
        enterNet(NccomSymbol.NET_LISTEN);
        try (NativeCall call = new NativeCall()) {
            final int status = SignalGuard.around(
                () -> nccom.neuronNetListen(call, nic, call.handleAddress(), call.outAddress(0)));
            if (status != 0 || call.out(0) == 0) {
                throw NccomFailure.of(NccomSymbol.NET_LISTEN, "on nic " + nic, status);
            }
            call.getHandle(handleOut);
            return add(NccomComm.Kind.LISTEN, call.out(0));
        } finally {
            releaseNet();
        }
    }

    /** The library's progress is in the handle's bytes: they go there and come back. */
    @Override
    public long connect(final int nic, final byte[] handle) {
        checkHandle(NccomSymbol.NET_CONNECT, handle);
        enterNet(NccomSymbol.NET_CONNECT);
        try (NativeCall call = new NativeCall()) {
            call.putHandle(handle);
            final int status = SignalGuard.around(
                () -> nccom.neuronNetConnect(call, nic, call.handleAddress(), call.outAddress(0)));
            call.getHandle(handle);
            if (status == NrtStatus.CLOSED.code()) {
                throw NccomFailure.of(NrtStatus.CLOSED, NccomSymbol.NET_CONNECT, "on nic " + nic + " to a stale handle", status);
            } else if (status != 0) {
                throw NccomFailure.of(NccomSymbol.NET_CONNECT, "on nic " + nic, status);
            }
            return call.out(0) == 0 ? NOT_YET : add(NccomComm.Kind.SEND, call.out(0));
        } finally {
            releaseNet();
        }
    }

    /**
     * Does nothing: libnccom has no such call. What a begun connect holds stays until {@code neuronFiniPlugin}, and the peer may
     * still accept it.
     */
    @Override
    public void abandonConnect(final int nic, final byte[] handle) {
        LOG.debug("A connect on nic {} is abandoned; libnccom keeps what it holds", nic);
    }

    @Override
    public long accept(final long listenComm) {
        final NccomComm listener = find(NccomSymbol.NET_ACCEPT, listenComm, NccomComm.Kind.LISTEN);
        listener.enter(NccomSymbol.NET_ACCEPT);
        try (NativeCall call = new NativeCall()) {
            final int status = SignalGuard.around(
                () -> nccom.neuronNetAccept(call, listener.pointer(), call.outAddress(0)));
            if (status != 0) {
                throw NccomFailure.of(NccomSymbol.NET_ACCEPT, "on " + listener, status);
            }
            return call.out(0) == 0 ? NOT_YET : add(NccomComm.Kind.RECV, call.out(0));
        } finally {
            leave(listener);
        }
    }

    private long add(final NccomComm.Kind kind, final long pointer) {
        try {
            return comms.add(handle -> new NccomComm(nccom, kind, handle, pointer)).handle();
        } catch (final NrtException ex) {
            try (NativeCall call = new NativeCall()) {
                closeNative(call, kind, pointer, "a new one");
            }
            throw ex;
        }
    }

    // ---- memory

    @Override
    public long regMr(final long comm, final long address, final long sizeBytes, final Placement placement) {
        if (address == 0 || sizeBytes < 1) {
            throw new NrtException(NrtStatus.INVALID, NccomSymbol.NET_REG_MR_OG.symbol() + " of " + sizeBytes + " bytes at 0x"
                + Long.toHexString(address));
        }
        final NccomComm found = find(NccomSymbol.NET_REG_MR_OG, comm, null);
        found.enter(NccomSymbol.NET_REG_MR_OG);
        try (NativeCall call = new NativeCall()) {
            final int status =
                nccom.neuronNetRegMrOG(call, found.pointer(), address, sizeBytes, memoryType, call.outAddress(0));
            final long mhandle = call.out(0);
            if (status != 0 || mhandle == 0) {
                throw registrationFailure(sizeBytes, placement, found, status);
            }
            return found.addRegistration(mhandle, address, sizeBytes);
        } finally {
            leave(found);
        }
    }

    private NrtException registrationFailure(final long sizeBytes, final Placement placement, final NccomComm comm, final int status) {
        final String advice = memoryType == 1 ? "" : "; a host whose fabric cannot register device memory needs "
            + NrtSetting.LIBNCCOM_MEMORY_TYPE.variable() + "=1";
        return new NrtException(NrtStatus.FAILURE, NccomFailure.of(NccomSymbol.NET_REG_MR_OG, "of " + sizeBytes + " bytes of "
            + placement + " memory with type " + memoryType + " on " + comm, status).getMessage() + advice);
    }

    @Override
    public void deregMr(final long comm, final long registration) {
        final NccomComm found = find(NccomSymbol.NET_DEREG_MR_OG, comm, null);
        found.enter(NccomSymbol.NET_DEREG_MR_OG);
        try (NativeCall call = new NativeCall()) {
            final long mhandle = found.removeRegistration(registration);
            if (mhandle == 0) {
                throw new NrtException(NrtStatus.INVALID_HANDLE, NccomSymbol.NET_DEREG_MR_OG.symbol() + ": 0x"
                    + Long.toHexString(registration) + " is no registration of " + found);
            }
            final int status = nccom.neuronNetDeregMrOG(call, found.pointer(), mhandle);
            if (status != 0) {
                throw NccomFailure.of(NccomSymbol.NET_DEREG_MR_OG, "on " + found, status);
            }
        } finally {
            leave(found);
        }
    }

    // ---- the data path

    @Override
    public long isend(final long comm, final long address, final long lengthBytes, final long registration) {
        return post(NccomSymbol.NET_ISEND, NccomComm.Kind.SEND, comm, address, lengthBytes, registration);
    }

    @Override
    public long irecv(final long comm, final long address, final long lengthBytes, final long registration) {
        return post(NccomSymbol.NET_IRECV, NccomComm.Kind.RECV, comm, address, lengthBytes, registration);
    }

    @Override
    public long iflush(final long comm, final long address, final long lengthBytes, final long registration) {
        return post(NccomSymbol.NET_IFLUSH, NccomComm.Kind.RECV, comm, address, lengthBytes, registration);
    }

    private long post(
        final NccomSymbol symbol, final NccomComm.Kind kind, final long comm, final long address, final long lengthBytes,
        final long registration) {
        if (lengthBytes < 0 || lengthBytes > Integer.MAX_VALUE) {
            throw new NrtException(NrtStatus.INVALID, symbol.symbol() + " of " + lengthBytes + " bytes: its sizes are 0 to "
                + Integer.MAX_VALUE);
        }
        return find(symbol, comm, kind).post(symbol, address, (int) lengthBytes, registration);
    }

    @Override
    public long test(final long request) {
        final NccomComm comm = RequestTable.isRequest(request) ? comms.at(RequestTable.commIndex(request)) : null;
        if (comm == null) {
            throw NccomComm.noRequest(request);
        }
        return comm.test(request);
    }

    // ---- closing

    @Override
    public void closeSend(final long comm, final long deadlineNs) {
        close(comm, NccomComm.Kind.SEND, deadlineNs);
    }

    @Override
    public void closeRecv(final long comm, final long deadlineNs) {
        close(comm, NccomComm.Kind.RECV, deadlineNs);
    }

    @Override
    public void closeListen(final long listenComm) {
        close(listenComm, NccomComm.Kind.LISTEN, System.nanoTime() + CLOSE_WAIT_NS);
    }

    private void close(final long handle, final NccomComm.Kind kind, final long deadlineNs) {
        final long startNs = System.nanoTime();
        if (!takeNet()) {
            return;
        }
        final NccomComm found = comms.find(handle);
        if (found == null || found.kind() != kind || comms.remove(handle) == null) {
            releaseNet();
        } else if (found.beginClose(deadlineNs - startNs)) {
            end(found);
        } else {
            onStuck(found, startNs);
        }
    }

    /** A listener has no memory that its owner waits for. */
    private static void onStuck(final NccomComm comm, final long startNs) {
        final String text = "close of " + comm + ": after " + (System.nanoTime() - startNs) / 1_000_000 + " ms, " + comm.inside()
            + " calls for it are still inside the library; the last one to come back ends it";
        LOG.error("{}", text);
        if (comm.kind() != NccomComm.Kind.LISTEN) {
            throw new NrtException(NrtStatus.TIMEOUT, text);
        }
    }

    private void leave(final NccomComm comm) {
        if (comm.leave()) {
            end(comm);
        }
    }

    /** Ends the registrations first: deregistering needs the communicator. */
    private void end(final NccomComm comm) {
        try (NativeCall call = comm.call()) {
            for (long mhandle = comm.nextRegistration(); mhandle != 0; mhandle = comm.nextRegistration()) {
                final int status = nccom.neuronNetDeregMrOG(call, comm.pointer(), mhandle);
                if (status != 0) {
                    LOG.error("{}", NccomFailure.of(NccomSymbol.NET_DEREG_MR_OG, "in the close of " + comm, status).getMessage());
                }
            }
            closeNative(call, comm.kind(), comm.pointer(), comm.toString());
        } finally {
            releaseNet();
        }
    }

    /** False when the network has been given back. */
    private boolean takeNet() {
        return netUses.getAndUpdate(uses -> uses == 0 ? 0 : uses + 1) != 0;
    }

    /** Before a call that needs the network but no communicator: {@link #releaseNet} follows it. */
    private void enterNet(final NccomSymbol symbol) {
        if (!takeNet()) {
            throw new NrtException(NrtStatus.CLOSED, symbol.symbol() + ": the transport was closed");
        }
    }

    private void releaseNet() {
        if (netUses.decrementAndGet() == 0) {
            nccom.releaseNet();
        }
    }

    private void closeNative(final NativeCall call, final NccomComm.Kind kind, final long pointer, final String what) {
        final NccomSymbol symbol;
        final int status;
        switch (kind) {
            case SEND -> {
                symbol = NccomSymbol.NET_CLOSE_SEND;
                status = nccom.neuronNetCloseSend(call, pointer);
            }
            case RECV -> {
                symbol = NccomSymbol.NET_CLOSE_RECV;
                status = nccom.neuronNetCloseRecv(call, pointer);
            }
            default -> {
                symbol = NccomSymbol.NET_CLOSE_LISTEN;
                status = nccom.neuronNetCloseListen(call, pointer);
            }
        }
        if (status != 0) {
            LOG.error("{}", NccomFailure.of(symbol, "of " + what, status).getMessage());
        }
    }

    /** What a stuck call keeps open ends when that call comes back, and the library's network with it. */
    @Override
    public void close() {
        if (!closed.compareAndSet(false, true)) {
            return;
        }
        final long deadlineNs = System.nanoTime() + CLOSE_WAIT_NS; // one for all
        for (final long handle : comms.close()) {
            final NccomComm found = comms.find(handle);
            if (found != null) {
                try {
                    close(handle, found.kind(), deadlineNs);
                } catch (final NrtException ex) {
                    LOG.debug("{} is closed all the same", this, ex); // it was told already, by the close of the communicator
                }
            }
        }
        releaseNet();
    }

    // ---- checks

    /** Kind null: one that carries data, either way. */
    private NccomComm find(final NccomSymbol symbol, final long handle, final NccomComm.Kind kind) {
        final NccomComm found = comms.find(handle);
        if (found == null || (kind == null ? found.kind() == NccomComm.Kind.LISTEN : found.kind() != kind)) {
            throw new NrtException(NrtStatus.INVALID_HANDLE, symbol.symbol() + ": 0x" + Long.toHexString(handle)
                + " is no open communicator of this kind");
        }
        return found;
    }

    private void checkHandle(final NccomSymbol symbol, final byte[] handle) {
        checkOpen(symbol);
        if (handle.length != HANDLE_BYTES) {
            throw new NrtException(NrtStatus.INVALID, symbol.symbol() + ": a handle of " + handle.length + " bytes instead of "
                + HANDLE_BYTES);
        }
    }

    private void checkOpen(final NccomSymbol symbol) {
        if (closed.get()) {
            throw new NrtException(NrtStatus.CLOSED, symbol.symbol() + ": the transport was closed");
        }
    }

    @Override
    public String toString() {
        return NAME + " transport on " + nccom + ": " + comms;
    }
}
