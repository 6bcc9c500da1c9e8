package io.nrt4j.sendrecv;

import static org.assertj.core.api.Assertions.assertThat;

import io.nrt4j.NrtSetting;
import io.nrt4j.NrtStatus;
import io.nrt4j.NrtTensor;
import io.nrt4j.kv.KvClient;
import io.nrt4j.kv.KvOptions;
import io.nrt4j.testing.Await;
import java.net.InetSocketAddress;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Several hosts, each with a key-value server of its own, played on addresses of the loopback network. */
class HostsTest {
    private static final String HOST_A = "127.0.1.1";
    private static final String HOST_B = "127.0.1.2";
    private static final String HOST_C = "127.0.1.3";

    private final EngineRig rigA = new EngineRig();
    private final EngineRig rigB = new EngineRig();
    private final EngineRig rigC = new EngineRig();

    @AfterEach
    void closeAll() {
        rigA.close();
        rigB.close();
        rigC.close();
    }

    private NrtAsyncSendRecv host(final EngineRig rig, final String address) {
        return rig.engine(builder -> builder.bootstrapPort(rigA.port()).kvBindAddress(address)
            .set(NrtSetting.HOST_NAME, "node"), null);
    }

    private static SendRecvComm connect(final NrtAsyncSendRecv from, final int lnc, final String peer, final int peerLnc) {
        final SendRecvComm comm = new SendRecvComm();
        assertThat(from.connect(peer, peerLnc, lnc, comm)).isEqualTo(NrtStatus.SUCCESS);
        return comm;
    }

    private static SendRecvComm accept(final NrtAsyncSendRecv to, final int lnc, final String peer, final int peerLnc) {
        final SendRecvComm comm = new SendRecvComm();
        assertThat(to.accept(peer, peerLnc, lnc, comm)).isEqualTo(NrtStatus.SUCCESS);
        return comm;
    }

    /** Both senders are called node and use LNC 0; both want the receiver's LNC 1. */
    @Test
    void twoHostsOfOneNameAreNotMistakenForOneAnother() {
        final NrtAsyncSendRecv a = host(rigA, HOST_A);
        final NrtAsyncSendRecv b = host(rigB, HOST_B);
        final NrtAsyncSendRecv receiver = host(rigC, HOST_C);
        EngineRig.init(a, 0);
        EngineRig.init(b, 0);
        EngineRig.init(receiver, 1);
        final SendRecvComm fromB = accept(receiver, 1, HOST_B, 0);
        final SendRecvComm fromA = accept(receiver, 1, HOST_A, 0);
        final SendRecvComm ofA = connect(a, 0, HOST_C, 1);
        final SendRecvComm ofB = connect(b, 0, HOST_C, 1);
        EngineRig.awaitConnected(receiver, fromA);
        EngineRig.awaitConnected(receiver, fromB);
        EngineRig.awaitConnected(a, ofA);
        EngineRig.awaitConnected(b, ofB);
        assertThat(moved(a, ofA, receiver, fromA, 'a')).isEqualTo((byte) 'a');
        assertThat(moved(b, ofB, receiver, fromB, 'b')).isEqualTo((byte) 'b');
    }

    private static byte moved(
        final NrtAsyncSendRecv from, final SendRecvComm send, final NrtAsyncSendRecv to, final SendRecvComm recv, final char what) {
        try (NrtTensor source = NrtTensor.allocate(1); NrtTensor sink = NrtTensor.allocate(1)) {
            source.write(0, new byte[] {(byte) what});
            final SendRecvRequest sent = new SendRecvRequest();
            final SendRecvRequest received = new SendRecvRequest();
            assertThat(from.sendTensor(source, 0, 1, send, sent)).isEqualTo(NrtStatus.SUCCESS);
            assertThat(to.recvTensor(sink, 0, 1, recv, received)).isEqualTo(NrtStatus.SUCCESS);
            EngineRig.awaitDone(from, sent);
            EngineRig.awaitDone(to, received);
            return sink.read(0, 1)[0];
        }
    }

    /** The receiver dies with its handle published and its host's server alive; a sender comes, then the receiver comes back. */
    @Test
    @Tag("slow")
    void aReceiverThatCameBackIsReachableAgain() {
        final NrtAsyncSendRecv sender = host(rigA, HOST_A);
        final NrtAsyncSendRecv server = host(rigC, HOST_C);
        final NrtAsyncSendRecv receiver = host(rigC, HOST_C);
        EngineRig.init(sender, 0);
        EngineRig.init(server, 7);
        EngineRig.init(receiver, 1);
        final SendRecvComm gone = accept(receiver, 1, HOST_A, 0);
        Await.until(EngineRig.LIMIT, gone::toString, () -> gone.communicator().status() == CommStatus.NET_CONNECT);
        receiver.close();
        final SendRecvComm send = connect(sender, 0, HOST_C, 1);
        EngineRig.init(receiver, 1);
        final SendRecvComm back = accept(receiver, 1, HOST_A, 0);
        EngineRig.awaitConnected(sender, send);
        EngineRig.awaitConnected(receiver, back);
        assertThat(moved(sender, send, receiver, back, 'x')).isEqualTo((byte) 'x');
    }

    /** The sender took the handle and died; the next sender gets it again. */
    @Test
    @Tag("slow")
    void aSenderThatCameBackIsReachableAgain() {
        final NrtAsyncSendRecv receiver = host(rigC, HOST_C);
        EngineRig.init(receiver, 1);
        final SendRecvComm recv = accept(receiver, 1, HOST_A, 0);
        final NrtAsyncSendRecv back = host(rigA, HOST_A);
        EngineRig.init(back, 0);
        Await.until(EngineRig.LIMIT, recv::toString, () -> recv.communicator().status() == CommStatus.NET_CONNECT);
        takeHandle(recv);
        final SendRecvComm send = connect(back, 0, HOST_C, 1);
        EngineRig.awaitConnected(back, send);
        EngineRig.awaitConnected(receiver, recv);
        assertThat(moved(back, send, receiver, recv, 'y')).isEqualTo((byte) 'y');
    }

    private void takeHandle(final SendRecvComm recv) {
        final byte[] key = HandleKey.of(0, 1, recv.communicator().connectState().peerHostname);
        try (KvClient taker = KvClient.get(new InetSocketAddress(HOST_C, rigA.port()), key, true,
            false, (buffer, offset, length) -> { }, KvOptions.DEFAULT)) {
            Await.until(EngineRig.LIMIT, taker::describe, () -> {
                taker.step();
                return taker.isDone();
            });
            assertThat(taker.found()).isTrue();
        }
    }
}
