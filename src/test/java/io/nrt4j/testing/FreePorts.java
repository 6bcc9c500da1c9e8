package io.nrt4j.testing;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.BindException;
import java.net.ServerSocket;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * TCP ports that nobody listens on. They are below those that the kernel gives to clients, so that no connection takes one between
 * this look and its use; each is handed out once, and JVMs that run tests side by side have ranges of their own.
 */
public final class FreePorts {
    private static final int FIRST = 10_000;
    private static final int PORTS = 11_000;
    /** Surefire counts the JVMs from 1. */
    private static final int RANGE = FIRST + (Integer.getInteger("surefire.forkNumber", 1) - 1) % 2 * PORTS;
    private static final AtomicInteger NEXT = new AtomicInteger(ThreadLocalRandom.current().nextInt(PORTS));

    private FreePorts() {
    }

    /**
     * A port that was free a moment ago and that this JVM has not handed out before.
     *
     * @return 10000 to 31999.
     */
    public static int next() {
        for (int attempt = 0; attempt < PORTS; attempt++) {
            final int port = RANGE + NEXT.getAndIncrement() % PORTS;
            try (ServerSocket socket = new ServerSocket(port)) {
                return socket.getLocalPort();
            } catch (final BindException ex) {
                continue; // taken
            } catch (final IOException ex) {
                throw new UncheckedIOException(ex);
            }
        }
        throw new IllegalStateException("no free port in " + PORTS + " attempts");
    }
}
