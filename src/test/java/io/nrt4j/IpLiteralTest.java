package io.nrt4j;

import static org.assertj.core.api.Assertions.assertThat;

import java.net.Inet4Address;
import java.net.Inet6Address;
import java.net.InetAddress;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.NullSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What is a literal, and what is not. */
class IpLiteralTest {
    @ParameterizedTest
    @NullSource
    @ValueSource(strings = {
        "", " ", "256.1.1.1", "1.256.1.1", "1.1.1.256", "010.0.0.1", "10.0.0.01", "00.0.0.0", "1.2.3", "1.2.3.4.5", "1.2.3.", ".1.2.3",
        "1..2.3", "1", "16909060", "0x7f.0.0.1", "0x7f000001", "-1.2.3.4", "+1.2.3.4", "1.2.3.4 ", " 1.2.3.4", "1.2.3.4\n", "1.2.3.4:80",
        "1.2.3.4/24", "localhost", "example.com", "host-1", "a", "cafe", "dead.beef", "１.2.3.4", "[::1]", "::1]", ":", ":::",
        "1:2:3:4:5:6:7",
        "1:2:3:4:5:6:7:8:9", "1::2::3", "g::1", "12345::1", "::1.2.3", "::1.2.3.256", "::ffff:010.0.0.1", "fe80::1%", "fe80::1%nosuchif0",
        "fe80::1%a b", "example.com:80", "http://1.2.3.4", "::1%lo%lo"})
    void isNoLiteral(final String text) {
        assertThat(IpLiteral.parse(text)).isNull();
    }

    @ParameterizedTest
    @ValueSource(strings = {"0.0.0.0", "127.0.0.1", "10.0.0.1", "192.168.100.200", "255.255.255.255", "1.20.30.199"})
    void isIpv4(final String text) {
        final InetAddress address = IpLiteral.parse(text);
        assertThat(address).isInstanceOf(Inet4Address.class);
        assertThat(address.getHostAddress()).isEqualTo(text);
    }

    @ParameterizedTest
    @ValueSource(strings = {"::", "::1", "fe80::1", "2001:db8::8a2e:370:7334", "2001:0DB8:0:0:0:0:0:1", "1:2:3:4:5:6:7:8", "1::8",
        "::1.2.3.4", "64:ff9b::192.0.2.33"})
    void isIpv6(final String text) {
        assertThat(IpLiteral.parse(text)).isInstanceOf(Inet6Address.class);
    }

    @Test
    void isIpv4InIpv6() {
        assertThat(IpLiteral.parse("::ffff:10.0.0.1").getHostAddress()).isEqualTo("10.0.0.1");
    }

    @Test
    void aScopeIsKept() {
        assertThat(((Inet6Address) IpLiteral.parse("fe80::1%1")).getScopeId()).isEqualTo(1);
    }

    @Test
    void aLongTextIsRefusedAtOnce() {
        assertThat(IpLiteral.parse(":".repeat(1_000_000))).isNull();
        assertThat(IpLiteral.parse("1.".repeat(1_000_000))).isNull();
    }
}
