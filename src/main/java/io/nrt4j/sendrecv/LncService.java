package io.nrt4j.sendrecv;

import io.nrt4j.concurrent.Agent;
import io.nrt4j.concurrent.SpscRing;
import io.nrt4j.net.NetTransport;
import java.util.ArrayList;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The duty cycle of an LNC's service thread: the one consumer of its hand-over ring and of its communicators' stash rings.
 *
 * <p>Communicators that connect wait in {@link PeerQueues}; only the first of a peer moves, so that those of one pair match in
 * the order in which they were made. One that connects joins {@code connected}; one that fails is dropped.
 *
 * <p>Threads: {@link #doWork()} by the service thread, or by a test in its place; everything here belongs to it. Ports
 * {@code async_sr_service_thread_fn} (0xef700) and {@code async_sr_connect_comms} (0xef490).
 */
final class LncService implements Agent {
    private static final Logger LOG = LoggerFactory.getLogger(LncService.class);

    private final LncContext context;
    private final SpscRing<Communicator> handover;
    private final ConnectMachine machine;
    private final LockedNet net;
    private final NetTransport transport;
    private final TaskSignal signal;
    private final PeerQueues sendQueues = new PeerQueues();
    private final PeerQueues recvQueues = new PeerQueues();
    private final List<Communicator> connected = new ArrayList<>();
    /** Communicators whose state has changed in this duty cycle. */
    private int moves;

    LncService(
        final LncContext context,
        final SpscRing<Communicator> handover,
        final ConnectMachine machine,
        final LockedNet net,
        final TaskSignal signal) {
        this.context = context;
        this.handover = handover;
        this.machine = machine;
        this.net = net;
        this.transport = net.transport();
        this.signal = signal;
    }

    @Override
    public String roleName() {
        return "nrt4j-sr-" + context.lnc();
    }

    @Override
    public int doWork() {
        int work = 0;
        int polls = 0;
        moves = 0;
        final boolean tasks = signal.count() > 0;
        if (tasks) {
            work += pickUpConnectionTasks();
            polls += connectComms(sendQueues);
            polls += connectComms(recvQueues);
            work += drainStashes();
        }
        work += transport.progress();
        // Asking again and again for what is not there is work, but none that is worth staying awake for.
        signal.setPatient(tasks && work == 0 && moves == 0 && hasOnlyAbsentPeers());
        return work + polls;
    }

    /** Whether all open tasks are peers that do not come: then the thread may sleep longer between its looks. */
    private boolean hasOnlyAbsentPeers() {
        for (int i = 0; i < connected.size(); i++) {
            if (!connected.get(i).stash().isEmpty()) {
                return false;
            }
        }
        return !transport.needsProgress();
    }

    /** Moves new communicators from the hand-over ring to the queue of their peer. */
    private int pickUpConnectionTasks() {
        int work = 0;
        for (Communicator comm = handover.poll(); comm != null; comm = handover.poll()) {
            (comm.type() == CommType.SEND_COMM ? sendQueues : recvQueues).add(comm);
            work++;
        }
        return work;
    }

    private int connectComms(final PeerQueues queues) {
        int work = 0;
        int i = 0;
        while (i < queues.size()) {
            final Communicator first = queues.first(i);
            final CommStatus before = first.status();
            work += machine.step(first);
            if (first.status() != before) {
                moves++;
            }
            boolean lastOfItsPeer = false;
            if (first.status().isTerminal()) {
                lastOfItsPeer = queues.removeFirst(i);
                settle(first);
            }
            if (!lastOfItsPeer) {
                i++;
            }
        }
        return work;
    }

    private void settle(final Communicator comm) {
        signal.retire();
        if (comm.status() == CommStatus.CONNECTED) {
            connected.add(comm);
        } else {
            context.forget(comm);
        }
    }

    private int drainStashes() {
        int work = 0;
        for (int i = 0; i < connected.size(); i++) {
            work += drainStash(connected.get(i));
        }
        return work;
    }

    /**
     * Posts a communicator's stashed requests in order, until there are none or the transport has no room, and at most a ringful:
     * posters that always add one more must not keep the others from their turn.
     */
    private int drainStash(final Communicator comm) {
        int work = 0;
        while (work < Communicator.MAX_PENDING_REQUESTS) {
            final RequestSlot slot = comm.stash().peek();
            if (slot == null) {
                return work;
            }
            if (RequestSlot.statusOf(slot.stateWord()) != RequestStatus.STASHED) {
                throw new BrokenMachineException("in the stash ring: " + slot);
            }
            try {
                final long registration = comm.mrCache().findOrRegister(slot.tensor().storage(), slot.tensor().placement());
                if (!net.postStashed(slot, registration)) {
                    return work;
                }
            } catch (final BrokenMachineException ex) {
                throw ex;
            } catch (final RuntimeException ex) {
                LOG.warn("Failed to post async sendrecv request {} type {}: {}", slot, slot.type(), ex.getMessage());
                // Off the ring first: whoever sees the error may use the slot again at once.
                comm.stash().advance();
                slot.fail(ex);
            }
            signal.retire();
            work++;
        }
        return work;
    }

    /** Closer, once the service thread has ended: gives up what still connects. */
    void abortConnecting() {
        pickUpConnectionTasks();
        abort(sendQueues);
        abort(recvQueues);
    }

    private void abort(final PeerQueues queues) {
        while (queues.size() > 0) {
            final Communicator comm = queues.first(0);
            machine.abort(comm);
            queues.removeFirst(0);
            settle(comm);
        }
    }

    @Override
    public String toString() {
        return roleName() + ": " + signal + ", connecting " + sendQueues + " " + recvQueues + ", connected "
            + connected.size();
    }
}
