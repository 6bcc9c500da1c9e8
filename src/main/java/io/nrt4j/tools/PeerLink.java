package io.nrt4j.tools;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.NrtTensor;
import io.nrt4j.sendrecv.NrtAsyncSendRecv;
import io.nrt4j.sendrecv.SendRecvComm;
import io.nrt4j.sendrecv.SendRecvRequest;

/**
 * One end of a command: an LNC with a communicator to its peer and one from it. Turns statuses into exceptions that name LNC,
 * peer, communicator state and cause.
 *
 * <p>Threads: one.
 */
final class PeerLink implements AutoCloseable {
    /** Mask: the time is looked at once in so many spins. */
    private static final int SPINS_UNCHECKED = 0xFFF;

    private final NrtAsyncSendRecv engine;
    private final int lnc;
    private final String peerIp;
    private final int peerLnc;
    private final Patience patience;
    private final SendRecvComm outgoing = new SendRecvComm();
    private final SendRecvComm incoming = new SendRecvComm();
    private boolean open;
    /** When the first check of the present spin was; 0 before it. */
    private long spinSinceNs;

    PeerLink(
        final NrtAsyncSendRecv engine, final int lnc, final String peerIp, final int peerLnc, final Patience patience) {
        this.engine = engine;
        this.lnc = lnc;
        this.peerIp = peerIp;
        this.peerLnc = peerLnc;
        this.patience = patience;
    }

    Patience patience() {
        return patience;
    }

    int lnc() {
        return lnc;
    }

    /** Name of the transport. */
    String transport() {
        return engine.config().transport();
    }

    /** Initialises the LNC and connects both ways. */
    void connect() {
        check(engine.init(lnc), "init");
        open = true;
        check(engine.connect(peerIp, peerLnc, lnc, outgoing), "connect");
        check(engine.accept(peerIp, peerLnc, lnc, incoming), "accept");
        awaitConnected(outgoing);
        awaitConnected(incoming);
        patience.progressed();
    }

    private void awaitConnected(final SendRecvComm comm) {
        while (true) {
            check(engine.testComm(comm), "connecting");
            if (comm.connected()) {
                return;
            }
            patience.pause(() -> "the connection; " + this);
        }
    }

    /** Posts a send. */
    void send(final NrtTensor tensor, final long offset, final long length, final SendRecvRequest request) {
        final NrtStatus status = engine.sendTensor(tensor, offset, length, outgoing, request);
        if (status != NrtStatus.SUCCESS) { // without making a text when all is well: measurements come through here
            throw failure(status, "send of " + length + " bytes");
        }
    }

    /** Posts a send, unless there are too many pending. */
    boolean trySend(final NrtTensor tensor, final long offset, final long length, final SendRecvRequest request) {
        final NrtStatus status = engine.sendTensor(tensor, offset, length, outgoing, request);
        if (status == NrtStatus.RESOURCE) {
            return false;
        }
        if (status != NrtStatus.SUCCESS) {
            throw failure(status, "send of " + length + " bytes");
        }
        return true;
    }

    /** Posts a receive. */
    void receive(final NrtTensor tensor, final long offset, final long length, final SendRecvRequest request) {
        final NrtStatus status = engine.recvTensor(tensor, offset, length, incoming, request);
        if (status != NrtStatus.SUCCESS) {
            throw failure(status, "receive of up to " + length + " bytes");
        }
    }

    /** Tests a request. */
    boolean isDone(final SendRecvRequest request) {
        check(engine.testRequest(request), "transfer");
        if (request.done()) {
            patience.progressed();
        }
        return request.done();
    }

    /**
     * Tests a request until it is done, as a measurement does: without giving the processor away, and without allocating
     * anything.
     *
     * @return bytes moved.
     */
    long spin(final SendRecvRequest request, final String what) {
        for (int spins = 1; ; spins++) {
            final NrtStatus status = engine.testRequest(request);
            if (status != NrtStatus.SUCCESS) {
                throw failure(status, what);
            }
            if (request.done()) {
                return request.size();
            }
            if (spins == 1) {
                spinSinceNs = 0;
            }
            if ((spins & SPINS_UNCHECKED) == 0) {
                checkSpin(what);
            }
            Thread.onSpinWait();
        }
    }

    private void checkSpin(final String what) {
        final long nowNs = System.nanoTime();
        if (spinSinceNs == 0) {
            spinSinceNs = nowNs;
        }
        if (patience.isOver(nowNs - spinSinceNs)) {
            patience.check(nowNs - spinSinceNs, () -> what + "; " + this);
        }
    }

    /** Waits for a request, from now on: a measurement before it may have taken longer than the time limit, and told nobody. */
    void await(final SendRecvRequest request, final String what) {
        patience.progressed();
        while (!isDone(request)) {
            patience.pause(() -> what + "; " + this);
        }
    }

    /** Makes sure that what arrived is in memory. */
    void flush() {
        check(engine.flush(lnc), "flush");
    }

    private void check(final NrtStatus status, final String call) {
        if (status != NrtStatus.SUCCESS) {
            throw failure(status, call);
        }
    }

    private NrtException failure(final NrtStatus status, final String call) {
        return new NrtException(status, call + " answers " + status + " on " + this + ": " + engine.lastError());
    }

    /** Closes the LNC, which is in order only if nothing is in flight any more. */
    void closeInOrder() {
        open = false;
        check(engine.close(lnc), "close");
    }

    /** Closes the LNC whatever its state; the log tells what was left open. */
    @Override
    public void close() {
        if (open) {
            open = false;
            engine.close(lnc);
        }
    }

    @Override
    public String toString() {
        return "lnc " + lnc + " with peer " + peerIp + " lnc " + peerLnc + " [" + outgoing + "; " + incoming + "]";
    }
}
