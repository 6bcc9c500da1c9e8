package io.nrt4j.net.libfabric;

import com.sun.jna.NativeLibrary;
import com.sun.jna.Pointer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.nio.channels.SocketChannel;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * {@code TCP_USER_TIMEOUT}, which Java does not offer: how long sent bytes may stay unacknowledged. Without it, a host that is lost
 * while bytes are on their way to it is not noticed for a quarter of an hour: the kernel sends no keep-alives until they are acknowledged.
 *
 * <p>Java does not tell a channel's descriptor either, so it is looked for: the one that is bound and connected as the channel is.
 * Threads: any, while nobody closes the channel. Set-up only.
 */
final class UserTimeout {
    private static final NativeLibrary LIBC = NativeLibrary.getInstance("c");
    private static final Path DESCRIPTORS = Path.of("/proc/self/fd");
    private static final int IPPROTO_TCP = 6;
    private static final int TCP_USER_TIMEOUT = 18;
    private static final short AF_INET = 2;
    private static final short AF_INET6 = 10;
    private static final int NAME_BYTES = 128;

    private UserTimeout() {
    }

    /**
     * Sets it.
     *
     * @param channel  connected channel.
     * @param millis   bound.
     * @throws IOException when the descriptor cannot be found, as without a free one to look with, or the kernel refuses.
     */
    static void set(final SocketChannel channel, final int millis) throws IOException {
        final int descriptor = descriptorOf(channel);
        final long value = Memory.allocate(Integer.BYTES);
        try {
            Memory.putInt(value, millis);
            if (LIBC.getFunction("setsockopt").invokeInt(new Object[] {descriptor, IPPROTO_TCP, TCP_USER_TIMEOUT, new Pointer(value),
                Integer.BYTES}) != 0) {
                throw new IOException("setsockopt(TCP_USER_TIMEOUT) of descriptor " + descriptor + " failed");
            }
        } finally {
            Memory.free(value);
        }
    }

    /** The bound that is set, in milliseconds; 0 for none. */
    static int get(final SocketChannel channel) throws IOException {
        final int descriptor = descriptorOf(channel);
        final long value = Memory.allocate(2L * Integer.BYTES);
        try {
            Memory.putInt(value + Integer.BYTES, Integer.BYTES);
            if (LIBC.getFunction("getsockopt").invokeInt(new Object[] {descriptor, IPPROTO_TCP, TCP_USER_TIMEOUT, new Pointer(value),
                new Pointer(value + Integer.BYTES)}) != 0) {
                throw new IOException("getsockopt(TCP_USER_TIMEOUT) of descriptor " + descriptor + " failed");
            }
            return Memory.getInt(value);
        } finally {
            Memory.free(value);
        }
    }

    private static int descriptorOf(final SocketChannel channel) throws IOException {
        final SocketAddress local = channel.getLocalAddress();
        final SocketAddress remote = channel.getRemoteAddress();
        final long name = Memory.allocate(NAME_BYTES + Integer.BYTES);
        try (DirectoryStream<Path> all = Files.newDirectoryStream(DESCRIPTORS)) {
            for (final Path each : all) {
                final int descriptor = Integer.parseInt(each.getFileName().toString());
                if (isSocket(each) && remote.equals(nameOf("getpeername", descriptor, name))
                    && local.equals(nameOf("getsockname", descriptor, name))) {
                    return descriptor;
                }
            }
        } catch (final java.nio.file.DirectoryIteratorException ex) {
            throw ex.getCause();
        } finally {
            Memory.free(name);
        }
        throw new IOException("found no descriptor of " + channel);
    }

    private static boolean isSocket(final Path descriptor) {
        try {
            return Files.readSymbolicLink(descriptor).toString().startsWith("socket:");
        } catch (final IOException ex) {
            return false; // closed meanwhile
        }
    }

    /** One end of a socket; null when it is none of the internet. */
    private static SocketAddress nameOf(final String function, final int descriptor, final long name) throws IOException {
        Memory.putInt(name + NAME_BYTES, NAME_BYTES);
        if (LIBC.getFunction(function).invokeInt(new Object[] {descriptor, new Pointer(name), new Pointer(name + NAME_BYTES)}) != 0) {
            return null;
        }
        final int familyAndPort = Memory.getInt(name);
        final int port = Short.toUnsignedInt(Short.reverseBytes((short) (familyAndPort >>> 16)));
        return switch ((short) familyAndPort) {
            case AF_INET -> new InetSocketAddress(InetAddress.getByAddress(Memory.bytes(name + 4, 4)), port);
            case AF_INET6 -> new InetSocketAddress(InetAddress.getByAddress(Memory.bytes(name + 8, 16)), port);
            default -> null;
        };
    }
}
