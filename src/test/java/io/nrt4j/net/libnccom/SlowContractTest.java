package io.nrt4j.net.libnccom;

/** The transport contract while the stand-in answers late: no communicators and not done, a few times each. */
class SlowContractTest extends LibnccomContract {
    @Override
    void configureStandIn() {
        NccomStandIn.set("NULL_COMMS", 3);
        NccomStandIn.set("SLOW_TEST", 7);
    }
}
