package io.nrt4j.net.libnccom;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;

/** Makes the failures of native calls: which function, of what, which status. */
final class NccomFailure {
    private NccomFailure() {
    }

    /** A failure with status FAILURE. */
    static NrtException of(final NccomSymbol symbol, final String about, final int status) {
        return of(NrtStatus.FAILURE, symbol, about, status);
    }

    static NrtException of(final NrtStatus answer, final NccomSymbol symbol, final String about, final int status) {
        return new NrtException(answer, symbol.symbol() + (about.isEmpty() ? "" : " " + about) + " answered " + name(status));
    }

    /** A native status as number and name. */
    static String name(final int status) {
        try {
            return status + " (" + NrtStatus.fromCode(status) + ")";
        } catch (final IllegalArgumentException ex) {
            return status + " (no NRT_STATUS)";
        }
    }
}
