package io.nrt4j.sendrecv;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.NrtTensor;
import io.nrt4j.net.MemoryInUseException;
import io.nrt4j.net.NetTransport;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The application's half of a completion, on its own thread. Ports {@code enc_async_sr_test_request} (0xec860). */
final class Completer {
    private static final Logger LOG = LoggerFactory.getLogger(Completer.class);

    private Completer() {
    }

    /**
     * Looks at a request, and ends it if it is done or has failed.
     *
     * @return false when it is in flight beyond its time limit.
     * @throws NrtException INVALID_HANDLE for a stale handle; another status when the transfer failed.
     */
    static boolean test(final SendRecvRequest request, final RequestSlot slot) {
        final long seen = slot.stateWord();
        if (RequestSlot.generationOf(seen) != request.generation()) {
            throw stale(slot);
        }
        return switch (RequestSlot.statusOf(seen)) {
            case FREE -> throw stale(slot);
            case STASHED -> stillInFlight(request, slot);
            case OFI_POSTED -> testPosted(request, slot, seen);
            case ERROR -> throw endFailed(request, slot, seen);
        };
    }

    private static NrtException stale(final RequestSlot slot) {
        return new NrtException(NrtStatus.INVALID_HANDLE, "Request not in use: the handle is older than " + slot);
    }

    private static boolean stillInFlight(final SendRecvRequest request, final RequestSlot slot) {
        request.outcome(false, 0);
        final LncContext context = slot.comm().context();
        final long timeoutNs = context.requestTimeoutNs();
        return timeoutNs == 0 || context.clock().nanoTime() - slot.postedNs() <= timeoutNs;
    }

    /** Tests and, if it is over, frees the slot in one step under the data-path lock. */
    private static boolean testPosted(final SendRecvRequest request, final RequestSlot slot, final long seen) {
        final LockedNet net = slot.comm().context().net();
        final NrtTensor tensor;
        long sizeBytes = 0;
        NrtException failure = null;
        boolean inUse = false;
        net.lock();
        try {
            if (net.isClosed() || slot.stateWord() != seen) {
                throw stale(slot);
            }
            try {
                sizeBytes = net.transport().test(slot.netRequest());
                if (sizeBytes == NetTransport.PENDING) {
                    slot.startClock();
                    return stillInFlight(request, slot);
                }
            } catch (final RuntimeException ex) {
                failure = failed(slot, seen, ex); // while the slot still tells what it was
                inUse = ex instanceof MemoryInUseException;
            }
            slot.finish(seen);
            tensor = slot.clear();
        } finally {
            net.unlock();
        }
        final Communicator comm = slot.comm();
        comm.freelist().push(slot);
        if (inUse) {
            // Lost memory is better than memory that is somebody else's when a late message is written into it.
            LOG.warn("{} stays in place until the process ends, since a request on {} failed whose peer may still reach it",
                tensor.storage(), comm);
            tensor.storage().keepForever();
        } else {
            tensor.storage().release();
        }
        if (!comm.stash().isEmpty()) {
            comm.context().signal().wakeUp(); // there is room again for what waits
        }
        if (failure != null) {
            request.outcome(false, 0);
            throw failure;
        }
        if (LOG.isTraceEnabled()) {
            LOG.trace("Successfully tested request on {}: {} bytes", slot.comm(), sizeBytes);
        }
        request.outcome(true, sizeBytes);
        return true;
    }

    private static NrtException endFailed(final SendRecvRequest request, final RequestSlot slot, final long seen) {
        if (!slot.finish(seen)) {
            return stale(slot);
        }
        final NrtException failure = failed(slot, seen, slot.failure());
        final NrtTensor tensor = slot.clear();
        slot.comm().freelist().push(slot);
        tensor.storage().release();
        request.outcome(false, 0);
        return failure;
    }

    /** By whoever has the slot, before it is cleared. The state is the one that it ended in: after ERROR, it never was posted. */
    private static NrtException failed(final RequestSlot slot, final long state, final Throwable cause) {
        final Communicator comm = slot.comm();
        return new NrtException(NrtStatus.FAILURE, slot.lengthBytes() + " bytes on " + comm + " failed in " + RequestSlot.statusOf(state)
            + elapsed(slot) + ": " + (cause.getMessage() == null ? cause : cause.getMessage()), cause);
    }

    private static String elapsed(final RequestSlot slot) {
        return slot.postedNs() == RequestSlot.UNKNOWN_NS ? " when it was tested first"
            : " after " + TimeUnit.NANOSECONDS.toMillis(slot.comm().context().clock().nanoTime() - slot.postedNs()) + " ms";
    }
}
