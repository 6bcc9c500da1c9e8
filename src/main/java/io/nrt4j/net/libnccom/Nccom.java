package io.nrt4j.net.libnccom;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.net.signals.SignalGuard;
import java.util.Map;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The table of the library's functions, and a wrapper for each of them, with pointers as {@code long}.
 *
 * <p>In an empty table every wrapper answers 1 and logs the sticky error, but for the version query and the proxy's progress,
 * which have no such check in the original: the former does nothing, the latter answers 1 without a word.
 *
 * <p>Threads: any, with a {@link NativeCall} of one's own; what the functions themselves allow is told where they are used. The
 * table never changes. {@code netUsers} and {@code rootCommId} are guarded by the monitor.
 *
 * <p>Ports the {@code nccl*} wrappers of libnrt and their {@code .bss} table.
 */
final class Nccom {
    private static final Logger LOG = LoggerFactory.getLogger(Nccom.class);
    private static final int REFUSED = NrtStatus.FAILURE.code();

    private final String name;
    private final long[] table = new long[NccomSymbol.values().length];
    private final NccomVersion version;
    private final String error;
    private int netUsers;
    private String rootCommId;

    private Nccom(final String name, final Map<NccomSymbol, Long> addresses, final NccomVersion version, final String error) {
        this.name = name;
        this.version = version;
        this.error = error;
        addresses.forEach((symbol, address) -> table[symbol.ordinal()] = address);
    }

    static Nccom loaded(final String name, final Map<NccomSymbol, Long> addresses, final NccomVersion version) {
        return new Nccom(name, addresses, version, null);
    }

    static Nccom failed(final String name, final String error) {
        return new Nccom(name, Map.of(), null, error);
    }

    boolean isLoaded() {
        return error == null;
    }

    /** The sticky error, or null. */
    String error() {
        return error;
    }

    /** File or name that was opened. */
    String name() {
        return name;
    }

    /** Version of a loaded library. */
    NccomVersion version() {
        return version;
    }

    // ---- the network as a whole

    /**
     * One more user of the library's network; the first one starts it.
     *
     * @param root root communicator id, or empty.
     * @throws NrtException FAILURE when it cannot be started, or runs with another root communicator id.
     */
    synchronized void acquireNet(final String root) {
        if (netUsers == 0) {
            try (NativeCall call = new NativeCall(); CString text = new CString(root)) {
                final int status = SignalGuard.around(() -> neuronInitNet(call, text.address()));
                if (status != 0) {
                    throw NccomFailure.of(NccomSymbol.INIT_NET, root.isEmpty() ? "without a root communicator id"
                        : "with root communicator id " + root, status);
                }
            }
            rootCommId = root;
        } else if (!rootCommId.equals(root)) {
            throw new NrtException(NrtStatus.FAILURE, name + " runs with root communicator id '" + rootCommId + "'; '" + root
                + "' has to wait until all its users are closed");
        }
        netUsers++;
    }

    /** One user less; the last one ends it. */
    synchronized void releaseNet() {
        if (--netUsers == 0) {
            try (NativeCall call = new NativeCall()) {
                final int status = neuronFiniPlugin(call);
                if (status != 0) {
                    LOG.error("{}", NccomFailure.of(NccomSymbol.FINI_PLUGIN, "", status).getMessage());
                }
            }
        }
    }

    // ---- the 37 functions

    private int invoke(final NativeCall call, final NccomSymbol symbol) {
        if (error != null) {
            LOG.error("{}: {}", symbol.symbol(), error);
            return REFUSED;
        }
        return call.invoke(symbol.callInterface(), table[symbol.ordinal()]);
    }

    private static void arguments(final NativeCall call, final long a, final long b, final long c) {
        call.argument(0, a);
        call.argument(1, b);
        call.argument(2, c);
    }

    private static void arguments(final NativeCall call, final long a, final long b, final long c, final long d, final long e) {
        arguments(call, a, b, c);
        call.argument(3, d);
        call.argument(4, e);
    }

    void neuronGetVersionInfo(final NativeCall call, final long info, final int size) {
        arguments(call, info, size, 0);
        if (table[NccomSymbol.GET_VERSION_INFO.ordinal()] != 0) {
            call.invoke(NccomSymbol.GET_VERSION_INFO.callInterface(), table[NccomSymbol.GET_VERSION_INFO.ordinal()]);
        }
    }

    int neuronGetUniqueId(final NativeCall call, final long id, final int ranks, final long hint) {
        arguments(call, id, ranks, hint);
        return invoke(call, NccomSymbol.GET_UNIQUE_ID);
    }

    int neuronInitGlobalComm(
        final NativeCall call, final int device, final int devices, final long deviceInfo, final long rootId, final long commOut,
        final long hint) {
        arguments(call, device, devices, deviceInfo, rootId, commOut);
        call.argument(5, hint);
        return invoke(call, NccomSymbol.INIT_GLOBAL_COMM);
    }

    int neuronInitComm(
        final NativeCall call, final long commOut, final int ranks, final long id, final int rank, final long deviceInfo,
        final boolean bypassGraph) {
        arguments(call, commOut, ranks, id, rank, deviceInfo);
        call.argument(5, bool(bypassGraph));
        return invoke(call, NccomSymbol.INIT_COMM);
    }

    int neuronBuildGraphComm(final NativeCall call, final long comm) {
        call.argument(0, comm);
        return invoke(call, NccomSymbol.BUILD_GRAPH_COMM);
    }

    int neuronGetCommInfo(final NativeCall call, final long comm, final long infoOut) {
        arguments(call, comm, infoOut, 0);
        return invoke(call, NccomSymbol.GET_COMM_INFO);
    }

    int neuronFreeComm(final NativeCall call, final long comm) {
        call.argument(0, comm);
        return invoke(call, NccomSymbol.FREE_COMM);
    }

    int neuronExpandConnectivity(final NativeCall call, final long comm, final int connectivity) {
        arguments(call, comm, connectivity, 0);
        return invoke(call, NccomSymbol.EXPAND_CONNECTIVITY);
    }

    int neuronStartNetworkProxy(
        final NativeCall call, final long comm, final int stream, final int basicBlock, final long operations,
        final int operationCount, final long sources, final int sourceCount, final long destinations, final int destinationCount) {
        arguments(call, comm, stream, basicBlock, operations, operationCount);
        call.argument(5, sources);
        call.argument(6, sourceCount);
        call.argument(7, destinations);
        call.argument(8, destinationCount);
        return invoke(call, NccomSymbol.START_NETWORK_PROXY);
    }

    int neuronStopNetworkProxy(final NativeCall call, final long comm, final int stream) {
        arguments(call, comm, stream, 0);
        return invoke(call, NccomSymbol.STOP_NETWORK_PROXY);
    }

    int neuronNetworkProxyProgress(
        final NativeCall call, final long comm, final int stream, final int basicBlock, final long idle, final long done) {
        arguments(call, comm, stream, basicBlock, idle, done);
        final long function = table[NccomSymbol.NETWORK_PROXY_PROGRESS.ordinal()];
        return function == 0 ? REFUSED : call.invoke(NccomSymbol.NETWORK_PROXY_PROGRESS.callInterface(), function);
    }

    int neuronBootstrapSend(
        final NativeCall call, final long state, final int peer, final long data, final long size, final long hint) {
        arguments(call, state, peer, data, size, hint);
        return invoke(call, NccomSymbol.BOOTSTRAP_SEND);
    }

    int neuronBootstrapRecv(
        final NativeCall call, final long state, final int peer, final long data, final long size, final long hint) {
        arguments(call, state, peer, data, size, hint);
        return invoke(call, NccomSymbol.BOOTSTRAP_RECV);
    }

    int neuronBootstrapAllGather(final NativeCall call, final long state, final long allData, final long size, final long hint) {
        arguments(call, state, allData, size, hint, 0);
        return invoke(call, NccomSymbol.BOOTSTRAP_ALL_GATHER);
    }

    int neuronNetRegMr(
        final NativeCall call, final long comm, final int pattern, final int index, final boolean flag, final int ofiCommType,
        final long data, final long size, final int pointerType, final long mhandleOut) {
        arguments(call, comm, pattern, index, bool(flag), ofiCommType);
        call.argument(5, data);
        call.argument(6, size);
        call.argument(7, pointerType);
        call.argument(8, mhandleOut);
        return invoke(call, NccomSymbol.NET_REG_MR);
    }

    int neuronNetDeregMr(
        final NativeCall call, final long comm, final int pattern, final int index, final boolean flag, final int ofiCommType,
        final long mhandle) {
        arguments(call, comm, pattern, index, bool(flag), ofiCommType);
        call.argument(5, mhandle);
        return invoke(call, NccomSymbol.NET_DEREG_MR);
    }

    int neuronGetPeerDeviceId(final NativeCall call, final long comm, final int peer, final long idOut) {
        arguments(call, comm, peer, idOut);
        return invoke(call, NccomSymbol.GET_PEER_DEVICE_ID);
    }

    int neuronSetAffinity(final NativeCall call, final long comm, final long override, final long save, final int core) {
        arguments(call, comm, override, save, core, 0);
        return invoke(call, NccomSymbol.SET_AFFINITY);
    }

    int neuronGetNetConnector(
        final NativeCall call, final long comm, final int pattern, final int index, final boolean flag, final long connectorOut) {
        arguments(call, comm, pattern, index, bool(flag), connectorOut);
        return invoke(call, NccomSymbol.GET_NET_CONNECTOR);
    }

    int neuronPreferredNcRidNic(final NativeCall call, final int nc, final int rid, final long nicOut) {
        arguments(call, nc, rid, nicOut);
        return invoke(call, NccomSymbol.PREFERRED_NC_RID_NIC);
    }

    int neuronPreferredNcRidNicBdf(final NativeCall call, final int nc, final int rid, final long bdfOut, final long size) {
        arguments(call, nc, rid, bdfOut, size, 0);
        return invoke(call, NccomSymbol.PREFERRED_NC_RID_NIC_BDF);
    }

    int neuronInitNet(final NativeCall call, final long rootCommIdText) {
        call.argument(0, rootCommIdText);
        return invoke(call, NccomSymbol.INIT_NET);
    }

    int neuronFiniPlugin(final NativeCall call) {
        return invoke(call, NccomSymbol.FINI_PLUGIN);
    }

    int neuronGetOFIHandle(final NativeCall call, final long handleOut) {
        call.argument(0, handleOut);
        return invoke(call, NccomSymbol.GET_OFI_HANDLE);
    }

    int neuronNetListen(final NativeCall call, final int nic, final long handle, final long listenCommOut) {
        arguments(call, nic, handle, listenCommOut);
        return invoke(call, NccomSymbol.NET_LISTEN);
    }

    int neuronNetConnect(final NativeCall call, final int nic, final long handle, final long sendCommOut) {
        arguments(call, nic, handle, sendCommOut);
        return invoke(call, NccomSymbol.NET_CONNECT);
    }

    int neuronNetAccept(final NativeCall call, final long listenComm, final long recvCommOut) {
        arguments(call, listenComm, recvCommOut, 0);
        return invoke(call, NccomSymbol.NET_ACCEPT);
    }

    int neuronNetRegMrOG(
        final NativeCall call, final long comm, final long data, final long size, final int type, final long mhandleOut) {
        arguments(call, comm, data, size, type, mhandleOut);
        return invoke(call, NccomSymbol.NET_REG_MR_OG);
    }

    int neuronNetGetMrKey(final NativeCall call, final long mhandle, final long keyOut) {
        arguments(call, mhandle, keyOut, 0);
        return invoke(call, NccomSymbol.NET_GET_MR_KEY);
    }

    int neuronNetDeregMrOG(final NativeCall call, final long comm, final long mhandle) {
        arguments(call, comm, mhandle, 0);
        return invoke(call, NccomSymbol.NET_DEREG_MR_OG);
    }

    int neuronNetIsend(
        final NativeCall call, final long comm, final long data, final int size, final long mhandle, final long requestOut) {
        arguments(call, comm, data, size, mhandle, requestOut);
        return invoke(call, NccomSymbol.NET_ISEND);
    }

    int neuronNetIrecv(
        final NativeCall call, final long comm, final long data, final int size, final long mhandle, final long requestOut) {
        arguments(call, comm, data, size, mhandle, requestOut);
        return invoke(call, NccomSymbol.NET_IRECV);
    }

    int neuronNetIflush(
        final NativeCall call, final long comm, final long data, final int size, final long mhandle, final long requestOut) {
        arguments(call, comm, data, size, mhandle, requestOut);
        return invoke(call, NccomSymbol.NET_IFLUSH);
    }

    int neuronNetTest(final NativeCall call, final long request, final long doneOut, final long sizeOut) {
        arguments(call, request, doneOut, sizeOut);
        return invoke(call, NccomSymbol.NET_TEST);
    }

    int neuronNetCloseSend(final NativeCall call, final long comm) {
        call.argument(0, comm);
        return invoke(call, NccomSymbol.NET_CLOSE_SEND);
    }

    int neuronNetCloseRecv(final NativeCall call, final long comm) {
        call.argument(0, comm);
        return invoke(call, NccomSymbol.NET_CLOSE_RECV);
    }

    int neuronNetCloseListen(final NativeCall call, final long listenComm) {
        call.argument(0, listenComm);
        return invoke(call, NccomSymbol.NET_CLOSE_LISTEN);
    }

    private static int bool(final boolean flag) {
        return flag ? 1 : 0;
    }

    @Override
    public String toString() {
        return name + (error == null ? " (CCOM " + version.text() + ")" : " (" + error + ")");
    }
}
