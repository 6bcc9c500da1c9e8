package io.nrt4j.net;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import java.util.Comparator;
import java.util.List;
import java.util.ServiceLoader;
import java.util.stream.Collectors;

/** The transports that are on the class path or module path. */
public final class NetTransports {
    private NetTransports() {
    }

    /**
     * All kinds of transport, available here or not.
     *
     * @return providers in the order of their names.
     */
    public static List<NetTransportProvider> all() {
        return ServiceLoader.load(NetTransportProvider.class, NetTransports.class.getClassLoader()).stream()
            .map(ServiceLoader.Provider::get)
            .sorted(Comparator.comparing(NetTransportProvider::name))
            .toList();
    }

    /**
     * Finds a kind of transport.
     *
     * @param name such as {@code loopback}.
     * @return its provider.
     * @throws NrtException INVALID when there is none, with the names that there are.
     */
    public static NetTransportProvider byName(final String name) {
        final List<NetTransportProvider> all = all();
        for (final NetTransportProvider provider : all) {
            if (provider.name().equals(name)) {
                return provider;
            }
        }
        throw new NrtException(NrtStatus.INVALID, "no transport is called '" + name + "'; there are "
            + all.stream().map(NetTransportProvider::name).collect(Collectors.joining(", ")));
    }
}
