/** The key-value store of the rendezvous: frame, non-blocking client, server, and the election of the server. */
package io.nrt4j.kv;
