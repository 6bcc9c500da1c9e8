package io.nrt4j.proxy;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.NrtTensor;
import io.nrt4j.net.NetTransport;
import java.nio.ByteBuffer;

/**
 * The barrier between ranks of several processes, over a transport. Rank 0 leads; every other rank has one link to it and one from
 * it. A message is the number of the round, 8 bytes; the link that carries it says who sent it.
 *
 * <p>Threads: as for {@link HostBarrier}; under the barrier's monitor, so that a close by another thread cannot take the messages'
 * memory away from under a call. The links are used by nobody else and are closed with the barrier.
 */
public final class NetBarrier implements HostBarrier {
    private final NetTransport transport;
    private final int rank;
    private final Link[] links;
    private final NrtTensor memory;
    private boolean closed;

    /** Both ways to one peer, with a word of memory for each. */
    private final class Link {
        private final int peer;
        private final long sendComm;
        private final long recvComm;
        private final long sendRegistration;
        private final long recvRegistration;
        private final long sendAddress;
        private final long recvAddress;
        private final ByteBuffer sendWord;
        private final ByteBuffer recvWord;
        private long sendRequest;
        private long recvRequest;
        private long sentRounds;
        private long receivedRounds;

        Link(final int peer, final long sendComm, final long recvComm, final long offset) {
            this.peer = peer;
            this.sendComm = sendComm;
            this.recvComm = recvComm;
            sendAddress = memory.address() + offset;
            recvAddress = sendAddress + Long.BYTES;
            sendWord = memory.view(offset, Long.BYTES);
            recvWord = memory.view(offset + Long.BYTES, Long.BYTES);
            sendRegistration = transport.regMr(sendComm, sendAddress, Long.BYTES, memory.placement());
            try {
                recvRegistration = transport.regMr(recvComm, recvAddress, Long.BYTES, memory.placement());
            } catch (final RuntimeException ex) {
                deregister(sendComm, sendRegistration, ex);
                throw ex;
            }
        }

        /** Ends the registrations of a link that is not used. */
        void giveBack(final RuntimeException cause) {
            deregister(sendComm, sendRegistration, cause);
            deregister(recvComm, recvRegistration, cause);
        }

        /** Sends a round's word; true when the network has it. */
        boolean send(final long round) {
            if (sentRounds > round) {
                return true;
            }
            if (sendRequest == NetTransport.NOT_YET) {
                sendWord.putLong(0, round);
                sendRequest = transport.isend(sendComm, sendAddress, Long.BYTES, sendRegistration);
                if (sendRequest == NetTransport.NOT_YET) {
                    return false;
                }
            }
            if (transport.test(sendRequest) == NetTransport.PENDING) {
                return false;
            }
            sendRequest = NetTransport.NOT_YET;
            sentRounds = round + 1;
            return true;
        }

        /** Receives a round's word; true when it has come. */
        boolean receive(final long round) {
            if (receivedRounds > round) {
                return true;
            }
            if (recvRequest == NetTransport.NOT_YET) {
                recvRequest = transport.irecv(recvComm, recvAddress, Long.BYTES, recvRegistration);
                if (recvRequest == NetTransport.NOT_YET) {
                    return false;
                }
            }
            final long moved = transport.test(recvRequest);
            if (moved == NetTransport.PENDING) {
                return false;
            }
            recvRequest = NetTransport.NOT_YET;
            if (moved != Long.BYTES || recvWord.getLong(0) != round) {
                throw new NrtException(NrtStatus.FAILURE, "rank " + rank + " is in round " + round + " of the barrier, but rank " + peer
                    + " says " + (moved == Long.BYTES ? "round " + recvWord.getLong(0) : moved + " bytes"));
            }
            receivedRounds = round + 1;
            return true;
        }
    }

    /**
     * Makes a rank's side.
     *
     * @param transport of the links.
     * @param rank      this rank.
     * @param sendComms send communicator by peer: for rank 0 to every other rank, for others to rank 0; the rest is not read.
     * @param recvComms receive communicator by peer, likewise.
     * @throws NrtException when the memory of the messages cannot be registered; the links are left open then.
     */
    public NetBarrier(final NetTransport transport, final int rank, final long[] sendComms, final long[] recvComms) {
        this.transport = transport;
        this.rank = rank;
        final int first = rank == 0 ? 1 : 0;
        links = new Link[rank == 0 ? sendComms.length - 1 : 1];
        memory = NrtTensor.allocate(2L * Long.BYTES * Math.max(1, links.length));
        try {
            for (int i = 0; i < links.length; i++) {
                final int peer = first + i;
                links[i] = new Link(peer, sendComms[peer], recvComms[peer], 2L * Long.BYTES * i);
            }
        } catch (final RuntimeException ex) {
            for (int i = 0; i < links.length && links[i] != null; i++) {
                links[i].giveBack(ex);
            }
            memory.close();
            throw ex;
        }
    }

    /** Before the memory goes. A registration that stays keeps the memory: it is never freed then. */
    private void deregister(final long comm, final long registration, final RuntimeException cause) {
        try {
            transport.deregMr(comm, registration);
        } catch (final RuntimeException ex) {
            cause.addSuppressed(ex);
            memory.storage().retain();
        }
    }

    @Override
    public boolean isLeader() {
        return rank == 0;
    }

    @Override
    public synchronized boolean arrive(final long round) {
        checkOpen();
        boolean all = true;
        for (final Link link : links) {
            all &= isLeader() ? link.receive(round) : link.send(round);
        }
        progressUnless(all);
        return all;
    }

    @Override
    public synchronized boolean depart(final long round) {
        checkOpen();
        boolean all = true;
        for (final Link link : links) {
            all &= isLeader() ? link.send(round) : link.receive(round);
        }
        progressUnless(all);
        return all;
    }

    private void checkOpen() {
        if (closed) {
            throw new NrtException(NrtStatus.CLOSED, "rank " + rank + "'s side of the barrier was closed");
        }
    }

    private void progressUnless(final boolean all) {
        if (!all && transport.needsProgress()) {
            transport.progress();
        }
    }

    @Override
    public synchronized void close() {
        if (closed) {
            return;
        }
        closed = true;
        RuntimeException failure = null;
        for (final Link link : links) {
            failure = closeOne(() -> transport.closeSend(link.sendComm), failure);
            failure = closeOne(() -> transport.closeRecv(link.recvComm), failure);
        }
        memory.close();
        if (failure != null) {
            throw failure;
        }
    }

    /** One step of the close; the first failure so far. Memory that the network may still touch is never freed. */
    private RuntimeException closeOne(final Runnable step, final RuntimeException before) {
        try {
            step.run();
        } catch (final RuntimeException ex) {
            memory.storage().retain();
            if (before == null) {
                return ex;
            }
            before.addSuppressed(ex);
        }
        return before;
    }
}
