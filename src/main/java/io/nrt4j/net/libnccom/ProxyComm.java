package io.nrt4j.net.libnccom;

import io.nrt4j.net.NetworkProxy;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * A global communicator of the library, with the memory that its calls need. Everything but {@code handle} and {@code pointer} is
 * guarded by the monitor, which is held during each call: the communicator is used by one thread at a time, and freed by none
 * while it is used.
 */
final class ProxyComm {
    private final long handle;
    private final long pointer;
    private final NativeCall call = new NativeCall();
    private final List<Map<Integer, NativeLists>> blocks = new ArrayList<>();
    private final List<Long> registrations = new ArrayList<>();
    private boolean closed;

    ProxyComm(final long handle, final long pointer) {
        this.handle = handle;
        this.pointer = pointer;
        for (int stream = 0; stream < NetworkProxy.MAX_STREAMS; stream++) {
            blocks.add(new HashMap<>());
        }
    }

    long handle() {
        return handle;
    }

    long pointer() {
        return pointer;
    }

    NativeCall call() {
        return call;
    }

    boolean isClosed() {
        return closed;
    }

    /** Keeps a started block's lists; those that it replaces go. */
    void keep(final int stream, final int basicBlock, final NativeLists lists) {
        final NativeLists before = blocks.get(stream).put(basicBlock, lists);
        if (before != null) {
            before.close();
        }
    }

    List<Long> registrations() {
        return registrations;
    }

    /** Frees all memory, when the library's communicator is gone. */
    void close() {
        closed = true;
        blocks.forEach(stream -> stream.values().forEach(NativeLists::close));
        blocks.clear();
        call.close();
    }

    @Override
    public String toString() {
        return "communicator 0x" + Long.toHexString(handle);
    }
}
