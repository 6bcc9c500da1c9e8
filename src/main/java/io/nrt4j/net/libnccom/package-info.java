/**
 * The collective library of the original, libnccom: its 37 functions, and the transport and the network proxy on them.
 *
 * <p>The library is opened at run time, all functions or none; nothing here needs it to be installed. {@link
 * io.nrt4j.net.libnccom.LibnccomProvider} is found by the name {@code libnccom}; {@link
 * io.nrt4j.net.libnccom.LibnccomNetworkProxy} is made from a configuration. Native memory and calls go through JNA; little-endian
 * 64-bit machines only, as the library itself.
 */
package io.nrt4j.net.libnccom;
