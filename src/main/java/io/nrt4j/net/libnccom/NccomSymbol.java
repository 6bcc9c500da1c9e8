package io.nrt4j.net.libnccom;

import static io.nrt4j.net.libnccom.CType.BOOL;
import static io.nrt4j.net.libnccom.CType.INT;
import static io.nrt4j.net.libnccom.CType.POINTER;
import static io.nrt4j.net.libnccom.CType.SIZE;
import static io.nrt4j.net.libnccom.CType.U32;
import static io.nrt4j.net.libnccom.CType.VOID;

/** The 37 functions that libnrt looks up in libnccom, with their parameter types, in the order of the look-up. */
enum NccomSymbol {
    GET_VERSION_INFO("neuronGetVersionInfo", VOID, POINTER, U32),
    GET_UNIQUE_ID("neuronGetUniqueId", INT, POINTER, INT, POINTER),
    INIT_GLOBAL_COMM("neuronInitGlobalComm", INT, INT, INT, POINTER, POINTER, POINTER, POINTER),
    INIT_COMM("neuronInitComm", INT, POINTER, INT, POINTER, INT, POINTER, BOOL),
    BUILD_GRAPH_COMM("neuronBuildGraphComm", INT, POINTER),
    GET_COMM_INFO("neuronGetCommInfo", INT, POINTER, POINTER),
    FREE_COMM("neuronFreeComm", INT, POINTER),
    EXPAND_CONNECTIVITY("neuronExpandConnectivity", INT, POINTER, INT),
    START_NETWORK_PROXY("neuronStartNetworkProxy", INT, POINTER, U32, U32, POINTER, INT, POINTER, INT, POINTER, INT),
    STOP_NETWORK_PROXY("neuronStopNetworkProxy", INT, POINTER, U32),
    NETWORK_PROXY_PROGRESS("neuronNetworkProxyProgress", INT, POINTER, U32, U32, POINTER, POINTER),
    BOOTSTRAP_SEND("neuronBootstrapSend", INT, POINTER, INT, POINTER, SIZE, POINTER),
    BOOTSTRAP_RECV("neuronBootstrapRecv", INT, POINTER, INT, POINTER, SIZE, POINTER),
    BOOTSTRAP_ALL_GATHER("neuronBootstrapAllGather", INT, POINTER, POINTER, SIZE, POINTER),
    NET_REG_MR("neuronNetRegMr", INT, POINTER, INT, INT, BOOL, INT, POINTER, SIZE, INT, POINTER),
    NET_DEREG_MR("neuronNetDeregMr", INT, POINTER, INT, INT, BOOL, INT, POINTER),
    GET_PEER_DEVICE_ID("neuronGetPeerDeviceId", INT, POINTER, INT, POINTER),
    SET_AFFINITY("neuronSetAffinity", INT, POINTER, POINTER, POINTER, INT),
    GET_NET_CONNECTOR("neuronGetNetConnector", INT, POINTER, INT, INT, BOOL, POINTER),
    PREFERRED_NC_RID_NIC("neuronPreferredNcRidNic", INT, U32, U32, POINTER),
    PREFERRED_NC_RID_NIC_BDF("neuronPreferredNcRidNicBdf", INT, U32, U32, POINTER, SIZE),
    INIT_NET("neuronInitNet", INT, POINTER),
    FINI_PLUGIN("neuronFiniPlugin", INT),
    GET_OFI_HANDLE("neuronGetOFIHandle", INT, POINTER),
    NET_LISTEN("neuronNetListen", INT, INT, POINTER, POINTER),
    NET_CONNECT("neuronNetConnect", INT, INT, POINTER, POINTER),
    NET_ACCEPT("neuronNetAccept", INT, POINTER, POINTER),
    NET_REG_MR_OG("neuronNetRegMrOG", INT, POINTER, POINTER, SIZE, INT, POINTER),
    NET_GET_MR_KEY("neuronNetGetMrKey", INT, POINTER, POINTER),
    NET_DEREG_MR_OG("neuronNetDeregMrOG", INT, POINTER, POINTER),
    NET_ISEND("neuronNetIsend", INT, POINTER, POINTER, INT, POINTER, POINTER),
    NET_IRECV("neuronNetIrecv", INT, POINTER, POINTER, INT, POINTER, POINTER),
    NET_IFLUSH("neuronNetIflush", INT, POINTER, POINTER, INT, POINTER, POINTER),
    NET_TEST("neuronNetTest", INT, POINTER, POINTER, POINTER),
    NET_CLOSE_SEND("neuronNetCloseSend", INT, POINTER),
    NET_CLOSE_RECV("neuronNetCloseRecv", INT, POINTER),
    NET_CLOSE_LISTEN("neuronNetCloseListen", INT, POINTER);

    private final String symbol;
    private final long callInterface;

    NccomSymbol(final String symbol, final CType result, final CType... parameters) {
        this.symbol = symbol;
        callInterface = CType.callInterface(result, parameters);
    }

    /** Bare name of the function. */
    String symbol() {
        return symbol;
    }

    /** Its calling convention, a {@code ffi_cif *}. */
    long callInterface() {
        return callInterface;
    }
}
