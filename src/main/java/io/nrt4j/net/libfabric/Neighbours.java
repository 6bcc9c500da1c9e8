package io.nrt4j.net.libfabric;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Endpoints of this process that reach one another over shm. The provider maps a region once for a process: an endpoint that sends to
 * one whose region went with its close would end the JVM. So the native close of an endpoint waits until those that reach it are to be
 * closed, too; between processes each has a mapping of its own.
 *
 * <p>Threads: any; all state is guarded by this class. An endpoint that is to be closed is used by nobody any more, so whoever
 * closes the last of its neighbours may close it.
 */
final class Neighbours {
    private static final Path FOLDER = Path.of("");
    private static final Map<String, Neighbours> BY_NAME = new HashMap<>();

    private final FabricEndpoint endpoint;
    private final String name;
    private final Set<Neighbours> reaches = new HashSet<>();
    private final Set<Neighbours> reachedBy = new HashSet<>();
    private boolean ending;

    /** An endpoint has been opened. */
    Neighbours(final FabricEndpoint endpoint, final byte[] name) {
        this.endpoint = endpoint;
        this.name = key(name);
        synchronized (Neighbours.class) {
            BY_NAME.put(this.name, this);
        }
    }

    private static String key(final byte[] name) {
        final ShmRegion region = ShmRegion.of(FOLDER, name);
        return region == null ? "" : region.name();
    }

    /** It will send to another one, which may be in this process. */
    void reach(final byte[] peerName) {
        synchronized (Neighbours.class) {
            final Neighbours peer = BY_NAME.get(key(peerName));
            if (peer != null && peer != this) {
                reaches.add(peer);
                peer.reachedBy.add(this);
            }
        }
    }

    /**
     * It is to be closed, and nobody uses it any more.
     *
     * @return what may be closed now: it, unless others reach it, and those that waited for it.
     */
    List<FabricEndpoint> end() {
        final List<FabricEndpoint> closeable = new ArrayList<>();
        synchronized (Neighbours.class) {
            ending = true;
            takeIfUnreached(closeable);
            List.copyOf(reaches).forEach(peer -> peer.takeIfUnreached(closeable));
        }
        return closeable;
    }

    private void takeIfUnreached(final List<FabricEndpoint> closeable) {
        if (ending && BY_NAME.get(name) == this && reachedBy.stream().allMatch(other -> other.ending)) {
            BY_NAME.remove(name);
            closeable.add(endpoint);
        }
    }
}
