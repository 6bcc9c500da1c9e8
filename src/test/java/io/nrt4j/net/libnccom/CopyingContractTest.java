package io.nrt4j.net.libnccom;

/** The transport contract over the stand-in, whose communicators copy within the process. */
class CopyingContractTest extends LibnccomContract {
    @Override
    void configureStandIn() {
        // As it comes.
    }
}
