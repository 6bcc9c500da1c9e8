package io.nrt4j.net.libnccom;

/** The transport contract over the stand-in's sockets, as between processes. */
class SocketsContractTest extends LibnccomContract {
    @Override
    void configureStandIn() {
        NccomStandIn.set("SOCKETS", 1);
    }
}
