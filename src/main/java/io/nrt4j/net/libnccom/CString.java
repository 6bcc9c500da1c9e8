package io.nrt4j.net.libnccom;

import com.sun.jna.Native;
import com.sun.jna.Pointer;
import java.nio.charset.StandardCharsets;

/** A text in native memory, ended by a zero byte. */
final class CString implements AutoCloseable {
    private final long address;

    /** Copies a text; null and the empty text are the null pointer. */
    CString(final String text) {
        if (text == null || text.isEmpty()) {
            address = 0;
            return;
        }
        final byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        address = Native.malloc(bytes.length + 1L);
        new Pointer(address).write(0, bytes, 0, bytes.length);
        new Pointer(address).setByte(bytes.length, (byte) 0);
    }

    long address() {
        return address;
    }

    @Override
    public void close() {
        if (address != 0) {
            Native.free(address);
        }
    }
}
