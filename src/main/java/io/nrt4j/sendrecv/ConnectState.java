package io.nrt4j.sendrecv;

import io.nrt4j.kv.KvClient;
import io.nrt4j.net.NetTransport;

/**
 * What a communicator needs only until it is connected.
 *
 * <p>Threads: the service thread, and the closer once that thread has ended.
 */
final class ConnectState {
    /** The receiver's listen handle: the own one on RECV, the peer's on SEND. Ports {@code net_handle}, at +0x2500. */
    final byte[] netHandle = new byte[NetTransport.HANDLE_BYTES];
    /** Identity of the sender's host, on RECV. Ports {@code peer_hostname}, at +0x2580. */
    final byte[] peerHostname = new byte[HandleKey.HOSTNAME_BYTES];
    /** The request to a key-value server that is under way; null if there is none. */
    KvClient kvRequest;
    /** On RECV, from LISTEN until it is connected. */
    long listenComm = NetTransport.NOT_YET;
    /** On SEND: a transport connect is under way, which must be abandoned if it is not completed. */
    boolean connecting;
    /** On RECV: epoch of the server that has the handle. */
    long publishedEpoch;
    /** On RECV: when to look next whether the handle is still there. */
    long nextWatchNs;
    /** On RECV: whether the handle was found taken, and when first. */
    boolean handleTaken;
    long takenSinceNs;
}
