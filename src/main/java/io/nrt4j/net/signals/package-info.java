/**
 * What native libraries do to the JVM's signal handlers, undone. For the transports alone: not exported.
 */
package io.nrt4j.net.signals;
