package io.nrt4j.net.loopback;

import io.nrt4j.NrtConfig;
import io.nrt4j.net.NetTransport;
import io.nrt4j.net.NetTransportContract;
import io.nrt4j.net.NetTransports;

/** The loopback transport keeps the contract. */
class LoopbackContractTest extends NetTransportContract {
    @Override
    protected NetTransport newTransport(final NrtConfig config) {
        return NetTransports.byName("loopback").create(config);
    }
}
