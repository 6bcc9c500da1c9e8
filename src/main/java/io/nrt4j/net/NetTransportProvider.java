package io.nrt4j.net;

import io.nrt4j.NrtConfig;
import io.nrt4j.NrtException;

/** Makes transports of one kind. Implementations are found through {@link java.util.ServiceLoader}. */
public interface NetTransportProvider {
    /**
     * Name by which a configuration asks for it.
     *
     * @return such as {@code loopback}.
     */
    String name();

    /**
     * Why transports of this kind cannot be made here with this configuration.
     *
     * @param config configuration that names, for instance, a native library's path.
     * @return one line that says what to install or set; null when they can be made.
     */
    String unavailabilityCause(NrtConfig config);

    /**
     * For people, in one line or some: what it would use, such as library, version, providers, network interfaces.
     *
     * @param config configuration.
     * @return never null.
     */
    String describe(NrtConfig config);

    /**
     * Makes a transport, which the caller closes.
     *
     * @param config configuration.
     * @return a new transport.
     * @throws NrtException when it cannot be made; the text is the cause.
     */
    NetTransport create(NrtConfig config);
}
