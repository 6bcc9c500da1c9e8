package io.nrt4j.sendrecv;

import java.util.concurrent.TimeUnit;

/**
 * Why a thread's last failed call failed. A request that is tested again and again past its time limit leaves only figures here, which
 * become a text for whoever asks: such a poll allocates nothing.
 *
 * <p>Threads: one object for each thread and engine. It refers to nothing of the engine, which it may outlive.
 */
final class LastError {
    private String text = "";
    /** Of the communicator; not null when the figures are to be told, and not the text. */
    private String overdueComm;
    private long lengthBytes;
    private RequestStatus status;
    private long elapsedNs;
    private long limitNs;

    void set(final String why) {
        text = why;
        overdueComm = null;
    }

    /** A request that is in flight beyond its time limit. */
    void setOverdue(final RequestSlot slot) {
        final Communicator comm = slot.comm();
        overdueComm = comm.toString();
        lengthBytes = slot.lengthBytes();
        status = RequestSlot.statusOf(slot.stateWord());
        elapsedNs = comm.context().clock().nanoTime() - slot.postedNs();
        limitNs = comm.context().requestTimeoutNs();
    }

    @Override
    public String toString() {
        return overdueComm == null ? text : "testRequest: " + lengthBytes + " bytes on " + overdueComm + " are still " + status + " after "
            + TimeUnit.NANOSECONDS.toMillis(elapsedNs) + " ms, the limit is " + TimeUnit.NANOSECONDS.toMillis(limitNs) + " ms";
    }
}
