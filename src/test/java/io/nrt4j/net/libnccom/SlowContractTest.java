package io.nrt4j.net.libnccom;

/** The transport contract while the stand-in answers late: no communicators, no requests, and not done, each a few times. */
class SlowContractTest extends LibnccomContract {
    @Override
    void configureStandIn() {
        NccomStandIn.set("NULL_COMMS", 3);
        NccomStandIn.set("NULL_REQUESTS", 5);
        NccomStandIn.set("SLOW_TEST", 7);
    }
}
