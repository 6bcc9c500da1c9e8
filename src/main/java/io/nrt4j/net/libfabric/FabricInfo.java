package io.nrt4j.net.libfabric;

import java.net.InetAddress;
import java.net.UnknownHostException;

/**
 * What one {@code struct fi_info} says, as far as it matters here.
 *
 * @param address      of the native struct; valid as long as its list.
 * @param provider     such as {@code tcp;ofi_rxm}.
 * @param domain       name of the domain.
 * @param endpointType 3 is reliable datagram.
 * @param caps         capability bits.
 * @param mode         mode bits that the provider asks for.
 * @param mrMode       memory registration bits that the provider asks for.
 * @param source       source address for providers with IP addresses, else null.
 * @param injectSize   longest message that can be injected.
 * @param txSize       length of the send queue.
 * @param rxSize       length of the receive queue.
 * @param maxMessage   longest message, never negative.
 */
record FabricInfo(long address, String provider, String domain, int endpointType, long caps, long mode, int mrMode,
    InetAddress source, long injectSize, long txSize, long rxSize, long maxMessage) {

    /** Lengths travel in 56 bits. */
    private static final long MAX_MESSAGE = 1L << 55;

    static FabricInfo read(final long info) {
        final long fabric = Memory.getLong(info + FiLayout.INFO_FABRIC_ATTR);
        final long domain = Memory.getLong(info + FiLayout.INFO_DOMAIN_ATTR);
        final long endpoint = Memory.getLong(info + FiLayout.INFO_EP_ATTR);
        final long tx = Memory.getLong(info + FiLayout.INFO_TX_ATTR);
        final long rx = Memory.getLong(info + FiLayout.INFO_RX_ATTR);
        final long max = Memory.getLong(endpoint + FiLayout.EP_ATTR_MAX_MSG_SIZE);
        return new FabricInfo(info, Memory.stringAt(fabric + FiLayout.FABRIC_ATTR_PROV_NAME),
            Memory.stringAt(domain + FiLayout.DOMAIN_ATTR_NAME), Memory.getInt(endpoint + FiLayout.EP_ATTR_TYPE),
            Memory.getLong(info + FiLayout.INFO_CAPS), Memory.getLong(info + FiLayout.INFO_MODE),
            Memory.getInt(domain + FiLayout.DOMAIN_ATTR_MR_MODE), source(info),
            Memory.getLong(tx + FiLayout.TX_ATTR_INJECT_SIZE), Memory.getLong(tx + FiLayout.TX_ATTR_SIZE),
            Memory.getLong(rx + FiLayout.RX_ATTR_SIZE), max < 0 || max > MAX_MESSAGE ? MAX_MESSAGE : max);
    }

    private static InetAddress source(final long info) {
        final long socketAddress = Memory.getLong(info + FiLayout.INFO_SRC_ADDR);
        final int format = Memory.getInt(info + FiLayout.INFO_ADDR_FORMAT);
        if (socketAddress == 0) {
            return null;
        }
        try {
            return switch (format) {
                case FiLayout.FORMAT_SOCKADDR_IN -> InetAddress.getByAddress(Memory.bytes(socketAddress + 4, 4));
                case FiLayout.FORMAT_SOCKADDR_IN6 -> InetAddress.getByAddress(Memory.bytes(socketAddress + 8, 16));
                default -> null;
            };
        } catch (final UnknownHostException ex) {
            return null; // only for a wrong number of bytes
        }
    }

    /** Whether endpoints of this kind can carry the protocol. */
    boolean usable() {
        return endpointType == FiLayout.EP_RDM && (caps & FiLayout.CAP_TAGGED) != 0;
    }

    /** One line for people. */
    String describe() {
        return provider + " / " + domain + (source == null ? "" : " / " + source.getHostAddress());
    }
}
