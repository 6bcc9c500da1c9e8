/** Duty cycles and the threads around them, and the bounded structures between threads. */
package io.nrt4j.concurrent;
