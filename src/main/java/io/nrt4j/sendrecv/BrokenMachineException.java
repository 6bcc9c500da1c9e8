package io.nrt4j.sendrecv;

/**
 * A state machine found itself where it can never be: a defect of this library, which ends the LNC's service thread instead of being
 * taken for a failure of one communicator or request. Stands for the original's assertions.
 */
final class BrokenMachineException extends IllegalStateException {
    private static final long serialVersionUID = 1L;

    BrokenMachineException(final String message) {
        super(message);
    }
}
