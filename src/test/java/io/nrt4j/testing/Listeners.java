package io.nrt4j.testing;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** TCP sockets, as the kernel tells them: who listens, who is connected, and what is under way. */
public final class Listeners {
    private static final String LISTEN = "0A";
    private static final String ESTABLISHED = "01";
    private static final int HEX = 16;
    private static final int LOCAL_ADDRESS = 1;
    private static final int REMOTE_ADDRESS = 2;
    private static final int STATE = 3;
    private static final int QUEUES = 4;
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
        return sockets().filter(fields -> fields[STATE].equals(LISTEN) && isOfPort(fields[LOCAL_ADDRESS], port))
            .map(fields -> fields[INODE]).collect(Collectors.toCollection(TreeSet::new));
    }

    /**
     * How many clients are connected with a port, as their own side sees it: one whose reset is still under way counts.
     *
     * @param port TCP port of the server.
     * @return number of established connections.
     * @throws IOException where there is no such table.
     */
    public static long clientsOf(final int port) throws IOException {
        return sockets().filter(fields -> fields[STATE].equals(ESTABLISHED) && isOfPort(fields[REMOTE_ADDRESS], port)).count();
    }

    /**
     * What a client has written and the other side's kernel has not taken yet.
     *
     * @param port the client's own TCP port.
     * @return bytes; 0 for a port that nobody has.
     * @throws IOException where there is no such table.
     */
    public static long unsent(final int port) throws IOException {
        return sockets().filter(fields -> !fields[STATE].equals(LISTEN) && isOfPort(fields[LOCAL_ADDRESS], port))
            .mapToLong(fields -> Long.parseLong(fields[QUEUES].split(":")[0], HEX)).sum();
    }

    private static Stream<String[]> sockets() throws IOException {
        final List<String[]> sockets = new ArrayList<>();
        for (final String table : new String[] {"/proc/net/tcp", "/proc/net/tcp6"}) {
            for (final String line : Files.readAllLines(Path.of(table))) {
                final String[] fields = line.strip().split("\\s+");
                if (fields.length > INODE) {
                    sockets.add(fields);
                }
            }
        }
        return sockets.stream();
    }

    private static boolean isOfPort(final String address, final int port) {
        return address.endsWith(String.format(":%04X", port));
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
