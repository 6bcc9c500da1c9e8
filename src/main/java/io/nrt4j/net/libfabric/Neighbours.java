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
 * <p>Threads: any; all state is guarded by this class, but for the native closes, which are called outside its monitor. An endpoint that
 * is to be closed is used by nobody any more, so whoever closes the last of its neighbours may close it.
 */
final class Neighbours {
    private static final Path FOLDER = Path.of("");
    /** Until their native close has returned. */
    private static final Map<String, Neighbours> BY_NAME = new HashMap<>();

    private final Runnable close;
    private final String name;
    private final Set<Neighbours> reaches = new HashSet<>();
    private final Set<Neighbours> reachedBy = new HashSet<>();
    private boolean ending;
    private boolean closing;

    /**
     * An endpoint has been opened.
     *
     * @param close its native close, called once.
     * @param name  from {@code fi_getname}.
     */
    Neighbours(final Runnable close, final byte[] name) {
        this.close = close;
        this.name = key(name);
        synchronized (Neighbours.class) {
            BY_NAME.put(this.name, this);
        }
    }

    private static String key(final byte[] name) {
        final ShmRegion region = ShmRegion.of(FOLDER, name);
        return region == null ? "" : region.name();
    }

    /**
     * It will send to another one, which may be in this process, and then stays until this one is to be closed.
     *
     * @return false if the other one is just being closed: its region may go at any moment.
     */
    boolean reach(final byte[] peerName) {
        synchronized (Neighbours.class) {
            final Neighbours peer = BY_NAME.get(key(peerName));
            if (peer != null && peer != this) {
                if (peer.closing) {
                    return false;
                }
                reaches.add(peer);
                peer.reachedBy.add(this);
            }
            return true;
        }
    }

    /** It is to be closed, and nobody uses it any more. Closes it, unless others reach it, and those that waited for it. Once. */
    void end() {
        final List<Neighbours> closeable = new ArrayList<>();
        synchronized (Neighbours.class) {
            ending = true;
            takeIfUnreached(closeable);
            reaches.forEach(peer -> peer.takeIfUnreached(closeable));
        }
        closeable.forEach(Neighbours::closeNow);
    }

    private void takeIfUnreached(final List<Neighbours> closeable) {
        if (ending && !closing && reachedBy.stream().allMatch(other -> other.ending)) {
            closing = true;
            closeable.add(this);
        }
    }

    private void closeNow() {
        try {
            close.run();
        } finally {
            synchronized (Neighbours.class) {
                BY_NAME.remove(name, this);
            }
        }
    }
}
