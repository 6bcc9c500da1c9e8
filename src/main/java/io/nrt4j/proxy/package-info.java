/** The proxy driver: one worker for each group of ranks turns a passive collective library's network phase into progress. */
package io.nrt4j.proxy;
