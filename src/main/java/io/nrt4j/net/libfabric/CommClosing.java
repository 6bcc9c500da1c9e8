package io.nrt4j.net.libfabric;

import io.nrt4j.NrtStatus;
import java.util.ArrayDeque;
import java.util.BitSet;
import java.util.Queue;
import java.util.concurrent.TimeUnit;

/**
 * The end of communicators, by either side. Threads: under the engine's lock.
 */
final class CommClosing {
    /** How long the provider may have no room for a receive that swallows a message. */
    private static final long SINK_LIMIT_NS = TimeUnit.SECONDS.toNanos(10);

    /** A receive that swallows a message. */
    private record Sink(RecvComm comm, int number, long length, long deadlineNs) {
    }

    private final Queue<Sink> sinks = new ArrayDeque<>();
    private final CommTable comms;
    private final LibraryBuffers buffers;
    private final Receiving receiving;
    private final Outcomes outcomes;

    CommClosing(final CommTable comms, final LibraryBuffers buffers, final Receiving receiving, final Outcomes outcomes) {
        this.comms = comms;
        this.buffers = buffers;
        this.receiving = receiving;
        this.outcomes = outcomes;
    }

    /** Gives all requests up and asks the provider for their memory. */
    void begin(final Comm comm) {
        comm.closed = true;
        if (comm instanceof RecvComm recv) {
            for (int slot = 0; slot < Comm.SLOTS; slot++) {
                if (recv.op[slot] != OpTable.NONE) {
                    recv.takenBack.add(new long[] {recv.number[slot], recv.length[slot]});
                }
            }
        }
        outcomes.failComm(comm, comm.oldest, NrtStatus.CLOSED, "the communicator was closed");
        dropEarly(comm);
    }

    /** The transport is about to be closed: asks the provider for the memory of all receives. */
    void giveUpReceives() {
        for (final Comm comm : comms.all()) {
            if (comm instanceof RecvComm && !comm.closed) {
                begin(comm);
            }
        }
    }

    /** Whether the provider still has memory of a communicator. */
    boolean holdsMemory(final Comm comm) {
        for (final int op : comm.op) {
            if (op != OpTable.NONE) {
                return true;
            }
        }
        return false;
    }

    /** Forgets a closed communicator; operations that the provider did not give up stay behind without it. */
    void remove(final Comm comm) {
        outcomes.orphanAll(comm);
        forgetEarly(comm);
        comms.remove(comm);
    }

    /** The receiver keeps no early messages of a communicator any more. */
    void forgetEarly(final Comm comm) {
        if (comm instanceof SendComm send) {
            for (int i = 0; i < Comm.RING; i++) {
                if (send.sentEarly[i]) {
                    send.sentEarly[i] = false;
                    comm.peer.early--;
                }
            }
        }
    }

    /** The sender has closed; it had transmitted so many posts. */
    void onSenderClosed(final RecvComm comm, final int transmitted) {
        final int from = transmitted - comm.oldest > 0 ? transmitted : comm.oldest;
        outcomes.failComm(comm, from, NrtStatus.CLOSED, "the sender closed its communicator");
    }

    /**
     * The receiver has closed. What had arrived there is sent, even if its announcement did not come: it goes another way than this word,
     * and maybe does not go at all.
     */
    void onReceiverClosed(final Comm comm, final int posted, final byte[] received) {
        if (comm instanceof SendComm send) {
            final BitSet bits = BitSet.valueOf(received);
            for (int number = send.oldest; number - send.transmit < 0; number++) {
                final int slot = send.slotOf[number & Comm.RING_MASK];
                if (slot != Comm.NONE && number - posted < 0 && bits.get(number & Comm.RING_MASK)) {
                    outcomes.complete(send, slot, send.length[slot]);
                }
            }
        }
        outcomes.failComm(comm, comm.oldest, NrtStatus.CLOSED, "the receiver closed its communicator");
    }

    /** Which of the last posts of a sender went as long messages, as {@link #swallow} takes it. */
    static byte[] sentDirect(final Comm comm) {
        return comm instanceof SendComm send ? bits(send.sentDirect) : new byte[0];
    }

    /** Which of the last receives have their message, as {@link #onReceiverClosed} takes it. */
    static byte[] received(final Comm comm) {
        return comm instanceof RecvComm recv ? bits(recv.received) : new byte[0];
    }

    private static byte[] bits(final boolean[] flags) {
        final BitSet bits = new BitSet();
        for (int i = 0; i < flags.length; i++) {
            bits.set(i, flags[i]);
        }
        return bits.toByteArray();
    }

    /**
     * The receiver has closed and knows how far the sender had come: what was sent to the receives that it took back is swallowed. Other
     * posts were refused, or went as library messages: what waited for them would wait for ever.
     */
    void swallow(final RecvComm comm, final int transmitted, final byte[] sentDirect) {
        final BitSet bits = BitSet.valueOf(sentDirect);
        comm.takenBack.removeIf(post -> (int) post[0] - transmitted >= 0 || !bits.get((int) post[0] & Comm.RING_MASK));
        comm.takenBack.sort((one, other) -> Integer.compare((int) one[0] - transmitted, (int) other[0] - transmitted));
        // In the order of the messages, and each as long as the longest: libfabric 1.17's shm was seen to give a sink the message of
        // another number, and copies for ever when a buffer is too short.
        long length = 0;
        for (final long[] post : comm.takenBack) {
            length = Math.max(length, post[1]);
        }
        final long deadlineNs = System.nanoTime() + SINK_LIMIT_NS;
        for (final long[] post : comm.takenBack) {
            sinks.add(new Sink(comm, (int) post[0], length, deadlineNs));
        }
        comm.takenBack.clear();
        postSinks();
    }

    /** Posts the receives that swallow messages, in order, as far as the provider has room. */
    void postSinks() {
        for (Sink next = sinks.peek(); next != null; next = sinks.peek()) {
            if (next.comm.peer.alive() && !receiving.postSink(next.comm, next.number, next.length, next.deadlineNs)) {
                return;
            }
            sinks.remove();
        }
    }

    /** Receives that swallow messages and wait for room at the provider. */
    int waitingSinks() {
        return sinks.size();
    }

    /** The endpoint is about to be closed. */
    void forgetSinks() {
        sinks.clear();
    }

    /** Gives the buffers of messages back that no receive will take. */
    void dropEarly(final Comm comm) {
        if (comm instanceof RecvComm recv) {
            for (int i = 0; i < Comm.RING; i++) {
                if (recv.early[i] != null) {
                    buffers.repostLater(recv.early[i]);
                    recv.early[i] = null;
                }
            }
        }
    }
}
