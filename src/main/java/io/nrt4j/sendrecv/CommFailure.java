package io.nrt4j.sendrecv;

import java.time.Duration;

/**
 * Why a communicator did not connect.
 *
 * @param operation {@code connect} or {@code accept}.
 * @param lnc       own LNC.
 * @param peerIp    the peer's address.
 * @param peerLnc   the peer's LNC.
 * @param state     state in which it failed, by the C name, such as {@code WAIT_FOR_HOSTNAME}.
 * @param elapsed   time since the call.
 * @param timedOut  whether the time limit ended it.
 * @param cause     first cause.
 */
public record CommFailure(
    String operation, int lnc, String peerIp, int peerLnc, String state, Duration elapsed, boolean timedOut, Throwable cause) {

    @Override
    public String toString() {
        return operation + " of lnc " + lnc + " to " + peerIp + " lnc " + peerLnc + (timedOut ? " timed out" : " failed")
            + " in " + state + " after " + elapsed.toMillis() + " ms: " + (cause.getMessage() == null ? cause : cause.getMessage());
    }
}
