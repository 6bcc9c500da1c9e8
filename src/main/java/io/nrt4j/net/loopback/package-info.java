/** A transport between engine instances of one JVM, which really moves the bytes, and faults for tests. */
package io.nrt4j.net.loopback;
