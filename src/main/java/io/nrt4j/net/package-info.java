/** What the engine asks of a network, and how an implementation is found. */
package io.nrt4j.net;
