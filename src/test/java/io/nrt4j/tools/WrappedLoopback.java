package io.nrt4j.tools;

import io.nrt4j.NrtConfig;
import io.nrt4j.Placement;
import io.nrt4j.net.NetTransport;
import io.nrt4j.net.NetTransportProvider;
import io.nrt4j.net.loopback.FaultPlan;
import io.nrt4j.net.loopback.LoopbackTransport;

/**
 * A loopback transport with faults, and with a line that flips a bit: the bytes of the receives of one length are changed as
 * they are tested complete.
 */
final class WrappedLoopback implements NetTransportProvider {
    private final FaultPlan plan;
    private final long flippedLength;

    WrappedLoopback(final FaultPlan plan, final long flippedLength) {
        this.plan = plan;
        this.flippedLength = flippedLength;
    }

    @Override
    public String name() {
        return "loopback";
    }

    @Override
    public String unavailabilityCause(final NrtConfig config) {
        return null;
    }

    @Override
    public String describe(final NrtConfig config) {
        return "with faults";
    }

    @Override
    public NetTransport create(final NrtConfig config) {
        return new Flipping(new LoopbackTransport(plan));
    }

    private final class Flipping implements NetTransport {
        private final NetTransport real;
        private long flippedRequest;
        private long flippedAddress;

        Flipping(final NetTransport real) {
            this.real = real;
        }

        @Override
        public long irecv(final long comm, final long address, final long lengthBytes, final long registration) {
            final long request = real.irecv(comm, address, lengthBytes, registration);
            if (lengthBytes == flippedLength && request != NOT_YET) {
                flippedRequest = request;
                flippedAddress = address;
            }
            return request;
        }

        @Override
        public long test(final long request) {
            final long size = real.test(request);
            if (size != PENDING && request == flippedRequest) {
                final com.sun.jna.Pointer at = new com.sun.jna.Pointer(flippedAddress);
                at.setByte(0, (byte) (at.getByte(0) ^ 1));
            }
            return size;
        }

        @Override
        public String name() {
            return real.name();
        }

        @Override
        public long maxMessageBytes() {
            return real.maxMessageBytes();
        }

        @Override
        public long listen(final int nic, final byte[] handleOut) {
            return real.listen(nic, handleOut);
        }

        @Override
        public long connect(final int nic, final byte[] handle) {
            return real.connect(nic, handle);
        }

        @Override
        public void abandonConnect(final int nic, final byte[] handle) {
            real.abandonConnect(nic, handle);
        }

        @Override
        public long accept(final long listenComm) {
            return real.accept(listenComm);
        }

        @Override
        public long regMr(final long comm, final long address, final long sizeBytes, final Placement placement) {
            return real.regMr(comm, address, sizeBytes, placement);
        }

        @Override
        public void deregMr(final long comm, final long registration) {
            real.deregMr(comm, registration);
        }

        @Override
        public long isend(final long comm, final long address, final long lengthBytes, final long registration) {
            return real.isend(comm, address, lengthBytes, registration);
        }

        @Override
        public long iflush(final long comm, final long address, final long lengthBytes, final long registration) {
            return real.iflush(comm, address, lengthBytes, registration);
        }

        @Override
        public int progress() {
            return real.progress();
        }

        @Override
        public boolean needsProgress() {
            return real.needsProgress();
        }

        @Override
        public void beginClose(final long comm) {
            real.beginClose(comm);
        }

        @Override
        public void closeSend(final long comm, final long deadlineNs) {
            real.closeSend(comm, deadlineNs);
        }

        @Override
        public void closeRecv(final long comm, final long deadlineNs) {
            real.closeRecv(comm, deadlineNs);
        }

        @Override
        public void closeListen(final long listenComm) {
            real.closeListen(listenComm);
        }

        @Override
        public void close() {
            real.close();
        }
    }
}
