package io.nrt4j.net.loopback;

import io.nrt4j.NrtConfig;
import io.nrt4j.net.NetTransport;
import io.nrt4j.net.NetTransportProvider;

/** Makes {@link LoopbackTransport}s. Always available. */
public final class LoopbackTransportProvider implements NetTransportProvider {
    /** Name of the transport. */
    public static final String NAME = "loopback";

    private final FaultPlan plan;

    /** Makes a provider of transports without faults. */
    public LoopbackTransportProvider() {
        this(null);
    }

    /**
     * Makes a provider.
     *
     * @param plan faults of all its transports, or null for none.
     */
    public LoopbackTransportProvider(final FaultPlan plan) {
        this.plan = plan;
    }

    @Override
    public String name() {
        return NAME;
    }

    @Override
    public String unavailabilityCause(final NrtConfig config) {
        return null;
    }

    @Override
    public String describe(final NrtConfig config) {
        return "between the instances of this JVM, by copying in memory" + (plan == null ? "" : ", with planned faults");
    }

    @Override
    public NetTransport create(final NrtConfig config) {
        return new LoopbackTransport(plan);
    }
}
