package io.nrt4j.tools;

import io.nrt4j.NrtConfig;
import io.nrt4j.sendrecv.NrtAsyncSendRecv;

/** Makes the engines of a command. */
@FunctionalInterface
interface EngineFactory {
    /** Engines over the transport that their configuration names. */
    EngineFactory DEFAULT = NrtAsyncSendRecv::new;

    /** An engine, which the caller closes. */
    NrtAsyncSendRecv create(NrtConfig config);
}
