package io.nrt4j.net.libfabric;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.net.NetTransport;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.UnknownHostException;
import java.nio.ByteBuffer;

/**
 * The 128 bytes that a peer needs to connect, big endian: magic int @0, version short @4, instance long @8, listener long @16,
 * control port int @24, length of the control address int @28, control address @32 (16 bytes), zeros; the last 8 bytes hold
 * the number of a connect under way, which only its own process writes and reads.
 *
 * @param instance number of the listening transport, random.
 * @param listener number of the listener in it.
 * @param control  where its control connections are accepted.
 */
record ListenHandle(long instance, long listener, InetSocketAddress control) {
    private static final int MAGIC = 0x4E524648;
    private static final short VERSION = 1;
    private static final int CONNECT = NetTransport.HANDLE_BYTES - Long.BYTES;

    void write(final byte[] handle) {
        final byte[] address = control.getAddress().getAddress();
        java.util.Arrays.fill(handle, (byte) 0);
        ByteBuffer.wrap(handle).putInt(0, MAGIC).putShort(4, VERSION).putLong(8, instance).putLong(16, listener)
            .putInt(24, control.getPort()).putInt(28, address.length).put(32, address);
    }

    static ListenHandle read(final byte[] handle) {
        if (handle.length != NetTransport.HANDLE_BYTES) {
            throw new NrtException(NrtStatus.INVALID, "a listen handle has " + NetTransport.HANDLE_BYTES + " bytes, not " + handle.length);
        }
        final ByteBuffer bytes = ByteBuffer.wrap(handle);
        final int length = bytes.getInt(28);
        if (bytes.getInt(0) != MAGIC || bytes.getShort(4) != VERSION || length != 4 && length != 16
            || bytes.getInt(24) < 1 || bytes.getInt(24) > 65535) {
            throw new NrtException(NrtStatus.INVALID, "this is no listen handle of the libfabric transport, version " + VERSION);
        }
        final byte[] address = new byte[length];
        bytes.get(32, address);
        try {
            return new ListenHandle(bytes.getLong(8), bytes.getLong(16),
                new InetSocketAddress(InetAddress.getByAddress(address), bytes.getInt(24)));
        } catch (final UnknownHostException ex) {
            throw new NrtException(NrtStatus.INVALID, "this listen handle has no valid address", ex);
        }
    }

    /** Number of the connect under way with this handle, 0 for none. */
    static long connectUnderWay(final byte[] handle) {
        return handle.length == NetTransport.HANDLE_BYTES ? ByteBuffer.wrap(handle).getLong(CONNECT) : 0;
    }

    static void setConnectUnderWay(final byte[] handle, final long connect) {
        ByteBuffer.wrap(handle).putLong(CONNECT, connect);
    }
}
