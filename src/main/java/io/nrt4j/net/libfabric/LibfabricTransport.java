package io.nrt4j.net.libfabric;

import io.nrt4j.NrtConfig;
import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.Placement;
import io.nrt4j.concurrent.TakeDown;
import io.nrt4j.net.NetTransport;
import java.io.IOException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The transport over libfabric: one endpoint, one control thread. See the package's description for the protocol.
 *
 * <p><b>Memory of failed transfers.</b> A request whose peer is gone is answered when the provider has given its memory up,
 * which a cancel makes it do at once for receives that no message has matched. What a provider does not give up within half
 * a second is answered without it: the operation's context and registration stay alive until the provider completes it or the
 * endpoint is closed. No byte moves there any more, since the connection with the peer, dead or not, is cut ({@link DataLinks}); where
 * that could not be done, the failure says that the memory must stay ({@link io.nrt4j.net.MemoryInUseException}).
 *
 * <p>Threads: as {@link NetTransport} says.
 */
final class LibfabricTransport implements NetTransport {
    static final String NAME = "libfabric";

    private static final int MAX_OPS = 1 << 15;
    private static final Logger LOG = LoggerFactory.getLogger(LibfabricTransport.class);
    /** How long the transport's close waits for the provider to give memory up. */
    private static final long CLOSE_NS = CLOSE_WAIT_NS;
    private static final long CLOSE_PAUSE_NS = 20_000;
    /** How long the end of receives is waited for when the peers have been told. */
    private static final long DRAIN_NS = TimeUnit.MILLISECONDS.toNanos(500);

    private final FabricSelection selection;
    private final FabricEndpoint endpoint;
    private final MessageEngine engine;
    private final ControlPlane control;
    private final RegistrationTable registrations;
    private final ShmRescue rescue = new ShmRescue();
    private final Thread shutdownHook = new Thread(this::closeAtExit, "nrt4j-fabric-shutdown");
    private final CountDownLatch closeDone = new CountDownLatch(1);
    /** Under the engine's lock. */
    private boolean closing;

    LibfabricTransport(final NrtConfig config) {
        final Libfabric libfabric = Libfabric.load(config.libfabricPath());
        selection = FabricSelection.choose(libfabric, config);
        FabricEndpoint opened = null;
        ControlPlane plane = null;
        boolean complete = false;
        try {
            opened = new FabricEndpoint(libfabric, selection.info(), rescue, MAX_OPS);
            engine = new MessageEngine(opened, EndpointTuning.of(selection.info()));
            plane = new ControlPlane(engine, selection.control());
            engine.attach(plane);
            registrations = new RegistrationTable(engine.lock, opened);
            // A process that exits in good order leaves no shm names behind, even if the application forgot to close.
            Runtime.getRuntime().addShutdownHook(shutdownHook);
            plane.start();
            complete = true;
        } catch (final IOException ex) {
            throw new NrtException(NrtStatus.FAILURE, "cannot listen for control connections at " + selection.control().getHostAddress()
                + ": " + ex.getMessage(), ex);
        } catch (final IllegalStateException ex) {
            throw new NrtException(NrtStatus.CLOSED, "no libfabric transport can be opened: " + ex.getMessage(), ex); // the JVM shuts down
        } finally {
            if (!complete) {
                undo(opened, plane);
            }
        }
        endpoint = opened;
        control = plane;
        LOG.info("libfabric transport over {}, eager up to {} bytes, called through {}", selection.info().describe(), engine.eagerLimit(),
            ForeignCalls.available() ? "java.lang.foreign" : "libffi");
    }

    /** A constructor that fails leaves nothing behind. */
    private void undo(final FabricEndpoint opened, final ControlPlane plane) {
        removeShutdownHook();
        final TakeDown ends = new TakeDown();
        if (plane != null) {
            ends.step(plane::close);
        }
        if (opened != null) {
            ends.step(opened::close);
        }
        ends.step(selection::close).end();
    }

    /** For tests that look at what is under way. */
    MessageEngine engine() {
        return engine;
    }

    @Override
    public String name() {
        return NAME;
    }

    @Override
    public long maxMessageBytes() {
        return endpoint.info().maxMessage();
    }

    @Override
    public int nicOf(final int lnc) {
        return 0;
    }

    @Override
    public long listen(final int nic, final byte[] handleOut) {
        return control.rendezvous().listen(handleOut);
    }

    @Override
    public long connect(final int nic, final byte[] handle) {
        engine.progress();
        return control.rendezvous().connect(handle);
    }

    @Override
    public void abandonConnect(final int nic, final byte[] handle) {
        control.rendezvous().abandon(handle);
    }

    @Override
    public long accept(final long listenComm) {
        engine.progress();
        return control.rendezvous().accept(listenComm);
    }

    @Override
    public long regMr(final long comm, final long address, final long sizeBytes, final Placement placement) {
        engine.checkOpen(comm);
        if (placement == Placement.DEVICE) {
            throw new NrtException(NrtStatus.INVALID, "libfabric transport: memory of a device cannot be registered, since short messages"
                + " are copied by the processor: use a tensor of the host, or the libnccom transport");
        }
        return registrations.register(comm, address, sizeBytes);
    }

    @Override
    public void deregMr(final long comm, final long registration) {
        registrations.deregister(registration);
    }

    @Override
    public long isend(final long comm, final long address, final long lengthBytes, final long registration) {
        checkLength(lengthBytes);
        return engine.post(true, comm, address, lengthBytes, registrations.covering(comm, registration, address, lengthBytes));
    }

    @Override
    public long irecv(final long comm, final long address, final long lengthBytes, final long registration) {
        checkLength(lengthBytes);
        return engine.post(false, comm, address, lengthBytes, registrations.covering(comm, registration, address, lengthBytes));
    }

    private void checkLength(final long lengthBytes) {
        if (lengthBytes < 0 || lengthBytes > endpoint.info().maxMessage()) {
            throw new NrtException(NrtStatus.INVALID, "a message of " + lengthBytes + " bytes; libfabric's " + endpoint.info().provider()
                + " carries 0 to " + endpoint.info().maxMessage());
        }
    }

    @Override
    public long iflush(final long comm, final long address, final long lengthBytes, final long registration) {
        registrations.covering(comm, registration, address, lengthBytes);
        return engine.postFence(comm);
    }

    @Override
    public long test(final long request) {
        return engine.test(request);
    }

    @Override
    public int progress() {
        return engine.tick();
    }

    @Override
    public boolean needsProgress() {
        return engine.needsProgress();
    }

    @Override
    public void beginClose(final long handle) {
        engine.lock.lock();
        try {
            final Comm comm = engine.comms().find(handle);
            if (comm != null && !comm.closed) {
                engine.closing().begin(comm);
            }
        } finally {
            engine.publishBusy();
            engine.lock.unlock();
        }
    }

    @Override
    public void closeSend(final long comm, final long deadlineNs) {
        closeComm(comm, true, deadlineNs);
    }

    @Override
    public void closeRecv(final long comm, final long deadlineNs) {
        closeComm(comm, false, deadlineNs);
    }

    private void closeComm(final long handle, final boolean send, final long deadlineNs) {
        final long startNs = System.nanoTime();
        engine.lock.lock();
        try {
            final Comm comm = engine.comms().find(handle);
            if (comm == null || comm instanceof SendComm != send || comm.closeTaken) {
                return;
            }
            comm.closeTaken = true;
            if (!comm.closed) {
                engine.closing().begin(comm);
            }
            final boolean ours = takeMemoryBack(comm, deadlineNs);
            control.announceClose(comm);
            registrations.endAll(handle);
            if (!ours) {
                throw new NrtException(NrtStatus.TIMEOUT, "close of " + comm + ": peer " + comm.peer.index
                    + (comm.peer.alive() ? " stands still or is slow, and " : " may live, though the connection with it is over, and ")
                    + selection.info().provider() + " has memory of its requests yet, after " + (System.nanoTime() - startNs) / 1_000_000
                    + " ms");
            }
        } finally {
            engine.publishBusy(); // first of all, closes the endpoint of a peer that died meanwhile
            engine.lock.unlock();
        }
    }

    /**
     * Waits until the provider has given up the memory of a closed communicator. It waits once for a peer that stands still, not once for
     * each of its communicators, and not for a dead one beyond what its requests had: see {@link DataLinks}.
     *
     * @return whether it has, or no byte of the peer can come or go any more.
     */
    private boolean takeMemoryBack(final Comm comm, final long deadlineNs) {
        final Peer peer = comm.peer;
        while (engine.closing().holdsMemory(comm)) {
            final long now = System.nanoTime();
            if (!peer.alive()) {
                if (now - peer.diedNs >= Outcomes.HOLD_NS + engine.links().patienceNs(peer)) {
                    return engine.links().severed(peer);
                }
            } else if (peer.standsStill() || now - deadlineNs >= 0) {
                peer.markStandingStill();
                return false;
            }
            engine.progressLocked();
            pauseUnlocked();
        }
        return !comm.leftInUse || engine.links().severed(peer);
    }

    @Override
    public void closeListen(final long listenComm) {
        control.rendezvous().closeListen(listenComm);
    }

    @Override
    public void close() {
        final boolean first;
        engine.lock.lock();
        try {
            first = !closing;
            closing = true;
        } finally {
            engine.lock.unlock();
        }
        if (!first) {
            awaitClose(); // the JVM's shutdown must not overtake the application's close
            return;
        }
        new TakeDown().step(this::giveUpReceives).step(control::close).step(this::closeEndpoint).end();
    }

    /** While peers still serve them: an endpoint that is closed with a long receive under way may take the JVM with it. */
    private void giveUpReceives() {
        engine.lock.lock();
        try {
            engine.closing().giveUpReceives();
            final long deadlineNs = System.nanoTime() + CLOSE_NS;
            while (endpoint.directReceives > 0 && System.nanoTime() - deadlineNs < 0) {
                engine.progressLocked();
                pauseUnlocked();
            }
        } finally {
            engine.publishBusy();
            engine.lock.unlock();
        }
    }

    /** Lets others have the lock for a moment. */
    private void pauseUnlocked() {
        engine.lock.unlock();
        LockSupport.parkNanos(CLOSE_PAUSE_NS);
        engine.lock.lock();
    }

    /** Whatever fails: what the provider has of our memory, the names of shared memory, and who waits for the end, go. */
    private void closeEndpoint() {
        final TakeDown ends = new TakeDown();
        engine.lock.lock();
        try {
            ends.step(this::drain).step(endpoint::close).step(engine.links()::close).step(selection::close);
        } finally {
            engine.lock.unlock();
        }
        ends.step(rescue::close);
        closeDone.countDown();
        if (Thread.currentThread() != shutdownHook) {
            removeShutdownHook();
        }
        ends.end();
    }

    private void drain() {
        engine.shutDown();
        final long deadlineNs = System.nanoTime() + DRAIN_NS;
        while (engine.drainReceives() && System.nanoTime() - deadlineNs < 0) {
            pauseUnlocked();
        }
    }

    private void removeShutdownHook() {
        try {
            Runtime.getRuntime().removeShutdownHook(shutdownHook);
        } catch (final IllegalStateException ex) {
            LOG.debug("closed during the JVM's shutdown");
        }
    }

    /** The JVM's end does not wait for a thread that is stuck inside the provider. */
    private void closeAtExit() {
        try {
            if (engine.lock.tryLock(CLOSE_NS, TimeUnit.NANOSECONDS)) {
                engine.lock.unlock();
                close();
            } else {
                LOG.warn("a call into libfabric's {} does not come back: the transport is not closed", selection.info().provider());
            }
        } catch (final InterruptedException ex) {
            Thread.currentThread().interrupt();
        }
    }

    private void awaitClose() {
        try {
            if (!closeDone.await(3 * CLOSE_NS, TimeUnit.NANOSECONDS)) {
                LOG.warn("the libfabric transport is still being closed by another thread");
            }
        } catch (final InterruptedException ex) {
            Thread.currentThread().interrupt();
        }
    }

    @Override
    public String toString() {
        return "libfabric over " + selection.info().provider() + ": " + engine.describe();
    }
}
