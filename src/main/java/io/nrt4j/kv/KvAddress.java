package io.nrt4j.kv;

import java.io.IOException;
import java.net.Inet4Address;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ProtocolFamily;
import java.net.StandardProtocolFamily;

/** Addresses as texts and as families, without ever asking a name service. */
final class KvAddress {
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

    /** What went wrong, in few words. */
    static String reason(final IOException ex) {
        final String message = ex.getMessage();
        return message == null ? ex.getClass().getSimpleName() : message;
    }
}
