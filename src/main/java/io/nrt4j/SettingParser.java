package io.nrt4j;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.function.Function;

/** Turns the text of a setting into its value, or refuses it; and says what it allows. */
final class SettingParser {
    static final SettingParser ANY = new SettingParser("any text", text -> text);
    static final SettingParser BOOLEAN = new SettingParser("1, 0, true or false", SettingParser::bool);
    static final SettingParser NAME = new SettingParser(
        "lower-case letters, digits and '-'", text -> matching(text, "[a-z][a-z0-9-]{0,63}"));
    static final SettingParser HOST_NAME = new SettingParser(
        "at most 64 printable ASCII characters without blanks, or empty", text -> matching(text, "[!-~]{0,64}"));
    static final SettingParser OPTIONAL_PORT = new SettingParser(
        "a TCP port from 1 to 65535", text -> text.isEmpty() ? Long.valueOf(0) : number(text, 1, 65535));
    static final SettingParser OPTIONAL_ENDPOINT = new SettingParser(
        "ip:port with an IPv4 literal or an IPv6 literal in brackets, or empty", SettingParser::endpoint);
    static final SettingParser MILLIS = new SettingParser(
        "milliseconds from 0 (no limit) to 86400000", text -> number(text, 0, 86_400_000));
    static final SettingParser POSITIVE_MILLIS = new SettingParser(
        "milliseconds from 1 to 86400000", text -> number(text, 1, 86_400_000));
    static final SettingParser IP_LITERAL = new SettingParser("an IPv4 or IPv6 literal", SettingParser::ip);
    static final SettingParser OPTIONAL_CPUS = new SettingParser(
        "processors below 1024 as a list like 0,2-5 or a mask like 0x3c, or empty", SettingParser::cpus);
    static final SettingParser INT_MAP = new SettingParser(
        "lnc=index pairs joined by commas, both from 0 to 127, no lnc twice, or empty", SettingParser::intMap);
    static final SettingParser FABRIC_PROVIDER = new SettingParser(
        "a provider's name such as tcp;ofi_rxm, or empty", text -> matching(text, "[A-Za-z0-9_;^-]{0,64}"));
    static final SettingParser IP_OR_INTERFACE = new SettingParser(
        "an IPv4 or IPv6 literal, the name of a network interface, or empty", text -> matching(text, "[A-Za-z0-9_.:%@-]{0,64}"));
    static final SettingParser NCCOM_MEMORY_TYPE = new SettingParser(
        "4 (Neuron device memory) or 1 (host memory)", text -> Long.valueOf(matching(text, "[14]")));

    private static final int MAX_CPU = 1023;

    private final String allowed;
    private final Function<String, Object> parser;

    private SettingParser(final String allowed, final Function<String, Object> parser) {
        this.allowed = allowed;
        this.parser = parser;
    }

    static SettingParser intRange(final int min, final int max) {
        return new SettingParser("a whole number from " + min + " to " + max, text -> number(text, min, max));
    }

    /** What is allowed, for the text of a refusal. */
    String allowed() {
        return "allowed is " + allowed;
    }

    /** Parses, or throws {@link IllegalArgumentException}. */
    Object parse(final String text) {
        return parser.apply(text);
    }

    private static String matching(final String text, final String pattern) {
        if (!text.matches(pattern)) {
            throw new IllegalArgumentException("does not match");
        }
        return text;
    }

    private static Boolean bool(final String text) {
        return switch (text) {
            case "1", "true" -> Boolean.TRUE;
            case "0", "false" -> Boolean.FALSE;
            default -> throw new IllegalArgumentException("not a truth value");
        };
    }

    /** Digits only: no sign, no blank, no leading zero. */
    private static Long number(final String text, final long min, final long max) {
        matching(text, "0|[1-9][0-9]{0,9}");
        final long value = Long.parseLong(text);
        if (value < min || value > max) {
            throw new IllegalArgumentException("out of range");
        }
        return value;
    }

    private static String ip(final String text) {
        if (IpLiteral.parse(text) == null) {
            throw new IllegalArgumentException("not a literal");
        }
        return text;
    }

    private static String endpoint(final String text) {
        if (text.isEmpty()) {
            return text;
        }
        final int colon = text.lastIndexOf(':');
        if (colon < 0) {
            throw new IllegalArgumentException("no port");
        }
        final String host = text.substring(0, colon);
        final boolean bracketed = host.startsWith("[") && host.endsWith("]");
        if (host.indexOf(':') >= 0 && !bracketed) {
            throw new IllegalArgumentException("an IPv6 literal without brackets");
        }
        if (bracketed && host.indexOf(':') < 0) {
            throw new IllegalArgumentException("brackets around what is no IPv6 literal");
        }
        ip(bracketed ? host.substring(1, host.length() - 1) : host);
        number(text.substring(colon + 1), 1, 65535);
        return text;
    }

    private static List<Integer> cpus(final String text) {
        final TreeSet<Integer> cpus = new TreeSet<>();
        if (text.startsWith("0x") || text.startsWith("0X")) {
            final java.math.BigInteger mask = new java.math.BigInteger(matching(text.substring(2), "[0-9a-fA-F]{1,256}"), 16);
            for (int cpu = mask.getLowestSetBit(); cpu >= 0 && cpu < mask.bitLength(); cpu++) {
                if (mask.testBit(cpu)) {
                    cpus.add(cpu);
                }
            }
            if (cpus.isEmpty()) {
                throw new IllegalArgumentException("an empty mask");
            }
        } else if (!text.isEmpty()) {
            for (final String range : text.split(",", -1)) {
                final String[] ends = range.split("-", -1);
                final int first = number(ends[0], 0, MAX_CPU).intValue();
                final int last = ends.length == 2 ? number(ends[1], first, MAX_CPU).intValue() : first;
                if (ends.length > 2) {
                    throw new IllegalArgumentException("not a range");
                }
                for (int cpu = first; cpu <= last; cpu++) {
                    cpus.add(cpu);
                }
            }
        }
        return List.copyOf(new ArrayList<>(cpus));
    }

    private static Map<Integer, Integer> intMap(final String text) {
        final Map<Integer, Integer> map = new HashMap<>();
        if (!text.isEmpty()) {
            for (final String pair : text.split(",", -1)) {
                final String[] sides = pair.split("=", -1);
                if (sides.length != 2) {
                    throw new IllegalArgumentException("not a pair");
                }
                final int lnc = number(sides[0], 0, NrtConfig.MAX_LNCS - 1).intValue();
                if (map.put(lnc, number(sides[1], 0, NrtConfig.MAX_LNCS - 1).intValue()) != null) {
                    throw new IllegalArgumentException("an LNC twice");
                }
            }
        }
        return Map.copyOf(map);
    }
}
