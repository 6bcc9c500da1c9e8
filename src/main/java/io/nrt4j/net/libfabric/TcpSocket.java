package io.nrt4j.net.libfabric;

import com.sun.jna.Function;
import com.sun.jna.Native;
import com.sun.jna.NativeLibrary;
import com.sun.jna.Pointer;
import java.io.File;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.UnknownHostException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A connected TCP socket of this process, whoever opened it: a provider, which does not tell, or the JDK, which hides the descriptor. It
 * is found by its two addresses among the process's descriptors.
 *
 * <p>Threads: any; no state but the kernel's. For set-up and failures only: looking for sockets takes some microseconds per descriptor.
 *
 * @param descriptor its number, which is another socket's once this one is closed.
 * @param identity   what the kernel calls it, never used twice.
 * @param local      this end.
 * @param remote     the other end.
 */
record TcpSocket(int descriptor, String identity, InetSocketAddress local, InetSocketAddress remote) {
    private static final Logger LOG = LoggerFactory.getLogger(TcpSocket.class);
    private static final NativeLibrary LIBC = NativeLibrary.getInstance("c");
    private static final String DESCRIPTORS = "/proc/self/fd";
    private static final int ADDRESS_ROOM = 128;
    private static final int AF_INET = 2;
    private static final int AF_INET6 = 10;
    private static final int SOL_SOCKET = 1;
    private static final int SO_TYPE = 3;
    private static final int SOCK_STREAM = 1;
    private static final int SHUT_RDWR = 2;
    private static final int IPPROTO_TCP = 6;
    private static final int TCP_INFO = 11;
    /** Of {@code struct tcp_info}, which later kernels only append to. */
    private static final int INFO_ROOM = 512;
    private static final int INFO_PROBES = 3;
    private static final int INFO_UNACKED = 24;
    private static final int INFO_LAST_ACK_RECV = 56;
    private static final int INFO_USED = 60;

    /** All that are connected now. */
    static List<TcpSocket> connected() {
        final List<TcpSocket> sockets = new ArrayList<>();
        final String[] descriptors = new File(DESCRIPTORS).list();
        if (descriptors == null) {
            return sockets; // no Linux
        }
        final long memory = Memory.allocate(ADDRESS_ROOM + Long.BYTES);
        try {
            for (final String descriptor : descriptors) {
                final TcpSocket socket = look(Integer.parseInt(descriptor), memory);
                if (socket != null) {
                    sockets.add(socket);
                }
            }
        } finally {
            Memory.free(memory);
        }
        return sockets;
    }

    /** The one of them between two addresses, or null. */
    static TcpSocket between(final List<TcpSocket> sockets, final InetSocketAddress local, final InetSocketAddress remote) {
        for (final TcpSocket socket : sockets) {
            if (same(socket.local, local) && same(socket.remote, remote)) {
                return socket;
            }
        }
        return null;
    }

    private static TcpSocket look(final int descriptor, final long memory) {
        final InetSocketAddress local = name("getsockname", descriptor, memory);
        final String identity = local == null || type(descriptor, memory) != SOCK_STREAM ? null : identity(descriptor);
        final InetSocketAddress remote = identity == null ? null : name("getpeername", descriptor, memory);
        // Once more, since others open and close descriptors meanwhile.
        return remote == null || !identity.equals(identity(descriptor)) ? null : new TcpSocket(descriptor, identity, local, remote);
    }

    private static InetSocketAddress name(final String function, final int descriptor, final long memory) {
        Memory.putInt(memory + ADDRESS_ROOM, ADDRESS_ROOM);
        final int rc = LIBC.getFunction(function).invokeInt(
            new Object[] {descriptor, new Pointer(memory), new Pointer(memory + ADDRESS_ROOM)});
        return rc == 0 ? address(Memory.bytes(memory, Math.min(ADDRESS_ROOM, Memory.getInt(memory + ADDRESS_ROOM)))) : null;
    }

    private static int type(final int descriptor, final long memory) {
        return option(descriptor, SOL_SOCKET, SO_TYPE, memory, Integer.BYTES, memory + ADDRESS_ROOM) < Integer.BYTES ? -1
            : Memory.getInt(memory);
    }

    /** Answers how many bytes the option has, or -1. */
    private static int option(
        final int descriptor, final int level, final int option, final long value, final int room, final long length) {
        Memory.putInt(length, room);
        final Function function = LIBC.getFunction("getsockopt");
        final int rc = function.invokeInt(new Object[] {descriptor, level, option, new Pointer(value), new Pointer(length)});
        return rc == 0 ? Memory.getInt(length) : -1;
    }

    private static String identity(final int descriptor) {
        try {
            return Files.readSymbolicLink(Path.of(DESCRIPTORS, Integer.toString(descriptor))).toString();
        } catch (final IOException ex) {
            return null; // closed
        }
    }

    /** Decodes a {@code struct sockaddr_in} or {@code sockaddr_in6}; null for anything else. */
    static InetSocketAddress address(final byte[] sockaddr) {
        if (sockaddr.length < 8) {
            return null;
        }
        final ByteBuffer bytes = ByteBuffer.wrap(sockaddr);
        final int family = bytes.order(ByteOrder.nativeOrder()).getShort(0);
        final int at = family == AF_INET ? 4 : 8;
        final int length = family == AF_INET ? 4 : 16;
        if (family != AF_INET && family != AF_INET6 || sockaddr.length < at + length) {
            return null;
        }
        final byte[] address = new byte[length];
        bytes.get(at, address);
        try {
            return new InetSocketAddress(InetAddress.getByAddress(address), bytes.order(ByteOrder.BIG_ENDIAN).getShort(2) & 0xFFFF);
        } catch (final UnknownHostException ex) {
            return null; // only for a wrong number of bytes
        }
    }

    /** Whether two are the same, whatever their scopes. */
    static boolean same(final InetSocketAddress one, final InetSocketAddress other) {
        return one != null && other != null && one.getPort() == other.getPort() && sameHost(one, other);
    }

    /** Whether two have the same address, whatever their ports. */
    static boolean sameHost(final InetSocketAddress one, final InetSocketAddress other) {
        return java.util.Arrays.equals(one.getAddress().getAddress(), other.getAddress().getAddress());
    }

    /** Whether its owner has not closed it yet. */
    boolean isOpen() {
        return identity.equals(identity(descriptor));
    }

    /**
     * Ends the connection in both directions, and leaves the descriptor to its owner, who finds the connection broken. The caller sees to
     * it that the owner does not close it at the same time.
     */
    void shutDown() {
        if (isOpen() && LIBC.getFunction("shutdown").invokeInt(new Object[] {descriptor, SHUT_RDWR}) != 0) {
            LOG.debug("shutdown of {}: {}; it broke by itself", this, Native.getLastError());
        }
    }

    /**
     * How long the other host's kernel has acknowledged nothing, in milliseconds, if something is waiting for its acknowledgement: data, or
     * a probe. 0 when nothing is, or the kernel does not tell. A process that is stopped still has a kernel that answers.
     */
    long unacknowledgedMs() {
        final long memory = Memory.allocate(INFO_ROOM + Long.BYTES);
        try {
            if (!isOpen() || option(descriptor, IPPROTO_TCP, TCP_INFO, memory, INFO_ROOM, memory + INFO_ROOM) < INFO_USED) {
                return 0;
            }
            final boolean waiting = new Pointer(memory).getByte(INFO_PROBES) != 0 || Memory.getInt(memory + INFO_UNACKED) != 0;
            return waiting ? Memory.getInt(memory + INFO_LAST_ACK_RECV) & 0xFFFF_FFFFL : 0;
        } finally {
            Memory.free(memory);
        }
    }
}
