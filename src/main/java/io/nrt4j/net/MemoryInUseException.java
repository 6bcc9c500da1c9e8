package io.nrt4j.net;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;

/**
 * A request has failed, and the transport could not make the network let go of its memory: a late message may be written into it, or be
 * read from it, until the transport is closed. Whoever gave the memory must not free it, nor use it for something else.
 */
public final class MemoryInUseException extends NrtException {
    private static final long serialVersionUID = 1L;

    /**
     * Makes one.
     *
     * @param status  of the failure.
     * @param message with its cause.
     */
    public MemoryInUseException(final NrtStatus status, final String message) {
        super(status, message + "; its memory may still be touched and must stay in place");
    }
}
