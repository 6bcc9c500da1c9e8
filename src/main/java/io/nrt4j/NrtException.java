package io.nrt4j;

import java.util.Objects;

/**
 * A failure inside the library, carrying the status that the public API answers for it.
 *
 * <p>Transports and the key-value store throw it; {@code NrtAsyncSendRecv} turns it into its status and keeps the text as
 * the caller's last error. A condition that only means "try again" is never an exception.
 */
public class NrtException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    private final NrtStatus status;

    /**
     * Creates a failure.
     *
     * @param status  what the public API answers.
     * @param message operation, who, and why.
     */
    public NrtException(final NrtStatus status, final String message) {
        this(status, message, null);
    }

    /**
     * Creates a failure with its first cause.
     *
     * @param status  what the public API answers.
     * @param message operation, who, and why.
     * @param cause   first cause, or null.
     */
    public NrtException(final NrtStatus status, final String message, final Throwable cause) {
        super(message, cause);
        this.status = Objects.requireNonNull(status);
    }

    /**
     * The status that the public API answers for this failure.
     *
     * @return never {@link NrtStatus#SUCCESS}.
     */
    public NrtStatus status() {
        return status;
    }
}
