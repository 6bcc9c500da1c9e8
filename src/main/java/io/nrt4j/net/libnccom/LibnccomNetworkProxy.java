package io.nrt4j.net.libnccom;

import io.nrt4j.NrtConfig;
import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.net.NetDestAddr;
import io.nrt4j.net.NetOpsInfo;
import io.nrt4j.net.NetSrcAddr;
import io.nrt4j.net.NetworkProxy;
import io.nrt4j.net.signals.SignalGuard;
import java.util.concurrent.atomic.AtomicBoolean;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The proxy seam over libnccom: descriptor lists cross as native records, and the library moves the operations on.
 *
 * <p>A communicator is made with {@link #openComm}; memory is registered with {@link #regMr}, whose answers go into the entries of
 * the lists. The library marks completion in its records, not in the entries: {@link NetSrcAddr#isComplete} stays false.
 *
 * <p>A semaphore word gets the amount to add, as {@code nec_inc_semaphore} stores it, not a running count.
 *
 * <p>Threads: as {@link NetworkProxy} says; calls for one communicator exclude one another. {@code closed} elects the one that
 * closes.
 *
 * <p>Ports {@code ncclStartNetworkProxy}, {@code ncclNetworkProxyProgress} and {@code ncclStopNetworkProxy} of libnrt.
 */
public final class LibnccomNetworkProxy implements NetworkProxy, AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(LibnccomNetworkProxy.class);

    private final Nccom nccom;
    private final int memoryType;
    private final HandleTable<ProxyComm> comms = new HandleTable<>();
    private final AtomicBoolean closed = new AtomicBoolean();

    /**
     * Loads the library and starts its network, unless it runs.
     *
     * @param config library, memory type, root communicator id.
     * @throws NrtException FAILURE with the cause when it cannot.
     */
    public LibnccomNetworkProxy(final NrtConfig config) {
        nccom = NccomLoader.require(config);
        memoryType = config.libnccomMemoryType();
        nccom.acquireNet(config.rootCommId());
    }

    /**
     * Makes a global communicator.
     *
     * @param rank       this rank, from 0.
     * @param ranks      number of ranks.
     * @param rootId     what all ranks have in common: {@code ip:port} of the root.
     * @param deviceInfo address of the device description that the library wants on a real host, or 0.
     * @return handle, never 0 and never used twice.
     * @throws NrtException FAILURE when the library refuses.
     */
    public long openComm(final int rank, final int ranks, final String rootId, final long deviceInfo) {
        try (NativeCall call = new NativeCall(); CString root = new CString(rootId); CString hint = new CString("nrt4j")) {
            int status = SignalGuard.around(() -> nccom.neuronInitGlobalComm(
                call, rank, ranks, deviceInfo, root.address(), call.outAddress(0), hint.address()));
            final long pointer = call.out(0);
            if (status != 0 || pointer == 0) {
                throw NccomFailure.of(NccomSymbol.INIT_GLOBAL_COMM, "of rank " + rank + " of " + ranks, status);
            }
            status = SignalGuard.around(() -> nccom.neuronBuildGraphComm(call, pointer));
            if (status != 0) {
                nccom.neuronFreeComm(call, pointer);
                throw NccomFailure.of(NccomSymbol.BUILD_GRAPH_COMM, "of rank " + rank + " of " + ranks, status);
            }
            try {
                return comms.add(handle -> new ProxyComm(handle, pointer)).handle();
            } catch (final NrtException ex) {
                nccom.neuronFreeComm(call, pointer);
                throw ex;
            }
        }
    }

    /**
     * Registers memory for a communicator's transfers.
     *
     * @param comm      from {@link #openComm}.
     * @param address   first byte.
     * @param sizeBytes at least 1.
     * @return what an entry's registration must be; ends with the communicator, or {@link #deregMr}.
     * @throws NrtException FAILURE when the memory cannot be registered.
     */
    public long regMr(final long comm, final long address, final long sizeBytes) {
        final ProxyComm found = find(NccomSymbol.NET_REG_MR, comm);
        synchronized (found) {
            checkOpen(NccomSymbol.NET_REG_MR, found);
            final NativeCall call = found.call();
            call.out(0, 0);
            final int status = address == 0 || sizeBytes < 1 ? NrtStatus.INVALID.code()
                : nccom.neuronNetRegMr(call, found.pointer(), 0, 0, false, 0, address, sizeBytes, memoryType, call.outAddress(0));
            final long mhandle = call.out(0);
            if (status != 0 || mhandle == 0) {
                throw NccomFailure.of(NccomSymbol.NET_REG_MR, "of " + sizeBytes + " bytes with type " + memoryType + " on " + found,
                    status);
            }
            found.registrations().add(mhandle);
            return mhandle;
        }
    }

    /**
     * Ends a registration. No block that names it may run.
     *
     * @param comm         from {@link #openComm}.
     * @param registration from {@link #regMr}.
     */
    public void deregMr(final long comm, final long registration) {
        final ProxyComm found = find(NccomSymbol.NET_DEREG_MR, comm);
        synchronized (found) {
            checkOpen(NccomSymbol.NET_DEREG_MR, found);
            if (!found.registrations().remove(Long.valueOf(registration))) {
                throw new NrtException(NrtStatus.INVALID_HANDLE, NccomSymbol.NET_DEREG_MR.symbol() + ": 0x"
                    + Long.toHexString(registration) + " is no registration of " + found);
            }
            final int status = nccom.neuronNetDeregMr(found.call(), found.pointer(), 0, 0, false, 0, registration);
            if (status != 0) {
                throw NccomFailure.of(NccomSymbol.NET_DEREG_MR, "on " + found, status);
            }
        }
    }

    @Override
    public void start(
        final long comm, final int stream, final int basicBlock, final NetOpsInfo[] operations, final NetSrcAddr[] sources,
        final NetDestAddr[] destinations) {
        final ProxyComm found = checked(NccomSymbol.START_NETWORK_PROXY, comm, stream, basicBlock);
        synchronized (found) {
            checkOpen(NccomSymbol.START_NETWORK_PROXY, found);
            final NativeLists lists;
            try {
                lists = new NativeLists(operations, sources, destinations);
            } catch (final NullPointerException ex) {
                throw new NrtException(NrtStatus.NETWORK_PROXY_FAILURE, NccomSymbol.START_NETWORK_PROXY.symbol() + " of stream "
                    + stream + ", block " + basicBlock + ": a list or an entry is null", ex);
            }
            final int status = nccom.neuronStartNetworkProxy(found.call(), found.pointer(), stream, basicBlock, lists.operations(),
                lists.operationCount(), lists.sources(), lists.sourceCount(), lists.destinations(), lists.destinationCount());
            if (status != 0) {
                lists.close();
                throw failure(NccomSymbol.START_NETWORK_PROXY, stream, basicBlock, status);
            }
            found.keep(stream, basicBlock, lists);
        }
    }

    /** The library ANDs into its flags, so they start as true. */
    @Override
    public int progress(final long comm, final int stream, final int basicBlock) {
        final ProxyComm found = checked(NccomSymbol.NETWORK_PROXY_PROGRESS, comm, stream, basicBlock);
        synchronized (found) {
            checkOpen(NccomSymbol.NETWORK_PROXY_PROGRESS, found);
            final NativeCall call = found.call();
            call.out(0, 1);
            call.out(1, 1);
            final int status = nccom.neuronNetworkProxyProgress(call, found.pointer(), stream, basicBlock, call.outAddress(0),
                call.outAddress(1));
            if (status != 0) {
                throw failure(NccomSymbol.NETWORK_PROXY_PROGRESS, stream, basicBlock, status);
            }
            return (call.out(0) != 0 ? IDLE : 0) | (call.out(1) != 0 ? DONE : 0);
        }
    }

    @Override
    public void stop(final long comm, final int stream) {
        final ProxyComm found = checked(NccomSymbol.STOP_NETWORK_PROXY, comm, stream, 0);
        synchronized (found) {
            checkOpen(NccomSymbol.STOP_NETWORK_PROXY, found);
            final int status = nccom.neuronStopNetworkProxy(found.call(), found.pointer(), stream);
            if (status != 0) {
                throw new NrtException(NrtStatus.NETWORK_PROXY_FAILURE,
                    NccomFailure.of(NccomSymbol.STOP_NETWORK_PROXY, "of stream " + stream, status).getMessage());
            }
        }
    }

    /**
     * Frees a communicator with its blocks and registrations. Idempotent.
     *
     * @param comm from {@link #openComm}.
     */
    public void closeComm(final long comm) {
        final ProxyComm found = comms.remove(comm);
        if (found == null) {
            return;
        }
        synchronized (found) {
            for (final long mhandle : found.registrations()) {
                log(NccomSymbol.NET_DEREG_MR, nccom.neuronNetDeregMr(found.call(), found.pointer(), 0, 0, false, 0, mhandle), found);
            }
            log(NccomSymbol.FREE_COMM, nccom.neuronFreeComm(found.call(), found.pointer()), found);
            found.close();
        }
    }

    private static void log(final NccomSymbol symbol, final int status, final ProxyComm comm) {
        if (status != 0) {
            LOG.error("{}", NccomFailure.of(symbol, "in the close of " + comm, status).getMessage());
        }
    }

    /** Frees all communicators; the library's network ends with its last user. Idempotent. */
    @Override
    public void close() {
        if (closed.compareAndSet(false, true)) {
            for (final long handle : comms.close()) {
                closeComm(handle);
            }
            nccom.releaseNet();
        }
    }

    private ProxyComm find(final NccomSymbol symbol, final long comm) {
        final ProxyComm found = comms.find(comm);
        if (found == null) {
            throw new NrtException(NrtStatus.NETWORK_PROXY_FAILURE, symbol.symbol() + ": 0x" + Long.toHexString(comm)
                + " is no open communicator");
        }
        return found;
    }

    private ProxyComm checked(final NccomSymbol symbol, final long comm, final int stream, final int basicBlock) {
        if (stream < 0 || stream >= MAX_STREAMS || basicBlock < 0) {
            throw new NrtException(NrtStatus.NETWORK_PROXY_FAILURE, symbol.symbol() + ": no stream " + stream + " or no block "
                + basicBlock);
        }
        return find(symbol, comm);
    }

    private static void checkOpen(final NccomSymbol symbol, final ProxyComm comm) {
        if (comm.isClosed()) {
            throw new NrtException(NrtStatus.NETWORK_PROXY_FAILURE, symbol.symbol() + ": " + comm + " was closed");
        }
    }

    private static NrtException failure(final NccomSymbol symbol, final int stream, final int basicBlock, final int status) {
        return new NrtException(NrtStatus.NETWORK_PROXY_FAILURE,
            NccomFailure.of(symbol, "of stream " + stream + ", block " + basicBlock, status).getMessage());
    }

    @Override
    public String toString() {
        return "network proxy on " + nccom + ": " + comms;
    }
}
