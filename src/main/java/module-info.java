/**
 * Point-to-point tensor transfer between accelerator cores and hosts, as the AWS Neuron runtime does it.
 *
 * <p>Start at {@code io.nrt4j.sendrecv}.
 */
module io.nrt4j {
    requires com.sun.jna;
    requires transitive org.slf4j;
    requires static info.picocli;
    requires jdk.net;

    exports io.nrt4j;
    exports io.nrt4j.concurrent;
    exports io.nrt4j.net;

    uses io.nrt4j.net.NetTransportProvider;

    provides io.nrt4j.net.NetTransportProvider with io.nrt4j.net.libfabric.LibfabricProvider;
}
