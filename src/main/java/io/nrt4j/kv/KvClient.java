package io.nrt4j.kv;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.concurrent.NanoClock;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.SocketException;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.security.SecureRandom;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One request to a key-value store ({@code kv_store_client_handle}) and its non-blocking state machine
 * ({@code kv_store_make_progress}).
 *
 * <pre>
 *     INIT ──connect──▶ CONNECTING ──▶ SENDING ──▶ RECEIVING ──▶ CLOSING (completed)
 *      ▲ ▲                  │           ▲  │           │ │
 *      │ └─ not reachable ──┘           │  │           │ │
 *      │                                └──┼─NOT_FOUND─┘ │      any ──▶ FAILED
 *      └───────────── cut ─────────────────┴─────────────┘
 * </pre>
 *
 * <p>{@link #step()} makes at most one socket operation. The ways back (not reachable, cut or silent, not found) are taken after a
 * pause that grows from 100 µs to 10 ms; until it is over a step makes no system call. Only connections that are cut are counted,
 * against {@link KvOptions#lossBudget()}: a host that cannot be reached yet, or is silent, may come. The client has no time limit of its
 * own: its owner has, and {@link #describe()} says what to write when it passes.
 *
 * <p>Threads: one at a time.
 */
public final class KvClient implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(KvClient.class);
    private static final SecureRandom RANDOM = new SecureRandom();
    private static final byte[] NO_VALUE = {};
    private static final long MIN_PAUSE_NS = TimeUnit.MICROSECONDS.toNanos(100);
    private static final long MAX_PAUSE_NS = TimeUnit.MILLISECONDS.toNanos(10);
    /** Silence after which a connection is given up for a new one: its host may have died without a word, and be back. */
    private static final long SILENCE_NS = TimeUnit.SECONDS.toNanos(5);

    /** State of a request ({@code kv_store_client_op_state}). */
    public enum State {
        /** Not connected. */
        INIT,
        /** The connection is under way. */
        CONNECTING,
        /** The request is being written. */
        SENDING,
        /** The answer is being read. */
        RECEIVING,
        /** The answer is in hand, the end-request is being written; {@link KvClient#isDone()} tells when it was. */
        CLOSING,
        /** Over, without an answer. */
        FAILED
    }

    /** Told the value of a GET or TAKE, from within {@link KvClient#step()}. */
    @FunctionalInterface
    public interface Callback {
        /**
         * A value has come.
         *
         * @param buffer holds it; belongs to the client and must not be kept.
         * @param offset where it begins.
         * @param length its bytes.
         */
        void onValue(byte[] buffer, int offset, int length);
    }

    private final InetSocketAddress server;
    private final int opcode;
    private final byte[] key;
    private final byte[] value;
    private final boolean retryOnNotFound;
    private final Callback callback;
    private final NanoClock clock;
    private final KvSeal seal;
    private final int lossBudget;
    private final long startNs;
    private final byte[] frame = new byte[KvFrame.LENGTH];
    private final ByteBuffer buffer = ByteBuffer.wrap(frame);

    private State state = State.INIT;
    private boolean completed;
    private boolean found;
    private long serverEpoch;
    private NrtException failure;
    private SocketChannel channel;
    private long nonce;
    private int attempts;
    private int losses;
    private long connectPauseNs = MIN_PAUSE_NS;
    private long notFoundPauseNs = MIN_PAUSE_NS;
    private boolean pausing;
    private long resumeNs;
    private long stateSinceNs;
    private String lastReason = "nothing yet";
    /** Why it last had to begin again; kept while it tries. */
    private String lastSetback;

    private KvClient(
        final InetSocketAddress server, final int opcode, final byte[] key, final byte[] value, final boolean retryOnNotFound,
        final Callback callback, final KvOptions options) {
        if (server.isUnresolved()) {
            throw new NrtException(NrtStatus.INVALID, KvFrame.name(opcode) + " at " + KvAddress.text(server) + ": not an IP address");
        }
        if (key.length == 0 || key.length > KvFrame.MAX_KEY_LENGTH || value.length > KvFrame.MAX_VALUE_LENGTH) {
            throw new NrtException(NrtStatus.INVALID, KvFrame.name(opcode) + " at " + KvAddress.text(server) + ": a key has 1 to "
                + KvFrame.MAX_KEY_LENGTH + " bytes, not " + key.length + ", and a value at most " + KvFrame.MAX_VALUE_LENGTH + ", not "
                + value.length);
        }
        this.server = server;
        this.opcode = opcode;
        this.key = key.clone();
        this.value = value.clone();
        this.retryOnNotFound = retryOnNotFound;
        this.callback = callback;
        clock = options.clock();
        seal = new KvSeal(options.secret());
        lossBudget = options.lossBudget();
        startNs = clock.nanoTime();
        nonce = RANDOM.nextLong();
    }

    /**
     * Begins to store a value ({@code kv_store_set}).
     *
     * @param server  whose store.
     * @param key     1 to {@link KvFrame#MAX_KEY_LENGTH} bytes, copied.
     * @param value   at most {@link KvFrame#MAX_VALUE_LENGTH} bytes, copied.
     * @param options secret, clock, budget.
     * @return a client in state INIT.
     * @throws NrtException INVALID if key or value are too long.
     */
    public static KvClient set(final InetSocketAddress server, final byte[] key, final byte[] value, final KvOptions options) {
        return new KvClient(server, KvFrame.SET, key, value, false, null, options);
    }

    /**
     * Begins to read a value ({@code kv_store_get}).
     *
     * @param server          whose store.
     * @param key             1 to {@link KvFrame#MAX_KEY_LENGTH} bytes, copied.
     * @param take            whether the value is removed as it is read.
     * @param retryOnNotFound whether to ask again until the key is there.
     * @param callback        told the value.
     * @param options         secret, clock, budget.
     * @return a client in state INIT.
     * @throws NrtException INVALID if the key is too long.
     */
    public static KvClient get(
        final InetSocketAddress server, final byte[] key, final boolean take, final boolean retryOnNotFound, final Callback callback,
        final KvOptions options) {
        return new KvClient(server, take ? KvFrame.TAKE : KvFrame.GET, key, NO_VALUE, retryOnNotFound,
            Objects.requireNonNull(callback, "callback"), options);
    }

    /**
     * Makes at most one socket operation of progress. Never blocks, never throws for a run-time condition.
     *
     * @return more than 0 if it got further; 0 if it waits, tries again later, or is done.
     */
    public int step() {
        if (isDone()) {
            return 0;
        }
        if (pausing) {
            if (clock.nanoTime() - resumeNs < 0) {
                return 0;
            }
            pausing = false;
        }
        return switch (state) {
            case INIT -> connect();
            case CONNECTING -> finishConnect();
            case SENDING -> send();
            case RECEIVING -> receive();
            case CLOSING -> end();
            case FAILED -> 0;
        };
    }

    private int connect() {
        attempts++;
        try {
            channel = SocketChannel.open(KvAddress.family(server));
            channel.configureBlocking(false);
            channel.setOption(StandardSocketOptions.TCP_NODELAY, true);
        } catch (final IOException | UnsupportedOperationException ex) {
            return fail("cannot connect: " + ex.getMessage(), ex); // no descriptor left, or no such family of addresses
        }
        try {
            if (channel.connect(server)) {
                return connected();
            }
            become(State.CONNECTING, "connecting");
            return 1;
        } catch (final SocketException ex) {
            return refused(KvAddress.reason(ex));
        } catch (final IOException | RuntimeException ex) {
            return fail("cannot connect: " + ex.getMessage(), ex);
        }
    }

    private int finishConnect() {
        try {
            return channel.finishConnect() ? connected() : isSilent() ? refused("no answer to the connection in 5 s") : 0;
        } catch (final SocketException ex) {
            // Refused, or no route to the host yet; or reset, as the kernel had connected it for a server that died before it could accept.
            return refused(KvAddress.reason(ex));
        } catch (final IOException ex) {
            return fail("cannot connect: " + KvAddress.reason(ex), ex);
        }
    }

    private int connected() throws IOException {
        // Without a listener, a socket whose own port happens to be the one it calls is connected with itself.
        if (server.equals(channel.getLocalAddress())) {
            return refused("connected with itself");
        }
        beginToSend("connected");
        return 1;
    }

    /**
     * The server cannot be reached, yet, or says nothing: this says nothing about who it is, so it is tried until the owner's time limit.
     */
    private int refused(final String reason) {
        closeChannel();
        lastSetback = reason;
        become(State.INIT, reason);
        connectPauseNs = pause(connectPauseNs);
        return 0;
    }

    private void beginToSend(final String reason) {
        // A new nonce each time: the answer to an earlier attempt is not an answer to this one.
        nonce++;
        KvFrame.encode(frame, opcode, key, value, 0, nonce);
        seal.seal(frame);
        buffer.clear();
        become(State.SENDING, reason);
    }

    private int send() {
        try {
            final int written = channel.write(buffer);
            if (!buffer.hasRemaining()) {
                buffer.clear();
                become(State.RECEIVING, "request sent");
            }
            return written == 0 && isSilent() ? refused("it takes no request for 5 s") : written;
        } catch (final IOException ex) {
            return lost(KvAddress.reason(ex), ex);
        }
    }

    private boolean isSilent() {
        return clock.nanoTime() - stateSinceNs > SILENCE_NS;
    }

    private int receive() {
        final int read;
        try {
            read = channel.read(buffer);
        } catch (final IOException ex) {
            return lost(KvAddress.reason(ex), ex);
        }
        if (read < 0) {
            return lost("connection closed by server after " + buffer.position() + " bytes", null);
        }
        final String fault = KvFrame.prefixFault(frame, buffer.position(), false);
        if (fault != null) {
            return fail("what answers is not a key-value store: " + fault, null);
        }
        if (!buffer.hasRemaining()) {
            return answered();
        }
        return read == 0 && isSilent() ? refused("no answer for 5 s") : read;
    }

    /** The connection was cut: by a server that died, or by something that is none. */
    private int lost(final String reason, final IOException cause) {
        losses++;
        if (losses > lossBudget) {
            return fail(reason + (losses == 1 ? "" : ", " + losses + " times in a row"), cause);
        }
        return refused(reason);
    }

    private int answered() {
        final String fault = KvFrame.fault(frame, false);
        if (fault != null) {
            return fail("what answers is not a key-value store: " + fault, null);
        }
        final String sealFault = seal.fault(frame);
        if (sealFault != null) {
            return fail("its answer is refused: " + sealFault, null);
        }
        if (KvFrame.nonce(frame) != nonce) {
            return fail("its answer is refused: it answers another request", null);
        }
        losses = 0;
        connectPauseNs = MIN_PAUSE_NS;
        serverEpoch = KvFrame.serverEpoch(frame);
        final int answer = KvFrame.opcode(frame);
        if (answer == opcode) {
            return accept();
        }
        return switch (answer) {
            case KvFrame.NOT_FOUND -> notFound();
            case KvFrame.ERROR -> fail("server error: " + KvFrame.valueText(frame), null);
            default -> fail("it answers " + KvFrame.name(answer), null);
        };
    }

    private int accept() {
        found = true;
        if (callback != null) {
            try {
                callback.onValue(frame, KvFrame.VALUE_OFFSET, KvFrame.valueLength(frame));
            } catch (final RuntimeException ex) {
                return fail("its value was not accepted: " + ex.getMessage(), ex);
            }
        }
        beginToEnd("answered");
        return 1;
    }

    private int notFound() {
        if (opcode == KvFrame.SET) {
            return fail("it answers NOT_FOUND", null);
        }
        if (!retryOnNotFound) {
            beginToEnd("not found");
            return 1;
        }
        lastSetback = "not found";
        beginToSend("not found");
        notFoundPauseNs = pause(notFoundPauseNs);
        return 0;
    }

    private void beginToEnd(final String reason) {
        nonce++;
        KvFrame.encode(frame, KvFrame.END, 0, nonce);
        seal.seal(frame);
        buffer.clear();
        become(State.CLOSING, reason);
    }

    private int end() {
        int written = 0;
        try {
            written = channel.write(buffer);
        } catch (final IOException ex) {
            // The answer is in hand: a server that does not wait for the goodbye takes nothing away.
            lastReason = KvAddress.reason(ex);
            buffer.position(buffer.limit());
        }
        if (buffer.hasRemaining()) {
            return written;
        }
        completed = true;
        closeChannel();
        return 1;
    }

    private long pause(final long pauseNs) {
        pausing = true;
        resumeNs = clock.nanoTime() + pauseNs;
        return Math.min(2 * pauseNs, MAX_PAUSE_NS);
    }

    private void become(final State next, final String reason) {
        if (LOG.isTraceEnabled()) {
            LOG.trace("{} '{}' at {}: {} -> {}: {}", KvFrame.name(opcode), keyText(), KvAddress.text(server), state, next, reason);
        }
        state = next;
        stateSinceNs = clock.nanoTime();
        lastReason = reason;
    }

    private int fail(final String reason, final Throwable cause) {
        closeChannel();
        final String text = request() + " failed in " + state + " after " + elapsedMs() + " ms: " + reason;
        become(State.FAILED, reason);
        failure = new NrtException(NrtStatus.FAILURE, text, cause);
        return 1;
    }

    private void closeChannel() {
        final SocketChannel old = channel;
        channel = null;
        if (old != null) {
            try {
                old.close();
            } catch (final IOException ex) {
                LOG.debug("closing a connection to {} failed", KvAddress.text(server), ex);
            }
        }
    }

    private String request() {
        return "KV " + KvFrame.name(opcode) + " '" + keyText() + "' at " + KvAddress.text(server);
    }

    private String keyText() {
        return KvFrame.printable(new String(key, StandardCharsets.ISO_8859_1));
    }

    private long elapsedMs() {
        return TimeUnit.NANOSECONDS.toMillis(clock.nanoTime() - startNs);
    }

    /**
     * Whether it is over, well or badly.
     *
     * @return true once {@link #step()} does nothing any more.
     */
    public boolean isDone() {
        return completed || state == State.FAILED;
    }

    /**
     * Whether it ended without an answer.
     *
     * @return true if {@link #failure()} says why.
     */
    public boolean isFailed() {
        return state == State.FAILED;
    }

    /**
     * Why it failed: operation, host and port, state, elapsed time, first cause.
     *
     * @return null unless it failed.
     */
    public NrtException failure() {
        return failure;
    }

    /**
     * Whether the request was granted: the value was stored, or was there.
     *
     * @return false until the answer has come, and after NOT_FOUND.
     */
    public boolean found() {
        return found;
    }

    /**
     * Which server answered; every server has another.
     *
     * @return 0 until an answer has come.
     */
    public long serverEpoch() {
        return serverEpoch;
    }

    /**
     * Present state.
     *
     * @return CLOSING also once it is completed.
     */
    public State state() {
        return state;
    }

    /**
     * The request and how far it is, for the text of whoever ran out of patience with it.
     *
     * @return operation, host and port, state, elapsed time, attempts, last reason.
     */
    public String describe() {
        return request() + ": " + (completed ? "completed" : state) + " after " + elapsedMs() + " ms and " + attempts
            + " connection attempts, last: " + lastReason
            + (lastSetback == null || lastSetback.equals(lastReason) ? "" : ", before: " + lastSetback);
    }

    /** Frees the socket. A client that is not done fails. Idempotent. */
    @Override
    public void close() {
        if (!isDone()) {
            fail("closed by its owner", null);
        }
        closeChannel();
    }

    @Override
    public String toString() {
        return describe();
    }
}
