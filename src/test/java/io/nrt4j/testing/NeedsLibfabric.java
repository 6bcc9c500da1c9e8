package io.nrt4j.testing;

import io.nrt4j.NrtConfig;
import io.nrt4j.net.NetTransports;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Assumptions;

/** Skips tests, visibly, where libfabric is not installed. */
public final class NeedsLibfabric {
    /** Prefix of a child's command, for one with many endpoints: over tcp each would have hundreds of megabytes of buffers. */
    public static final List<String> SMALL_BUFFERS = List.of("env", "FI_OFI_RXM_MSG_RX_SIZE=8");

    private NeedsLibfabric() {
    }

    /** Skips the calling test or class unless there is a libfabric. */
    public static void assume() {
        final String cause = NetTransports.byName("libfabric").unavailabilityCause(NrtConfig.builder(Map.of(), Map.of()).build());
        if (cause != null) {
            System.out.println("SKIP: no libfabric: " + cause);
        }
        Assumptions.assumeTrue(cause == null, () -> "no libfabric: " + cause);
    }

    /**
     * The source address that keeps a provider on this machine.
     *
     * @param provider name of the provider.
     * @return an address, or empty for a provider that has none.
     */
    public static String addressOf(final String provider) {
        return provider.equals("shm") ? "" : "127.0.0.1";
    }
}
