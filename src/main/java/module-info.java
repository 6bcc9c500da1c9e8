/**
 * Point-to-point tensor transfer between accelerator cores and hosts, as the AWS Neuron runtime does it.
 *
 * <p>Start at {@link io.nrt4j.sendrecv}.
 */
module io.nrt4j {
    requires com.sun.jna;
    requires org.slf4j;
    requires static info.picocli;
    requires static HdrHistogram;
    requires static jdk.management;
    requires jdk.net;

    exports io.nrt4j;
    exports io.nrt4j.net;
    exports io.nrt4j.net.libnccom;
    exports io.nrt4j.net.loopback;
    exports io.nrt4j.net.opfifo;
    exports io.nrt4j.proxy;
    exports io.nrt4j.sendrecv;

    uses io.nrt4j.net.NetTransportProvider;

    provides io.nrt4j.net.NetTransportProvider with
        io.nrt4j.net.libfabric.LibfabricProvider,
        io.nrt4j.net.libnccom.LibnccomProvider,
        io.nrt4j.net.loopback.LoopbackTransportProvider;
}
