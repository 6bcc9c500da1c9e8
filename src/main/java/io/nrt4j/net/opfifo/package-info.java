/** The far side of the proxy seam in Java, over any transport: a passive list of operations that moves on only when it is ticked. */
package io.nrt4j.net.opfifo;
