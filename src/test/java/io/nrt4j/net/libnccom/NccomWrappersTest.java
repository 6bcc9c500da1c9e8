package io.nrt4j.net.libnccom;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.jna.Memory;
import com.sun.jna.Pointer;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.EnumSet;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Each of the 37 wrappers hands over each of its arguments: the stand-in says what it got. */
class NccomWrappersTest {
    private final Nccom nccom = NccomLoader.load(NccomStandIn.library().toString(), "/nowhere");
    private final NativeCall call = new NativeCall();
    private final Memory memory = new Memory(2048);
    private final Set<NccomSymbol> called = EnumSet.noneOf(NccomSymbol.class);
    private long violations;

    @BeforeAll
    static void compilerIsThere() {
        NccomStandIn.assumeGcc();
    }

    @BeforeEach
    void startRecording() {
        NccomStandIn.reset();
        NccomStandIn.set("RECORD", 1);
        NccomStandIn.configure();
        violations = NccomStandIn.violations();
        memory.clear();
    }

    @AfterEach
    void stopRecording() {
        NccomStandIn.reset();
        call.close();
        memory.close();
    }

    private long at(final long offset) {
        return Pointer.nativeValue(memory) + offset;
    }

    private static String hex(final long pointer) {
        return "0x" + Long.toHexString(pointer);
    }

    private void expect(final int status, final NccomSymbol symbol, final String arguments) {
        assertThat(NccomStandIn.lastCall()).isEqualTo(symbol.symbol() + "(" + arguments + ")");
        assertThat(status).as(symbol.symbol()).isZero();
        called.add(symbol);
    }

    @Test
    void allThirtySeven() {
        memory.setString(1024, "10.0.0.1:4000");
        memory.setString(1056, "why");
        memory.setString(1120, "an-id");
        plugIn();
        communicators();
        network();
        expect(nccom.neuronFiniPlugin(call), NccomSymbol.FINI_PLUGIN, "");
        assertThat(called).hasSize(37).containsExactlyInAnyOrder(NccomSymbol.values());
        assertThat(NccomStandIn.violations()).isEqualTo(violations);
        NccomStandIn.assertNothingOpen();
    }

    @Test
    void thePortMapHasARowForEach() throws IOException {
        final String portMap = Files.readString(Path.of(System.getProperty("nrt4j.test.projectDir", "."), "docs", "port-map.md"));
        for (final NccomSymbol symbol : NccomSymbol.values()) {
            assertThat(portMap).contains("\n| `" + symbol.symbol() + "` | `");
        }
    }

    private void plugIn() {
        nccom.neuronGetVersionInfo(call, at(0), NccomVersion.BYTES);
        expect(0, NccomSymbol.GET_VERSION_INFO, "1,56");
        assertThat(NccomVersion.read(memory).text()).isEqualTo("2.31.24.0-57a4d1n00");
        expect(nccom.neuronInitNet(call, at(1024)), NccomSymbol.INIT_NET, "10.0.0.1:4000");
        expect(nccom.neuronGetOFIHandle(call, at(0)), NccomSymbol.GET_OFI_HANDLE, "1");
        assertThat(memory.getLong(0)).isNotZero();
        expect(nccom.neuronPreferredNcRidNic(call, 7, 9, at(0)), NccomSymbol.PREFERRED_NC_RID_NIC, "7,9,1");
        assertThat(memory.getInt(0)).isEqualTo(3);
        expect(nccom.neuronPreferredNcRidNicBdf(call, 6, 8, at(0), 16), NccomSymbol.PREFERRED_NC_RID_NIC_BDF, "6,8,1,16");
        assertThat(memory.getString(0)).isEqualTo("0000:02:00.0");
        expect(nccom.neuronGetUniqueId(call, at(128), 5, at(1056)), NccomSymbol.GET_UNIQUE_ID, "1,5,why");
        assertThat(memory.getString(128)).startsWith("unique-");
    }

    private void communicators() {
        memory.clear(256);
        expect(nccom.neuronInitGlobalComm(call, 0, 1, at(512), at(1024), at(0), at(1056)), NccomSymbol.INIT_GLOBAL_COMM,
            "0,1," + hex(at(512)) + ",10.0.0.1:4000,1,why");
        final long comm = memory.getLong(0);
        final String name = hex(comm);
        expect(nccom.neuronBuildGraphComm(call, comm), NccomSymbol.BUILD_GRAPH_COMM, name);
        try (Memory info = new Memory(1376)) {
            info.clear();
            expect(nccom.neuronGetCommInfo(call, comm, Pointer.nativeValue(info)), NccomSymbol.GET_COMM_INFO, name + ",1");
            assertThat(info.getByteArray(0, 1376)).containsOnly(0x5A);
        }
        expect(nccom.neuronExpandConnectivity(call, comm, -3), NccomSymbol.EXPAND_CONNECTIVITY, name + ",-3");
        expect(nccom.neuronGetPeerDeviceId(call, comm, 0, at(8)), NccomSymbol.GET_PEER_DEVICE_ID, name + ",0,1");
        expect(nccom.neuronSetAffinity(call, comm, 0, at(256), 3), NccomSymbol.SET_AFFINITY, "1,0,1,3");
        assertThat(memory.getLong(256)).isEqualTo(8);
        expect(nccom.neuronGetNetConnector(call, comm, 11, 12, true, at(8)), NccomSymbol.GET_NET_CONNECTOR, name + ",11,12,1,1");
        expect(nccom.neuronNetRegMr(call, comm, 21, 22, true, 23, at(512), 100, 4, at(8)), NccomSymbol.NET_REG_MR,
            name + ",21,22,1,23," + hex(at(512)) + ",100,4,1");
        final long mhandle = memory.getLong(8);
        expect(nccom.neuronNetDeregMr(call, comm, 31, 32, false, 33, mhandle), NccomSymbol.NET_DEREG_MR,
            name + ",31,32,0,33," + hex(mhandle));
        expect(nccom.neuronBootstrapAllGather(call, comm, at(512), 10, at(1056)), NccomSymbol.BOOTSTRAP_ALL_GATHER,
            name + "," + hex(at(512)) + ",10,why");
        proxy(comm);
        expect(nccom.neuronFreeComm(call, comm), NccomSymbol.FREE_COMM, name);
        expect(nccom.neuronInitComm(call, at(0), 2, at(1120), 1, at(512), true), NccomSymbol.INIT_COMM,
            "1,2,an-id,1," + hex(at(512)) + ",1");
        bootstrap(memory.getLong(0));
    }

    private void proxy(final long comm) {
        memory.setByte(16, (byte) 1);
        memory.setByte(17, (byte) 1);
        expect(nccom.neuronStartNetworkProxy(call, comm, 3, 40, 0, 0, 0, 0, 0, 0), NccomSymbol.START_NETWORK_PROXY,
            hex(comm) + ",3,40,0,0,0,0,0,0");
        expect(nccom.neuronNetworkProxyProgress(call, comm, 3, 40, at(16), at(17)), NccomSymbol.NETWORK_PROXY_PROGRESS,
            hex(comm) + ",3,40,1,1");
        expect(nccom.neuronStopNetworkProxy(call, comm, 3), NccomSymbol.STOP_NETWORK_PROXY, hex(comm) + ",3");
    }

    /** To a peer that there is not, since both would wait for one. */
    private void bootstrap(final long comm) {
        final String arguments = hex(comm) + ",9," + hex(at(512)) + ",5,why";
        assertThat(nccom.neuronBootstrapSend(call, comm, 9, at(512), 5, at(1056))).isEqualTo(2);
        expect(0, NccomSymbol.BOOTSTRAP_SEND, arguments);
        assertThat(nccom.neuronBootstrapRecv(call, comm, 9, at(512), 5, at(1056))).isEqualTo(2);
        expect(0, NccomSymbol.BOOTSTRAP_RECV, arguments);
        violations += 2;
        assertThat(nccom.neuronFreeComm(call, comm)).isZero();
    }

    private void network() {
        memory.clear(512);
        expect(nccom.neuronNetListen(call, 3, at(128), at(0)), NccomSymbol.NET_LISTEN, "3,1,1");
        expect(nccom.neuronNetConnect(call, 2, at(128), at(8)), NccomSymbol.NET_CONNECT, "2,1,1");
        final long listen = memory.getLong(0);
        expect(nccom.neuronNetAccept(call, listen, at(16)), NccomSymbol.NET_ACCEPT, hex(listen) + ",1");
        final long send = memory.getLong(8);
        final long recv = memory.getLong(16);
        expect(nccom.neuronNetRegMrOG(call, send, at(512), 64, 1, at(24)), NccomSymbol.NET_REG_MR_OG,
            hex(send) + "," + hex(at(512)) + ",64,1,1");
        assertThat(nccom.neuronNetRegMrOG(call, recv, at(600), 64, 4, at(32))).isZero();
        final long sendMr = memory.getLong(24);
        final long recvMr = memory.getLong(32);
        expect(nccom.neuronNetGetMrKey(call, sendMr, at(40)), NccomSymbol.NET_GET_MR_KEY, hex(sendMr) + ",1");
        assertThat(memory.getLong(40)).isNotZero();
        expect(nccom.neuronNetIrecv(call, recv, at(601), 33, recvMr, at(48)), NccomSymbol.NET_IRECV,
            hex(recv) + "," + hex(at(601)) + ",33," + hex(recvMr) + ",1");
        expect(nccom.neuronNetIsend(call, send, at(513), 22, sendMr, at(56)), NccomSymbol.NET_ISEND,
            hex(send) + "," + hex(at(513)) + ",22," + hex(sendMr) + ",1");
        expect(nccom.neuronNetIflush(call, recv, at(602), 4, recvMr, at(64)), NccomSymbol.NET_IFLUSH,
            hex(recv) + "," + hex(at(602)) + ",4," + hex(recvMr) + ",1");
        for (final int offset : new int[] {48, 56, 64}) {
            final long request = memory.getLong(offset);
            expect(nccom.neuronNetTest(call, request, at(72), at(76)), NccomSymbol.NET_TEST, hex(request) + ",1,1");
            assertThat(memory.getInt(72)).isEqualTo(1);
            assertThat(memory.getInt(76)).isEqualTo(offset == 64 ? 0 : 22);
        }
        expect(nccom.neuronNetDeregMrOG(call, send, sendMr), NccomSymbol.NET_DEREG_MR_OG, hex(send) + "," + hex(sendMr));
        assertThat(nccom.neuronNetDeregMrOG(call, recv, recvMr)).isZero();
        expect(nccom.neuronNetCloseSend(call, send), NccomSymbol.NET_CLOSE_SEND, hex(send));
        expect(nccom.neuronNetCloseRecv(call, recv), NccomSymbol.NET_CLOSE_RECV, hex(recv));
        expect(nccom.neuronNetCloseListen(call, listen), NccomSymbol.NET_CLOSE_LISTEN, hex(listen));
    }
}
