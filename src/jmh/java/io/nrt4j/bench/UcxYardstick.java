package io.nrt4j.bench;

import java.nio.ByteBuffer;
import org.openucx.jucx.UcxCallback;
import org.openucx.jucx.UcxUtils;
import org.openucx.jucx.ucp.UcpContext;
import org.openucx.jucx.ucp.UcpEndpoint;
import org.openucx.jucx.ucp.UcpEndpointParams;
import org.openucx.jucx.ucp.UcpParams;
import org.openucx.jucx.ucp.UcpRequest;
import org.openucx.jucx.ucp.UcpRequestParams;
import org.openucx.jucx.ucp.UcpWorker;
import org.openucx.jucx.ucp.UcpWorkerParams;
import org.openucx.jucx.ucs.UcsConstants;

/** UCX through its own Java binding: tagged messages, one worker, polled. */
public final class UcxYardstick extends Yardstick {
    private static final long TAG = 1;
    private static final int TOKEN_BYTES = 8;
    private static final int MAX_BYTES = 16 << 20;

    private final UcpWorker worker;
    private final UcpEndpoint endpoint;
    private final ByteBuffer out = ByteBuffer.allocateDirect(MAX_BYTES);
    private final ByteBuffer in = ByteBuffer.allocateDirect(MAX_BYTES);
    private final long outAddress = UcxUtils.getAddress(out);
    private final long inAddress = UcxUtils.getAddress(in);
    // Without it, each call asks what kind of memory it is.
    private final UcpRequestParams host = new UcpRequestParams().setMemoryType(UcsConstants.MEMORY_TYPE.UCS_MEMORY_TYPE_HOST);
    private final UcxCallback callback = new UcxCallback() {
        @Override
        public void onError(final int status, final String text) {
            throw new IllegalStateException("UCX: " + status + " " + text);
        }
    };
    private UcpRequest receive;

    private UcxYardstick(final UcpWorker worker, final UcpEndpoint endpoint) {
        this.worker = worker;
        this.endpoint = endpoint;
    }

    private UcpRequest send(final long offset, final int sizeBytes) {
        return endpoint.sendTaggedNonBlocking(outAddress + offset, sizeBytes, TAG, callback, host);
    }

    private UcpRequest receive(final long offset, final int sizeBytes) {
        return worker.recvTaggedNonBlocking(inAddress + offset, sizeBytes, TAG, -1L, callback, host);
    }

    private void finish(final UcpRequest request) throws Exception {
        while (!request.isCompleted()) {
            if (worker.progress() == 0) {
                Thread.onSpinWait();
            }
        }
    }

    @Override
    void begin(final int sizeBytes) throws Exception {
        if (sizeBytes > 0) {
            receive = receive(0, sizeBytes);
        } else {
            // The receive that was posted for a round that does not come.
            finish(send(0, 1));
            finish(receive);
        }
    }

    @Override
    void roundTrip(final int sizeBytes) throws Exception {
        final UcpRequest sent = send(0, sizeBytes);
        finish(receive);
        receive = receive(0, sizeBytes);
        finish(sent);
    }

    @Override
    void answer(final int sizeBytes) throws Exception {
        finish(receive);
        receive = receive(0, sizeBytes);
        finish(send(0, sizeBytes));
    }

    @Override
    void stream(final int sizeBytes, final int window, final int warmUp, final int total, final Runnable warm) throws Exception {
        final UcpRequest[] requests = new UcpRequest[window];
        for (int i = 0; i < total; i++) {
            final int slot = i % window;
            if (i >= window) {
                finish(requests[slot]);
            }
            if (i == warmUp) {
                warm.run();
            }
            requests[slot] = send((long) slot * sizeBytes, sizeBytes);
        }
        for (final UcpRequest request : requests) {
            finish(request);
        }
        finish(receive(0, TOKEN_BYTES));
    }

    @Override
    void drain(final int sizeBytes, final int window, final int total) throws Exception {
        final UcpRequest[] requests = new UcpRequest[window];
        for (int i = 0; i < window; i++) {
            requests[i] = receive((long) i * sizeBytes, sizeBytes);
        }
        for (int i = 0; i < total; i++) {
            final int slot = i % window;
            finish(requests[slot]);
            if (i + window < total) {
                requests[slot] = receive((long) slot * sizeBytes, sizeBytes);
            }
        }
        finish(send(0, TOKEN_BYTES));
    }

    /**
     * Runs an end.
     *
     * @param args {@code server} or {@code client}, and a port.
     * @throws Exception when it fails.
     */
    public static void main(final String[] args) throws Exception {
        final boolean client = "client".equals(args[0]);
        try (UcpContext context = new UcpContext(new UcpParams().requestTagFeature());
            UcpWorker worker = context.newWorker(new UcpWorkerParams());
            var socket = connect(client, Integer.parseInt(args[1]))) {
            final ByteBuffer address = worker.getAddress();
            final byte[] mine = new byte[address.remaining()];
            address.get(mine);
            final byte[] theirs = swap(socket, mine);
            final ByteBuffer peer = ByteBuffer.allocateDirect(theirs.length);
            peer.put(theirs).flip();
            final UcpEndpoint endpoint = worker.newEndpoint(new UcpEndpointParams().setUcpAddress(peer));
            final UcxYardstick yardstick = new UcxYardstick(worker, endpoint);
            yardstick.run(client);
            // Neither end goes while the other still needs it to make progress.
            socket.getOutputStream().write(1);
            while (socket.getInputStream().available() == 0) {
                worker.progress();
            }
            System.out.flush();
            Runtime.getRuntime().halt(0); // closing endpoints of a peer that is gone takes long, and is not measured
        }
    }
}
