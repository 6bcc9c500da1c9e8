package io.nrt4j.net.libnccom;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.concurrent.Uninterrupted;
import io.nrt4j.net.NetTransport;
import java.util.concurrent.TimeUnit;

/**
 * One communicator of the library: its pointer, its requests and registrations, and the memory that its data calls go through.
 *
 * <p>Threads: posts and tests hold the monitor during their call, since call memory and tables are the communicator's. Registering
 * can take long and does not hold it: {@link #enter} and {@link #leave} count who is inside, and a close waits for them, but not
 * for ever: when it gave up, the last of them ends the communicator. After {@link #beginClose} nothing new reaches the library for
 * this communicator but that.
 */
final class NccomComm {
    /** What a communicator is for. */
    enum Kind { SEND, RECV, LISTEN }

    private final Nccom nccom;
    private final Kind kind;
    private final long handle;
    private final long pointer;
    private final NativeCall call;
    private final RequestTable requests;
    private final RegistrationTable registrations;
    private boolean closing;
    private boolean left;
    private int inside;

    NccomComm(final Nccom nccom, final Kind kind, final long handle, final long pointer) {
        this.nccom = nccom;
        this.kind = kind;
        this.handle = handle;
        this.pointer = pointer;
        call = new NativeCall();
        requests = kind == Kind.LISTEN ? null : new RequestTable(handle);
        registrations = kind == Kind.LISTEN ? null : new RegistrationTable();
    }

    Kind kind() {
        return kind;
    }

    long handle() {
        return handle;
    }

    long pointer() {
        return pointer;
    }

    // ---- the data path

    /** Posts with NET_ISEND, NET_IRECV or NET_IFLUSH; the request's id, or NOT_YET. */
    synchronized long post(final NccomSymbol symbol, final long address, final int lengthBytes, final long registration) {
        checkOpen(symbol);
        final long mhandle = registrations.covering(registration, address, lengthBytes);
        if (mhandle == 0) {
            throw new NrtException(NrtStatus.INVALID, symbol.symbol() + " on " + this + ": "
                + registrations.describe(registration, address, lengthBytes));
        }
        if (!requests.hasRoom()) {
            return NetTransport.NOT_YET;
        }
        call.out(0, 0);
        final int status = switch (symbol) {
            case NET_ISEND -> nccom.neuronNetIsend(call, pointer, address, lengthBytes, mhandle, call.outAddress(0));
            case NET_IRECV -> nccom.neuronNetIrecv(call, pointer, address, lengthBytes, mhandle, call.outAddress(0));
            default -> nccom.neuronNetIflush(call, pointer, address, lengthBytes, mhandle, call.outAddress(0));
        };
        if (status != 0) {
            throw NccomFailure.of(symbol, "of " + lengthBytes + " bytes on " + this, status);
        }
        final long request = call.out(0);
        return request == 0 ? NetTransport.NOT_YET : requests.add(request, symbol, lengthBytes);
    }

    /** Tests a request; its size, or PENDING. */
    synchronized long test(final long request) {
        checkOpen(NccomSymbol.NET_TEST);
        final int slot = requests == null ? -1 : requests.find(request);
        if (slot < 0) {
            throw noRequest(request);
        }
        call.out(0, 0);
        call.out(1, 0);
        final int status = nccom.neuronNetTest(call, requests.pointer(slot), call.outAddress(0), call.outAddress(1));
        final int size = call.outInt(1);
        if (status == 0 && call.outInt(0) == 0) {
            return NetTransport.PENDING;
        }
        requests.remove(slot);
        if (status != 0 || size < 0) {
            // The size that the library tells with a failure is its own: of the peer's message, if that did not fit.
            throw new NrtException(NrtStatus.FAILURE, NccomSymbol.NET_TEST.symbol() + " " + requests.describe(slot) + " on " + this
                + " answered " + NccomFailure.name(status) + ", and told the size " + size);
        }
        return size;
    }

    static NrtException noRequest(final long request) {
        return new NrtException(NrtStatus.INVALID_HANDLE, NccomSymbol.NET_TEST.symbol() + ": 0x" + Long.toHexString(request)
            + " is no request in flight");
    }

    private void checkOpen(final NccomSymbol symbol) {
        if (closing) {
            throw new NrtException(NrtStatus.CLOSED, symbol.symbol() + ": " + this + " was closed");
        }
    }

    // ---- the control path

    /** Begins a call that does not hold the monitor. */
    synchronized void enter(final NccomSymbol symbol) {
        checkOpen(symbol);
        inside++;
    }

    /** Ends such a call; true when the close has given up on it, and the communicator is the caller's to end. */
    synchronized boolean leave() {
        inside--;
        notifyAll();
        return left && inside == 0;
    }

    /** Between enter and leave: adds a registration. */
    synchronized long addRegistration(final long mhandle, final long address, final long sizeBytes) {
        return registrations.add(mhandle, address, sizeBytes);
    }

    /** Between enter and leave: takes a registration out, so that nothing is posted on it any more. */
    synchronized long removeRegistration(final long registration) {
        return registrations.remove(registration);
    }

    /**
     * No call begins any more; waits for those that are under way, which the library cannot be told to end.
     *
     * @return false if one did not come back in time: the last one is told by {@link #leave} to end the communicator.
     */
    synchronized boolean beginClose(final long limitNs) {
        closing = true;
        left = !Uninterrupted.await(limitNs, leftNs -> {
            if (inside > 0) {
                TimeUnit.NANOSECONDS.timedWait(this, leftNs);
            }
            return inside == 0;
        });
        return !left;
    }

    /** Calls of the control path that are under way. */
    synchronized int inside() {
        return inside;
    }

    /** After beginClose: a registration that is left, or 0. */
    synchronized long nextRegistration() {
        return registrations == null ? 0 : registrations.removeAny();
    }

    /** For who ends the communicator: the call memory. */
    NativeCall call() {
        return call;
    }

    @Override
    public String toString() {
        return kind.name().toLowerCase(java.util.Locale.ROOT) + " communicator 0x" + Long.toHexString(handle);
    }
}
