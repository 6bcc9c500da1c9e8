package io.nrt4j.sendrecv;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.concurrent.NanoClock;
import io.nrt4j.kv.KvClient;
import io.nrt4j.kv.KvOptions;
import io.nrt4j.net.NetTransport;
import java.net.InetSocketAddress;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The rendezvous of one LNC's communicators: at most one step of one communicator a call, never blocking.
 *
 * <p>RECV learns the peer's host identity from the peer's key-value server, listens, and publishes its listen handle in its own
 * host's server; SEND takes the handle from there and connects. States and walks are those of {@link CommStatus}.
 *
 * <p>Threads: the service thread, or a test in its place. Ports {@code async_sr_progress_connect_comm} (0xee7e0).
 */
final class ConnectMachine {
    private static final Logger LOG = LoggerFactory.getLogger(ConnectMachine.class);

    /** How often a receiver that waits for its sender makes sure that its handle is still published. */
    private static final long WATCH_INTERVAL_NS = TimeUnit.MILLISECONDS.toNanos(250);
    /** How long a sender may take from taking the handle to connecting, before the handle is published for the next one. */
    private static final long TAKEN_LIMIT_NS = TimeUnit.SECONDS.toNanos(2);

    private final int lnc;
    private final NetTransport transport;
    private final byte[] hostIdentity;
    private final InetSocketAddress ownServer;
    private final int bootstrapPort;
    private final KvOptions kvOptions;
    private final long timeoutNs;
    private final NanoClock clock;

    ConnectMachine(
        final int lnc,
        final NetTransport transport,
        final Rendezvous rendezvous,
        final long timeoutNs,
        final NanoClock clock) {
        this.lnc = lnc;
        this.transport = transport;
        this.hostIdentity = rendezvous.hostIdentity();
        this.ownServer = rendezvous.ownServer();
        this.bootstrapPort = rendezvous.bootstrapPort();
        this.kvOptions = rendezvous.options();
        this.timeoutNs = timeoutNs;
        this.clock = clock;
    }

    /**
     * Moves a communicator on by at most one step.
     *
     * @return how much was done; 0 when it waits.
     */
    int step(final Communicator comm) {
        if (comm.status().isTerminal()) {
            throw new BrokenMachineException(comm + " needs no connect step in " + comm.status());
        }
        if (timeoutNs > 0 && clock.nanoTime() - comm.startNs() > timeoutNs) {
            fail(comm, new NrtException(NrtStatus.TIMEOUT, "not connected within " + TimeUnit.NANOSECONDS.toMillis(timeoutNs)
                + " ms" + waitingFor(comm)), true);
            return 1;
        }
        try {
            return comm.type() == CommType.SEND_COMM ? stepSend(comm) : stepRecv(comm);
        } catch (final BrokenMachineException ex) {
            throw ex;
        } catch (final RuntimeException ex) { // whatever a transport throws costs this communicator, not its LNC
            fail(comm, ex, false);
            return 1;
        }
    }

    private int stepSend(final Communicator comm) {
        return switch (comm.status()) {
            case START_INIT -> getNetHandle(comm);
            case WAIT_FOR_NET_HANDLE_GET -> waitForKv(comm, CommStatus.NET_CONNECT);
            case NET_CONNECT -> connect(comm);
            default -> throw illegal(comm);
        };
    }

    private int stepRecv(final Communicator comm) {
        return switch (comm.status()) {
            case START_INIT -> getHostname(comm);
            case WAIT_FOR_HOSTNAME -> waitForKv(comm, CommStatus.LISTEN);
            case LISTEN -> listen(comm);
            case WAIT_FOR_NET_HANDLE_SET -> waitForPublished(comm);
            case NET_CONNECT -> acceptOrWatch(comm);
            default -> throw illegal(comm);
        };
    }

    private static BrokenMachineException illegal(final Communicator comm) {
        return new BrokenMachineException(comm + " can never be in " + comm.status());
    }

    /** SEND 0: asks the peer's server for the receiver's handle. Taking it leaves the next one to the next communicator. */
    private int getNetHandle(final Communicator comm) {
        final ConnectState state = comm.connectState();
        final byte[] key = HandleKey.of(lnc, comm.peer().lnc(), hostIdentity);
        state.kvRequest = KvClient.get(peerServer(comm), key, true, true,
            (buffer, offset, length) -> copyExactly(buffer, offset, length, state.netHandle, "net handle"), kvOptions);
        transition(comm, CommStatus.WAIT_FOR_NET_HANDLE_GET, "asks " + peerServer(comm) + " for the handle");
        return 1;
    }

    /** RECV 0: asks the peer's server for the peer's host identity. */
    private int getHostname(final Communicator comm) {
        final ConnectState state = comm.connectState();
        state.kvRequest = KvClient.get(peerServer(comm), HandleKey.hostname(), false, true,
            (buffer, offset, length) -> copyExactly(buffer, offset, length, state.peerHostname, "host identity"), kvOptions);
        transition(comm, CommStatus.WAIT_FOR_HOSTNAME, "asks " + peerServer(comm) + " for its identity");
        return 1;
    }

    /** SEND 2, RECV 1: the callback has filled the record when the request is done. */
    private int waitForKv(final Communicator comm, final CommStatus next) {
        final ConnectState state = comm.connectState();
        final int work = state.kvRequest.step();
        if (isDone(comm)) {
            closeKv(state);
            transition(comm, next, "answered");
            return work + 1;
        }
        return work;
    }

    /** SEND 4. */
    private int connect(final Communicator comm) {
        final ConnectState state = comm.connectState();
        final long connected;
        state.connecting = true;
        try {
            connected = transport.connect(transport.nicOf(lnc), state.netHandle);
        } catch (final NrtException ex) {
            state.connecting = false;
            if (ex.status() != NrtStatus.CLOSED) {
                throw ex;
            }
            // The listener behind the handle is gone, as after a restart of the peer: the next one will publish its own.
            transition(comm, CommStatus.START_INIT, "stale handle: " + ex.getMessage());
            return 1;
        }
        if (connected == NetTransport.NOT_YET) {
            return 0;
        }
        state.connecting = false;
        comm.setNetComm(connected);
        transition(comm, CommStatus.CONNECTED, "connected");
        return 1;
    }

    /** RECV 5. */
    private int listen(final Communicator comm) {
        final ConnectState state = comm.connectState();
        state.listenComm = transport.listen(transport.nicOf(lnc), state.netHandle);
        publish(comm, "listens");
        return 1;
    }

    private void publish(final Communicator comm, final String reason) {
        final ConnectState state = comm.connectState();
        state.kvRequest = KvClient.set(ownServer, recvKey(comm), state.netHandle, kvOptions);
        transition(comm, CommStatus.WAIT_FOR_NET_HANDLE_SET, reason);
    }

    private byte[] recvKey(final Communicator comm) {
        return HandleKey.of(comm.peer().lnc(), lnc, comm.connectState().peerHostname);
    }

    /** RECV 3. */
    private int waitForPublished(final Communicator comm) {
        final ConnectState state = comm.connectState();
        final int work = state.kvRequest.step();
        if (!isDone(comm)) {
            return work;
        }
        state.publishedEpoch = state.kvRequest.serverEpoch();
        state.handleTaken = false;
        state.nextWatchNs = clock.nanoTime() + WATCH_INTERVAL_NS;
        closeKv(state);
        transition(comm, CommStatus.NET_CONNECT, "handle published");
        return work + 1;
    }

    /** RECV 4. */
    private int acceptOrWatch(final Communicator comm) {
        final ConnectState state = comm.connectState();
        final long accepted = transport.accept(state.listenComm);
        if (accepted == NetTransport.NOT_YET) {
            return watchHandle(comm);
        }
        closeKv(state);
        closeListen(comm, state);
        comm.setNetComm(accepted);
        transition(comm, CommStatus.CONNECTED, "accepted");
        return 1;
    }

    /** Publishes the handle again when its server is another one now, or when who took it does not come. */
    private int watchHandle(final Communicator comm) {
        final ConnectState state = comm.connectState();
        final long nowNs = clock.nanoTime();
        if (state.kvRequest == null) {
            if (nowNs - state.nextWatchNs < 0) {
                return 0;
            }
            state.kvRequest =
                KvClient.get(ownServer, recvKey(comm), false, false, (buffer, offset, length) -> { }, kvOptions);
            return 0; // as all of it: to look whether all is well is no progress
        }
        final KvClient watch = state.kvRequest;
        watch.step();
        if (!watch.isDone()) {
            return 0;
        }
        final boolean failed = watch.isFailed();
        final boolean found = !failed && watch.found();
        final boolean otherServer = !failed && watch.serverEpoch() != state.publishedEpoch;
        closeKv(state);
        state.nextWatchNs = nowNs + WATCH_INTERVAL_NS;
        if (failed) {
            return 0; // the server is between two leaders: look again
        }
        if (found) {
            state.handleTaken = false;
        } else if (otherServer) {
            publish(comm, "another server: publishes again");
            return 1;
        } else if (!state.handleTaken) {
            state.handleTaken = true;
            state.takenSinceNs = nowNs;
        } else if (nowNs - state.takenSinceNs > TAKEN_LIMIT_NS) {
            publish(comm, "taken, but nobody connected: publishes again");
            return 1;
        }
        return 0;
    }

    private boolean isDone(final Communicator comm) {
        final KvClient request = comm.connectState().kvRequest;
        if (request.isFailed()) {
            throw request.failure();
        }
        return request.isDone();
    }

    private InetSocketAddress peerServer(final Communicator comm) {
        return new InetSocketAddress(comm.peerAddress(), bootstrapPort);
    }

    private static void copyExactly(
        final byte[] buffer, final int offset, final int length, final byte[] target, final String what) {
        if (length != target.length) {
            throw new NrtException(
                NrtStatus.FAILURE, "a " + what + " of " + length + " bytes instead of " + target.length);
        }
        System.arraycopy(buffer, offset, target, 0, length);
    }

    /** What the peer has not done, as far as the state tells, and where the request to its server stands. */
    private static String waitingFor(final Communicator comm) {
        final KvClient request = comm.connectState().kvRequest;
        final String missing = switch (comm.status()) {
            case WAIT_FOR_NET_HANDLE_GET -> "the peer has not called accept for this lnc, or is not reachable";
            case WAIT_FOR_HOSTNAME -> "the peer's host does not answer: is it reachable, and initialised with the same port?";
            case NET_CONNECT -> comm.type() == CommType.SEND_COMM
                ? "the peer has not accepted" : "the peer has not called connect for this lnc";
            default -> "its own host's key-value server does not answer";
        };
        return ": " + missing + (request == null ? "" : "; last: " + request.describe());
    }

    /** The only place where a status changes. */
    private void transition(final Communicator comm, final CommStatus next, final String reason) {
        final CommStatus before = comm.status();
        if (!before.mayMoveTo(next, comm.type())) {
            throw new BrokenMachineException(comm + " cannot go from " + before + " to " + next + " (" + reason + ")");
        }
        if (LOG.isDebugEnabled()) {
            LOG.debug("{}: {} -> {} after {} ms: {}", comm, before, next,
                comm.elapsed(clock.nanoTime()).toMillis(), reason);
        }
        comm.setStatus(next);
    }

    /** Closer: gives up a communicator that still connects. */
    void abort(final Communicator comm) {
        giveUp(comm, new NrtException(NrtStatus.CLOSED, "lnc " + lnc + " was closed"), false);
    }

    private void fail(final Communicator comm, final Throwable cause, final boolean timedOut) {
        LOG.warn("{}", giveUp(comm, cause, timedOut));
    }

    /** Gives a communicator up from any state that is not terminal: frees what it holds, keeps why. */
    private CommFailure giveUp(final Communicator comm, final Throwable cause, final boolean timedOut) {
        final CommFailure failure = new CommFailure(comm.type() == CommType.SEND_COMM ? "connect" : "accept", lnc,
            comm.peer().ip(), comm.peer().lnc(), comm.status().name(), comm.elapsed(clock.nanoTime()), timedOut, cause);
        releaseConnectState(comm);
        comm.setFailure(failure);
        transition(comm, CommStatus.CONNECTION_ERROR, cause.getMessage());
        return failure;
    }

    private void releaseConnectState(final Communicator comm) {
        final ConnectState state = comm.connectState();
        closeKv(state);
        closeListen(comm, state);
        if (state.connecting) {
            state.connecting = false;
            release(comm, "connect", () -> transport.abandonConnect(transport.nicOf(lnc), state.netHandle));
        }
    }

    /** What cannot be freed is the transport's loss; the communicator, and whoever closes the LNC, go on. */
    private static void release(final Communicator comm, final String what, final Runnable step) {
        try {
            step.run();
        } catch (final RuntimeException ex) {
            LOG.error("The {} of {} could not be freed", what, comm, ex);
        }
    }

    private static void closeKv(final ConnectState state) {
        if (state.kvRequest != null) {
            state.kvRequest.close();
            state.kvRequest = null;
        }
    }

    private void closeListen(final Communicator comm, final ConnectState state) {
        if (state.listenComm != NetTransport.NOT_YET) {
            final long listenComm = state.listenComm;
            state.listenComm = NetTransport.NOT_YET;
            release(comm, "listener", () -> transport.closeListen(listenComm));
        }
    }
}
