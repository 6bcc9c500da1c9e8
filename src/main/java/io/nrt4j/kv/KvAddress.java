package io.nrt4j.kv;

import java.io.IOException;
import java.net.Inet4Address;
import java.net.Inet6Address;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ProtocolFamily;
import java.net.StandardProtocolFamily;
import java.net.UnknownHostException;

/** Addresses as texts and as families, without ever asking a name service. */
final class KvAddress {
    private static final byte[] ANY_IPV4 = {0, 0, 0, 0};
    private static final byte[] LOOPBACK_IPV4 = {127, 0, 0, 1};

    private KvAddress() {
    }

    /** An address as {@code 10.0.0.1:45645} or {@code [fe80::1]:45645}. */
    static String text(final InetSocketAddress address) {
        final InetAddress ip = address.getAddress();
        if (ip == null) {
            return address.getHostString() + ":" + address.getPort();
        }
        final String host = ip.getHostAddress();
        return (ip instanceof Inet4Address ? host : "[" + host + "]") + ":" + address.getPort();
    }

    /** A socket of the address's own family: one of the other family would answer to both. */
    static ProtocolFamily family(final InetSocketAddress address) {
        return address.getAddress() instanceof Inet4Address ? StandardProtocolFamily.INET : StandardProtocolFamily.INET6;
    }

    /** The IPv6 wildcard, which takes IPv4 as well. */
    static boolean isDualWildcard(final InetSocketAddress address) {
        return address.getAddress() instanceof Inet6Address ip && ip.isAnyLocalAddress();
    }

    static InetSocketAddress anyIpv4(final int port) {
        return new InetSocketAddress(ipv4(ANY_IPV4), port);
    }

    /** Where a server at any wildcard is found from its own host, be there IPv6 or not. */
    static InetSocketAddress loopbackIpv4(final int port) {
        return new InetSocketAddress(ipv4(LOOPBACK_IPV4), port);
    }

    private static InetAddress ipv4(final byte[] octets) {
        try {
            return InetAddress.getByAddress(octets);
        } catch (final UnknownHostException ex) {
            throw new IllegalStateException(ex); // only for a wrong number of bytes
        }
    }

    /** What went wrong, in few words. */
    static String reason(final IOException ex) {
        final String message = ex.getMessage();
        return message == null ? ex.getClass().getSimpleName() : message;
    }
}
