package io.nrt4j.sendrecv;

import io.nrt4j.kv.KvOptions;
import java.net.InetSocketAddress;

/**
 * What the connect machines of an instance need to meet their peers.
 *
 * @param hostIdentity  this host's identity, 128 bytes.
 * @param ownServer     this host's key-value server.
 * @param bootstrapPort port of every host's key-value server.
 * @param options       how to talk to them.
 */
record Rendezvous(byte[] hostIdentity, InetSocketAddress ownServer, int bootstrapPort, KvOptions options) {
}
