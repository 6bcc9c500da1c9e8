package io.nrt4j.net.libfabric;

import io.nrt4j.IpLiteral;
import io.nrt4j.NrtConfig;
import io.nrt4j.NrtSetting;
import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import java.net.InetAddress;
import java.net.NetworkInterface;
import java.net.SocketException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.stream.Collectors;

/**
 * Chooses provider and source address from what {@code fi_getinfo} offers.
 *
 * @param infos   list that holds {@code info}; the caller closes it.
 * @param info    the chosen entry.
 * @param control address for the control socket.
 */
record FabricSelection(Libfabric.InfoList infos, FabricInfo info, InetAddress control) implements AutoCloseable {
    /**
     * Best first; only those whose endpoints reach other hosts. shm reaches none, sockets is no longer maintained: both only
     * when asked for by name.
     */
    private static final List<String> PREFERRED = List.of(
        "efa", "cxi", "verbs;ofi_rxm", "psm3", "opx", "psm2", "tcp;ofi_rxm", "tcp", "net", "udp;ofi_rxd");

    /**
     * Chooses.
     *
     * @param libfabric loaded library.
     * @param config    names provider and address, or leaves them open.
     * @return the choice.
     * @throws NrtException INVALID, naming what was asked for and what exists.
     */
    static FabricSelection choose(final Libfabric libfabric, final NrtConfig config) {
        final Collection<InetAddress> wanted = addresses(config.libfabricAddress());
        final String asked = config.libfabricProvider();
        final Libfabric.InfoList infos = libfabric.infos(asked.isEmpty() ? null : asked, false);
        boolean chosen = false;
        try {
            final List<FabricInfo> usable = infos.entries().stream().filter(FabricInfo::usable).toList();
            final FabricInfo info = asked.isEmpty() ? preferred(libfabric, usable, wanted) : named(libfabric, asked, usable, wanted);
            final FabricSelection selection = new FabricSelection(infos, info, controlAddress(info, wanted));
            chosen = true;
            return selection;
        } finally {
            if (!chosen) {
                infos.close();
            }
        }
    }

    private static FabricInfo preferred(
        final Libfabric libfabric, final List<FabricInfo> usable, final Collection<InetAddress> wanted) {
        for (final String provider : PREFERRED) {
            final List<FabricInfo> ofProvider = usable.stream().filter(info -> provider.equals(info.provider())).toList();
            final FabricInfo info = atAddress(ofProvider, wanted);
            if (info != null) {
                return info;
            }
        }
        throw new NrtException(NrtStatus.INVALID, "no libfabric provider with reliable datagrams and tagged messages between hosts"
            + (wanted.isEmpty() ? "" : " at " + wanted) + "; there is " + offered(libfabric));
    }

    private static FabricInfo named(final Libfabric libfabric, final String asked, final List<FabricInfo> usable,
        final Collection<InetAddress> wanted) {
        final FabricInfo info = atAddress(usable, wanted);
        if (info != null) {
            return info;
        }
        if (!usable.isEmpty()) {
            throw new NrtException(NrtStatus.INVALID, "libfabric provider '" + asked + "' does not offer the address " + wanted
                + "; it offers " + usable.stream().map(FabricInfo::describe).collect(Collectors.joining(", ")));
        }
        try (Libfabric.InfoList any = libfabric.infos(asked, true)) {
            throw new NrtException(NrtStatus.INVALID, any.entries().isEmpty()
                ? "there is no libfabric provider '" + asked + "' here; there is " + offered(libfabric)
                : "libfabric provider '" + asked + "' has no reliable datagrams with tagged messages; usable is " + offered(libfabric));
        }
    }

    /** The usable providers, as text. */
    static String offered(final Libfabric libfabric) {
        try (Libfabric.InfoList all = libfabric.infos(null, false)) {
            final String names = all.entries().stream().filter(FabricInfo::usable).map(FabricInfo::provider).distinct()
                .collect(Collectors.joining(", "));
            return names.isEmpty() ? "none" : names;
        }
    }

    private static FabricInfo atAddress(final List<FabricInfo> infos, final Collection<InetAddress> wanted) {
        FabricInfo loopback = null;
        for (final FabricInfo info : infos) {
            final InetAddress source = info.source();
            if (wanted.isEmpty() && source != null && (source.isLoopbackAddress() || source.isLinkLocalAddress())) {
                loopback = loopback == null ? info : loopback;
            } else if (wanted.isEmpty() || source == null || wanted.contains(source)) {
                return info;
            }
        }
        return loopback;
    }

    /** The addresses that a setting names; empty when it names none. */
    private static Collection<InetAddress> addresses(final String setting) {
        if (setting.isEmpty()) {
            return List.of();
        }
        try {
            final List<String> known = new ArrayList<>();
            final InetAddress literal = IpLiteral.parse(setting);
            for (final NetworkInterface network : Collections.list(NetworkInterface.getNetworkInterfaces())) {
                final List<InetAddress> own = Collections.list(network.getInetAddresses());
                if (network.getName().equals(setting) && !own.isEmpty()) {
                    return new LinkedHashSet<>(own);
                }
                if (literal != null && own.stream().anyMatch(literal::equals)) {
                    return List.of(literal);
                }
                known.add(network.getName() + own.stream().map(InetAddress::getHostAddress).toList());
            }
            throw new NrtException(NrtStatus.INVALID, NrtSetting.LIBFABRIC_ADDRESS.variable() + "='" + setting
                + "' is neither an address of this host nor an interface with one; there is " + String.join(", ", known));
        } catch (final SocketException ex) {
            throw new NrtException(NrtStatus.FAILURE, "cannot list the network interfaces: " + ex.getMessage(), ex);
        }
    }

    private static InetAddress controlAddress(final FabricInfo info, final Collection<InetAddress> wanted) {
        if (info.source() != null) {
            return info.source();
        }
        if (!wanted.isEmpty()) {
            return wanted.iterator().next();
        }
        if ("shm".equals(info.provider())) {
            return InetAddress.getLoopbackAddress();
        }
        return firstPublicAddress();
    }

    private static InetAddress firstPublicAddress() {
        try {
            for (final NetworkInterface network : Collections.list(NetworkInterface.getNetworkInterfaces())) {
                for (final InetAddress own : Collections.list(network.getInetAddresses())) {
                    if (network.isUp() && !own.isLoopbackAddress() && !own.isLinkLocalAddress()) {
                        return own;
                    }
                }
            }
        } catch (final SocketException ex) {
            throw new NrtException(NrtStatus.FAILURE, "cannot list the network interfaces: " + ex.getMessage(), ex);
        }
        return InetAddress.getLoopbackAddress();
    }

    @Override
    public void close() {
        infos.close();
    }
}
