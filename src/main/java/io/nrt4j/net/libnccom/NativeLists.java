package io.nrt4j.net.libnccom;

import com.sun.jna.Native;
import com.sun.jna.Pointer;
import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.net.NetDestAddr;
import io.nrt4j.net.NetOpsInfo;
import io.nrt4j.net.NetSrcAddr;
import java.nio.ByteBuffer;

/**
 * The three descriptor lists of a block as native records, one behind the other. The library may keep pointers to them and marks
 * completed entries in them, so they stay until the block is replaced or the communicator freed.
 */
final class NativeLists implements AutoCloseable {
    private final long address;
    private final int operationCount;
    private final int sourceCount;
    private final int destinationCount;

    NativeLists(final NetOpsInfo[] operations, final NetSrcAddr[] sources, final NetDestAddr[] destinations) {
        operationCount = operations.length;
        sourceCount = sources.length;
        destinationCount = destinations.length;
        final long bytes = (long) operationCount * NetOpsInfo.BYTES + (long) sourceCount * NetSrcAddr.BYTES
            + (long) destinationCount * NetDestAddr.BYTES;
        if (bytes > Integer.MAX_VALUE) {
            throw new NrtException(NrtStatus.INVALID, "lists of " + bytes + " bytes");
        }
        address = Native.malloc(Math.max(1, bytes));
        if (address == 0) {
            throw new NrtException(NrtStatus.FAIL_HOST_MEM_ALLOC, "no native memory for lists of " + bytes + " bytes");
        }
        final ByteBuffer records = new Pointer(address).getByteBuffer(0, bytes);
        for (final NetOpsInfo operation : operations) {
            operation.encode(records);
        }
        for (final NetSrcAddr source : sources) {
            source.encode(records);
        }
        for (final NetDestAddr destination : destinations) {
            destination.encode(records);
        }
    }

    /** An empty list is the null pointer. */
    long operations() {
        return operationCount == 0 ? 0 : address;
    }

    long sources() {
        return sourceCount == 0 ? 0 : address + (long) operationCount * NetOpsInfo.BYTES;
    }

    long destinations() {
        return destinationCount == 0 ? 0
            : address + (long) operationCount * NetOpsInfo.BYTES + (long) sourceCount * NetSrcAddr.BYTES;
    }

    int operationCount() {
        return operationCount;
    }

    int sourceCount() {
        return sourceCount;
    }

    int destinationCount() {
        return destinationCount;
    }

    @Override
    public void close() {
        Native.free(address);
    }
}
