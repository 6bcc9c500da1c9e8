package io.nrt4j;

import java.net.Inet4Address;
import java.net.InetAddress;
import java.net.UnknownHostException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Strict reading of IPv4 and IPv6 literals. Never asks a name service. */
public final class IpLiteral {
    private static final String OCTET = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9][0-9]|[0-9])";
    private static final String QUAD = OCTET + "\\." + OCTET + "\\." + OCTET + "\\." + OCTET;
    private static final Pattern V4 = Pattern.compile(QUAD);
    /** Only the letters of one; the rest is left to {@link InetAddress}, except for the octets of an embedded IPv4 address. */
    private static final Pattern V6 = Pattern.compile("[0-9a-fA-F:]*:([0-9a-fA-F:]*|" + QUAD + ")(%[A-Za-z0-9_.-]{1,15})?");
    private static final int MAX_LENGTH = 64;

    private IpLiteral() {
    }

    /**
     * Reads a literal.
     *
     * @param text four decimal octets without leading zeros, or an IPv6 literal, optionally with a scope ({@code fe80::1%eth0}).
     * @return the address, or null if the text is null or no literal.
     */
    public static InetAddress parse(final String text) {
        if (text == null || text.length() > MAX_LENGTH) {
            return null;
        }
        try {
            final Matcher v4 = V4.matcher(text);
            if (v4.matches()) {
                final byte[] octets = new byte[4];
                for (int i = 0; i < octets.length; i++) {
                    octets[i] = (byte) Integer.parseInt(v4.group(i + 1));
                }
                return Inet4Address.getByAddress(octets);
            }
            // A text with a colon is a literal for InetAddress, or an error: it never becomes a name look-up.
            return V6.matcher(text).matches() ? InetAddress.getByName(text) : null;
        } catch (final UnknownHostException ex) {
            return null;
        }
    }
}
