package io.nrt4j.testing;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Stream;

/** Listening TCP sockets, as the kernel tells them. */
public final class Listeners {
    private static final String LISTEN = "0A";
    private static final int LOCAL_ADDRESS = 1;
    private static final int STATE = 3;
    private static final int INODE = 9;

    private Listeners() {
    }

    /**
     * The sockets that listen on a port, at whatever address.
     *
     * @param port TCP port.
     * @return their inodes.
     * @throws IOException where there is no such table.
     */
    public static Set<String> on(final int port) throws IOException {
        final Set<String> inodes = new TreeSet<>();
        for (final String table : new String[] {"/proc/net/tcp", "/proc/net/tcp6"}) {
            for (final String line : Files.readAllLines(Path.of(table))) {
                final String[] fields = line.strip().split("\\s+");
                if (fields.length > INODE && fields[STATE].equals(LISTEN)
                    && fields[LOCAL_ADDRESS].endsWith(String.format(":%04X", port))) {
                    inodes.add(fields[INODE]);
                }
            }
        }
        return inodes;
    }

    /**
     * Whether a process has a socket.
     *
     * @param pid   process of this user.
     * @param inode from {@link #on}.
     * @return true if one of its descriptors is that socket.
     * @throws IOException when its descriptors cannot be listed.
     */
    public static boolean isOf(final long pid, final String inode) throws IOException {
        try (Stream<Path> links = Files.list(Path.of("/proc/" + pid + "/fd"))) {
            return links.anyMatch(link -> isLinkTo(link, "socket:[" + inode + "]"));
        }
    }

    private static boolean isLinkTo(final Path link, final String target) {
        try {
            return Files.readSymbolicLink(link).toString().equals(target);
        } catch (final IOException ex) {
            return false; // closed meanwhile
        }
    }
}
