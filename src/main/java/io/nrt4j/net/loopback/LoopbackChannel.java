package io.nrt4j.net.loopback;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import java.util.Arrays;

/**
 * What connects a send end with a receive end: two rings of posted requests, and the copying between them. The n-th posted
 * send goes to the n-th posted receive.
 *
 * <p>A message of at most one slice is copied by the post that completes the match. A longer one is left as a backlog, which
 * the tests and the progress of either end move on by a slice at a time; what is posted meanwhile queues up behind it.
 *
 * <p>Threads: the rings, their counters, {@code copied} and the ends' {@code closed} are guarded by the lock, which is also held
 * while bytes are copied. {@code backlog} is written under the lock and read without it by tests, as a hint that helping may be
 * of use; a test that reads it too early answers "pending" and is asked again.
 */
final class LoopbackChannel {
    /** Requests that may be posted and unmatched at each end. */
    static final int CAPACITY = 128;
    /** Most bytes that are copied under the lock at a time, and most that a post copies. */
    static final int SLICE_BYTES = 1 << 20;

    private static final int MASK = CAPACITY - 1;

    private final SpinLock lock = new SpinLock();
    private final LoopbackRequest[] sends = new LoopbackRequest[CAPACITY];
    private final LoopbackRequest[] receives = new LoopbackRequest[CAPACITY];
    /** Number of the next match, and of the next request of each ring. */
    private long head;
    private long sendTail;
    private long receiveTail;
    /** Bytes of the match at the head that are copied. */
    private long copied;
    private volatile boolean backlog;

    private LoopbackEnd sender;
    private LoopbackEnd receiver;

    /** Joins the two ends. Once, before either is handed out. */
    void join(final LoopbackEnd sending, final LoopbackEnd receiving) {
        sender = sending;
        receiver = receiving;
    }

    /** The lock that guards this channel. */
    SpinLock lock() {
        return lock;
    }

    /** The other end. */
    LoopbackEnd peerOf(final LoopbackEnd end) {
        return end == sender ? receiver : sender;
    }

    /** Whether this end cannot post one more. Under the lock. */
    boolean isFull(final boolean sending) {
        return (sending ? sendTail : receiveTail) - head == CAPACITY;
    }

    /** Appends a posted request and copies what it completes. Under the lock, not full. */
    void enqueue(final LoopbackRequest request, final boolean sending) {
        if (sending) {
            sends[(int) sendTail++ & MASK] = request;
        } else {
            receives[(int) receiveTail++ & MASK] = request;
        }
        if (!backlog && isMatched()) {
            if (sends[(int) head & MASK].lengthBytes <= SLICE_BYTES) {
                advance();
            } else {
                setBacklog(true);
            }
        }
    }

    /**
     * Moves the backlog on by a slice, unless there is none or somebody else is at it. Any thread.
     *
     * @return how much was done.
     */
    int help() {
        if (!backlog || !lock.tryLock()) {
            return 0;
        }
        try {
            return advance();
        } finally {
            lock.unlock();
        }
    }

    /**
     * Takes a pending request out; its place in the order stays, and the request that is matched with it fails. Under the lock.
     */
    void withdraw(final LoopbackRequest request, final LoopbackRequest tombstone) {
        final LoopbackRequest[] ring = request.end == sender ? sends : receives;
        for (int i = 0; i < CAPACITY; i++) {
            if (ring[i] == request) {
                ring[i] = tombstone;
            }
        }
    }

    /** Empties the rings and fails what the peer of the closing end has posted. Under the lock. */
    void close(final LoopbackEnd closing) {
        final boolean sending = closing == sender;
        final LoopbackRequest[] ring = sending ? receives : sends;
        final long tail = sending ? receiveTail : sendTail;
        for (long i = head; i < tail; i++) {
            final LoopbackRequest request = ring[(int) i & MASK];
            if (!request.end.isTombstone(request)) {
                request.fail("the peer " + closing + " was closed");
            }
        }
        Arrays.fill(sends, null);
        Arrays.fill(receives, null);
        head = 0;
        sendTail = 0;
        receiveTail = 0;
        copied = 0;
        setBacklog(false);
    }

    private boolean isMatched() {
        return head < sendTail && head < receiveTail;
    }

    /** Copies matched messages in order, at most a slice in all. Under the lock. */
    private int advance() {
        int work = 0;
        long left = SLICE_BYTES;
        while (isMatched()) {
            final LoopbackRequest send = sends[(int) head & MASK];
            final LoopbackRequest receive = receives[(int) head & MASK];
            final String obstacle = obstacle(send, receive);
            if (obstacle != null) {
                fail(send, receive, obstacle);
            } else {
                final long slice = Math.min(send.lengthBytes - copied, SLICE_BYTES);
                if (slice > left) {
                    break;
                }
                left -= slice;
                move(send, receive, slice);
            }
            work++;
        }
        setBacklog(isMatched());
        return work;
    }

    private void move(final LoopbackRequest send, final LoopbackRequest receive, final long slice) {
        try {
            Registration.copy(send.registration, send.offset + copied, receive.registration, receive.offset + copied, slice);
        } catch (final InternalError ex) { // how the JVM reports that a mapped file is not there any more
            fail(send, receive, "the memory of a transfer of " + send.lengthBytes + " bytes cannot be accessed: " + ex.getMessage());
            return;
        }
        copied += slice;
        if (copied == send.lengthBytes) {
            send.complete(copied);
            receive.complete(copied);
            next();
        }
    }

    /** Why a match cannot be carried out; null if it can. */
    private static String obstacle(final LoopbackRequest send, final LoopbackRequest receive) {
        if (send.end.isTombstone(send) || receive.end.isTombstone(receive)) {
            return "the peer gave its request up";
        }
        if (send.lengthBytes > receive.lengthBytes) {
            return "a message of " + send.lengthBytes + " bytes is longer than the posted receive of " + receive.lengthBytes
                + " bytes; nothing was written";
        }
        if (!send.registration.isLive() || !receive.registration.isLive()) {
            return (send.registration.isLive() ? "the receive" : "the send") + "'s memory was deregistered while it was in flight";
        }
        return null;
    }

    private void fail(final LoopbackRequest send, final LoopbackRequest receive, final String why) {
        if (!send.end.isTombstone(send)) {
            send.fail(why);
        }
        if (!receive.end.isTombstone(receive)) {
            receive.fail(why);
        }
        next();
    }

    private void next() {
        sends[(int) head & MASK] = null;
        receives[(int) head & MASK] = null;
        head++;
        copied = 0;
    }

    private void setBacklog(final boolean now) {
        if (backlog == now) {
            return;
        }
        backlog = now;
        final Backlogs ofSender = sender.transport().backlogs();
        final Backlogs ofReceiver = receiver.transport().backlogs();
        if (now) {
            ofSender.add(this);
        } else {
            ofSender.remove(this);
        }
        if (ofReceiver != ofSender) {
            if (now) {
                ofReceiver.add(this);
            } else {
                ofReceiver.remove(this);
            }
        }
    }

    /** A failure of a post on a channel whose peer is gone. */
    NrtException peerClosed(final String call, final LoopbackEnd end) {
        return new NrtException(NrtStatus.FAILURE, "loopback " + call + " on " + end + ": the peer " + peerOf(end) + " was closed");
    }
}
