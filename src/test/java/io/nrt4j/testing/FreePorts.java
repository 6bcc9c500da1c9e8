package io.nrt4j.testing;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.ServerSocket;
import java.util.HashSet;
import java.util.Set;

/** TCP ports that nobody listens on. */
public final class FreePorts {
    /** Ports handed out by this JVM; guarded by itself. The kernel may give a port twice once it is closed again. */
    private static final Set<Integer> HANDED_OUT = new HashSet<>();

    private FreePorts() {
    }

    /**
     * A port that was free a moment ago and that this JVM has not handed out before.
     *
     * @return 1 to 65535.
     */
    public static int next() {
        for (int attempt = 0; attempt < 1000; attempt++) {
            try (ServerSocket socket = new ServerSocket(0)) {
                final int port = socket.getLocalPort();
                synchronized (HANDED_OUT) {
                    if (HANDED_OUT.add(port)) {
                        return port;
                    }
                }
            } catch (final IOException ex) {
                throw new UncheckedIOException(ex);
            }
        }
        throw new IllegalStateException("no free port in 1000 attempts");
    }
}
