package io.nrt4j.sendrecv;

import io.nrt4j.IpLiteral;
import io.nrt4j.NrtConfig;
import io.nrt4j.NrtSetting;
import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.NrtTensor;
import io.nrt4j.concurrent.NanoClock;
import io.nrt4j.net.NetTransportProvider;
import io.nrt4j.net.NetTransports;
import java.net.InetAddress;
import java.util.Arrays;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Asynchronous send and receive of tensors between logical neuron cores: the eleven functions of
 * {@code nrt/nrt_async_sendrecv.h}.
 *
 * <p>An instance is one process of the original: it owns the 128 LNC contexts. Several instances may live in one JVM, as
 * several hosts or as several processes of one host.
 *
 * <p>Every function answers an {@link NrtStatus} and throws nothing for a run-time condition; why a call failed is in the log
 * and, as text, in {@link #lastError()} of the calling thread. A call that is refused changes nothing.
 *
 * <p>The usual sequence: {@link #init}; {@link #connect} on the sending and {@link #accept} on the receiving side;
 * {@link #testComm} until connected; {@link #sendTensor} and {@link #recvTensor}; {@link #testRequest} until done;
 * {@link #flush} before received data is used; {@link #close(int)}.
 *
 * <p>Threads: every function may be called by any thread, different LNCs, communicators and requests at the same time; one
 * request is tested by one thread at a time. Each LNC has one daemon service thread, which connects and registers memory;
 * posting and testing happen on the caller's thread and never wait for a peer. They allocate nothing but the text of a failure, and
 * what a lock needs when another thread holds it at that moment. Per communicator, requests that one thread posts are matched in the
 * order in which it posted them.
 *
 * <p>Per-LNC state is, as in the original, three arrays of 128: contexts (written under the init lock, read by every call),
 * statuses (under the init lock) and init locks.
 */
public final class NrtAsyncSendRecv implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(NrtAsyncSendRecv.class);

    /** What init and close make of an LNC. */
    private enum LncStatus { UNINITIALIZED, INITIALIZED, CLOSE_FAILED }

    private final NrtConfig config;
    private final NanoClock clock;
    private final Consumer<LncContext> starter;
    private final EngineServices services;
    private final AtomicReferenceArray<LncContext> contexts = new AtomicReferenceArray<>(NrtConfig.MAX_LNCS);
    private final LncStatus[] statuses = new LncStatus[NrtConfig.MAX_LNCS];
    private final ReentrantLock[] initLocks = new ReentrantLock[NrtConfig.MAX_LNCS];
    private final ThreadLocal<LastError> lastError = ThreadLocal.withInitial(LastError::new);

    /**
     * An instance over the transport that the configuration names. Nothing is opened before the first {@link #init}.
     *
     * @param config configuration.
     * @throws NrtException INVALID when there is no transport of that name.
     */
    public NrtAsyncSendRecv(final NrtConfig config) {
        this(config, NetTransports.byName(config.transport()));
    }

    /**
     * An instance over a transport of the caller's.
     *
     * @param config   configuration; its transport name is not looked at.
     * @param provider makes the transport at the first {@link #init}.
     */
    public NrtAsyncSendRecv(final NrtConfig config, final NetTransportProvider provider) {
        this(config, provider, NanoClock.SYSTEM, LncContext::start);
    }

    /** For tests: with a clock of their own, and service threads that they play themselves or that do not start. */
    NrtAsyncSendRecv(
        final NrtConfig config, final NetTransportProvider provider, final NanoClock clock, final Consumer<LncContext> starter) {
        this.config = Objects.requireNonNull(config, "config");
        this.clock = clock;
        this.starter = starter;
        services = new EngineServices(config, Objects.requireNonNull(provider, "provider"), clock);
        Arrays.fill(statuses, LncStatus.UNINITIALIZED);
        Arrays.setAll(initLocks, lnc -> new ReentrantLock());
    }

    /**
     * Most communicators of one LNC. Ports {@code nrt_async_sendrecv_get_max_num_communicators_per_lnc}.
     *
     * @param num out-parameter of at least one element.
     * @return SUCCESS, or FAILURE without a place for the answer.
     */
    public NrtStatus getMaxNumCommunicatorsPerLnc(final int[] num) {
        return answer(num, LncContext.MAX_COMMUNICATORS);
    }

    /**
     * Most pending requests of one communicator. Ports {@code nrt_async_sendrecv_get_max_num_pending_request}.
     *
     * @param num out-parameter of at least one element.
     * @return SUCCESS, or FAILURE without a place for the answer.
     */
    public NrtStatus getMaxNumPendingRequest(final int[] num) {
        return answer(num, Communicator.MAX_PENDING_REQUESTS);
    }

    private NrtStatus answer(final int[] num, final int value) {
        if (num == null || num.length == 0) {
            return refuse(NrtStatus.FAILURE, "no place for the answer");
        }
        num[0] = value;
        return NrtStatus.SUCCESS;
    }

    /**
     * Initialises an LNC: starts its service thread, sets up its flush buffer, and, for the first one, finds or starts this
     * host's key-value server. Bounded by the configured init time limit, but for the time in which the first one's transport is opened,
     * which nobody can cut short; one that fails may take the close time limit more. Ports {@code nrt_async_sendrecv_init}.
     *
     * @param lnc 0 to 127.
     * @return SUCCESS; FAILURE when the LNC is out of range or initialised already, when its last close failed, when a gate is
     *     closed (not enabled, no bootstrap port), or when transport, server or flush buffer cannot be set up.
     */
    public NrtStatus init(final int lnc) {
        if (!isLnc(lnc)) {
            return refuse(NrtStatus.FAILURE, "init: " + outOfRange("lnc", lnc));
        }
        initLocks[lnc].lock();
        try {
            final String gate = closedGate(lnc);
            if (gate != null) {
                return refuse(NrtStatus.FAILURE, "init of lnc " + lnc + ": " + gate);
            }
            return open(lnc);
        } finally {
            initLocks[lnc].unlock();
        }
    }

    private String closedGate(final int lnc) {
        if (!config.asyncSendRecvEnabled()) {
            return "asynchronous send and receive is not enabled: set "
                + NrtSetting.ASYNC_SENDRECV_ENABLED.variable() + "=1";
        }
        if (config.bootstrapPort() == 0) {
            return "no port for the key-value store: set " + NrtSetting.BOOTSTRAP_PORT.variable()
                + " to the same free port on every host";
        }
        return switch (statuses[lnc]) {
            case UNINITIALIZED -> null;
            case INITIALIZED -> "it is initialised already";
            case CLOSE_FAILED -> "its last close failed; only closing the whole instance clears that";
        };
    }

    private NrtStatus open(final int lnc) {
        final long startNs = System.nanoTime();
        boolean acquired = false;
        LncContext context = null;
        try {
            final long deadlineNs = startNs + config.initTimeout().toNanos();
            services.acquire(deadlineNs);
            acquired = true;
            context = new LncContext(
                this, lnc, config, services.transport(), services.rendezvous(deadlineNs), clock, deadlineNs);
            starter.accept(context);
            contexts.set(lnc, context);
            statuses[lnc] = LncStatus.INITIALIZED;
            LOG.info("lnc {} is initialised over {}", lnc, services.transport().name());
            return NrtStatus.SUCCESS;
        } catch (final Throwable ex) { // no thread left is an OutOfMemoryError, a broken native library a LinkageError
            if (context != null) {
                closeContext(context);
            } else if (acquired) {
                services.release();
                services.awaitClosed(System.nanoTime() + config.closeTimeout().toNanos());
            }
            LOG.debug("init of lnc {} failed", lnc, ex);
            return refuse(NrtStatus.FAILURE, "init of lnc " + lnc + " failed after "
                + (System.nanoTime() - startNs) / 1_000_000 + " ms: " + textOf(ex));
        }
    }

    /**
     * Closes an LNC whatever its state, within the configured close time limit: afterwards all its communicators and requests
     * are dead, also when the answer is FAILURE. What the transport does not give back in time, a thread of its own goes on
     * waiting for; until then tensors of requests stay in use, and their memory with them. Ports {@code nrt_async_sendrecv_close}.
     *
     * @param lnc 0 to 127.
     * @return SUCCESS; FAILURE when the LNC is not initialised, when a communicator was not connected yet, when requests were
     *     in flight, when the service thread had failed, or when the transport did not come back in time. After a
     *     FAILURE of an initialised LNC, {@link #init} answers FAILURE until the instance was closed.
     */
    public NrtStatus close(final int lnc) {
        if (!isLnc(lnc)) {
            return refuse(NrtStatus.FAILURE, "close: " + outOfRange("lnc", lnc));
        }
        initLocks[lnc].lock();
        try {
            final LncContext context = contexts.get(lnc);
            if (context == null) {
                return refuse(NrtStatus.FAILURE, "close of lnc " + lnc + ": it is not initialised");
            }
            final String trouble = closeContext(context);
            contexts.set(lnc, null);
            statuses[lnc] = trouble == null ? LncStatus.UNINITIALIZED : LncStatus.CLOSE_FAILED;
            return trouble == null ? NrtStatus.SUCCESS
                : refuse(NrtStatus.FAILURE, "close of lnc " + lnc + ": " + trouble + "; it is closed all the same");
        } finally {
            initLocks[lnc].unlock();
        }
    }

    /** Closes a context, and gives its use of the services back; null, or what was not in order. */
    private String closeContext(final LncContext context) {
        final long timeoutNs = config.closeTimeout().toNanos();
        final long deadlineNs = System.nanoTime() + timeoutNs;
        String trouble;
        try {
            trouble = context.close(timeoutNs, services::release);
        } catch (final RuntimeException ex) {
            trouble = textOf(ex);
        }
        final boolean closed = services.awaitClosed(deadlineNs);
        return closed || trouble != null ? trouble
            : "the transport was not closed within " + timeoutNs / 1_000_000 + " ms; a thread of its own goes on with it";
    }

    /** Closes every LNC, and clears what failed closes left behind: afterwards the instance is as new. Idempotent. */
    @Override
    public void close() {
        for (int lnc = 0; lnc < NrtConfig.MAX_LNCS; lnc++) {
            initLocks[lnc].lock();
            try {
                if (contexts.get(lnc) != null) {
                    close(lnc);
                }
                statuses[lnc] = LncStatus.UNINITIALIZED;
            } finally {
                initLocks[lnc].unlock();
            }
        }
    }

    /**
     * Starts to connect for sending; never blocks. Ports {@code nrt_async_sendrecv_connect}.
     *
     * @param peerIp  IPv4 or IPv6 literal of the receiving host; names are refused.
     * @param peerLnc receiving LNC, 0 to 127.
     * @param lnc     own LNC, 0 to 127.
     * @param comm    filled with the new communicator.
     * @return SUCCESS; RESOURCE at 128 communicators of the LNC; FAILURE otherwise, with the handle untouched.
     */
    public NrtStatus connect(final String peerIp, final int peerLnc, final int lnc, final SendRecvComm comm) {
        return newComm("connect", CommType.SEND_COMM, peerIp, peerLnc, lnc, comm);
    }

    /**
     * Starts to accept for receiving; never blocks. Ports {@code nrt_async_sendrecv_accept}.
     *
     * @param peerIp  IPv4 or IPv6 literal of the sending host; names are refused.
     * @param peerLnc sending LNC, 0 to 127.
     * @param lnc     own LNC, 0 to 127.
     * @param comm    filled with the new communicator.
     * @return SUCCESS; RESOURCE at 128 communicators of the LNC; FAILURE otherwise, with the handle untouched.
     */
    public NrtStatus accept(final String peerIp, final int peerLnc, final int lnc, final SendRecvComm comm) {
        return newComm("accept", CommType.RECV_COMM, peerIp, peerLnc, lnc, comm);
    }

    private NrtStatus newComm(
        final String call,
        final CommType type,
        final String peerIp,
        final int peerLnc,
        final int lnc,
        final SendRecvComm comm) {
        if (comm == null) {
            return refuse(NrtStatus.FAILURE, call + ": Expected valid communicator");
        }
        if (!isLnc(lnc)) {
            return refuse(NrtStatus.FAILURE, call + ": " + outOfRange("lnc", lnc));
        }
        if (!isLnc(peerLnc)) {
            return refuse(NrtStatus.FAILURE, call + " of lnc " + lnc + ": " + outOfRange("peer lnc", peerLnc));
        }
        if (comm.isActive()) {
            return refuse(NrtStatus.FAILURE, call + " of lnc " + lnc + ": the handle still names a " + comm);
        }
        final InetAddress peerAddress = IpLiteral.parse(peerIp);
        if (peerAddress == null) {
            return refuse(NrtStatus.FAILURE, call + " of lnc " + lnc + ": the peer '" + peerIp + "' is no IPv4 or IPv6 literal");
        }
        final LncContext context = contexts.get(lnc);
        if (context == null) {
            return refuse(NrtStatus.FAILURE, call + ": lnc " + lnc + " is not initialised");
        }
        if (context.fatal() != null) {
            return refuseFatal(call, context);
        }
        try {
            final Communicator made = context.newCommunicator(type, peerAddress, peerLnc);
            if (made == null) {
                return refuse(NrtStatus.RESOURCE, call + " of lnc " + lnc + " to " + peerIp + " lnc " + peerLnc
                    + ": Maximum number of communicators " + LncContext.MAX_COMMUNICATORS + " reached");
            }
            comm.fill(made);
            return NrtStatus.SUCCESS;
        } catch (final NrtException ex) {
            return refuse(NrtStatus.FAILURE, call + ": " + ex.getMessage());
        }
    }

    /**
     * Asks whether a communicator is connected; the answer is in {@link SendRecvComm#connected()}. Ports
     * {@code nrt_async_sendrecv_test_comm}.
     *
     * @param comm handle from {@link #connect} or {@link #accept}.
     * @return SUCCESS while it connects and when it is connected; TIMEOUT when the time limit ended it; FAILURE when it failed
     *     otherwise; INVALID_HANDLE for a handle that was never filled or whose LNC was closed.
     */
    public NrtStatus testComm(final SendRecvComm comm) {
        final Communicator communicator = comm == null ? null : comm.communicator();
        if (communicator == null || communicator.isDead() || communicator.context().owner() != this) {
            return refuse(NrtStatus.INVALID_HANDLE, "testComm: " + comm + " is no communicator of this instance");
        }
        if (communicator.status() == CommStatus.CONNECTION_ERROR) {
            final CommFailure failure = communicator.failure();
            return refuseQuietly(failure.timedOut() ? NrtStatus.TIMEOUT : NrtStatus.FAILURE, failure.toString());
        }
        return communicator.context().fatal() == null ? NrtStatus.SUCCESS : refuseFatal("testComm", communicator.context());
    }

    /**
     * Posts a send; never waits for the peer, allocates nothing when uncontended. Ports {@code nrt_async_sendrecv_send_tensor}.
     *
     * @param tensor  where the bytes are; it must not change until the request is done.
     * @param offset  of the first byte, at least 0.
     * @param length  bytes, at least 0; {@code offset + length} is at most the tensor's size.
     * @param comm    connected communicator from {@link #connect}.
     * @param request filled with the new request.
     * @return SUCCESS; INVALID_HANDLE when the communicator is not connected or closed; RESOURCE at 128 pending requests of the
     *     communicator; FAILURE otherwise. Unless it is SUCCESS, the handle is untouched and no slot is taken.
     */
    public NrtStatus sendTensor(
        final NrtTensor tensor,
        final long offset,
        final long length,
        final SendRecvComm comm,
        final SendRecvRequest request) {
        return post(CommType.SEND_COMM, tensor, offset, length, comm, request);
    }

    /**
     * Posts a receive; never blocks, allocates nothing. Ports {@code nrt_async_sendrecv_recv_tensor}.
     *
     * @param tensor  where the bytes go.
     * @param offset  of the first byte, at least 0.
     * @param length  most bytes to receive, at least 0; a longer message fails the request, a shorter one completes it.
     * @param comm    connected communicator from {@link #accept}.
     * @param request filled with the new request.
     * @return as {@link #sendTensor}.
     */
    public NrtStatus recvTensor(
        final NrtTensor tensor,
        final long offset,
        final long length,
        final SendRecvComm comm,
        final SendRecvRequest request) {
        return post(CommType.RECV_COMM, tensor, offset, length, comm, request);
    }

    private NrtStatus post(
        final CommType type,
        final NrtTensor tensor,
        final long offset,
        final long length,
        final SendRecvComm comm,
        final SendRecvRequest request) {
        if (tensor == null || comm == null || request == null) {
            return refuse(NrtStatus.FAILURE, type.word() + ": Expected valid "
                + (tensor == null ? "tensor" : comm == null ? "communicator" : "request"));
        }
        final Communicator communicator = comm.communicator();
        if (communicator == null || communicator.isDead() || communicator.context().owner() != this) {
            return refuse(NrtStatus.INVALID_HANDLE, type.word() + ": " + comm + " is no communicator of this instance");
        }
        final String objectionToComm = Poster.objectionToComm(type, tensor, communicator);
        if (objectionToComm != null) {
            return refuse(NrtStatus.FAILURE, objectionToComm);
        }
        if (communicator.status() != CommStatus.CONNECTED) {
            return refuse(NrtStatus.INVALID_HANDLE, type.word() + ": post on unconnected " + communicator
                + " (" + communicator.status() + ")");
        }
        final String objectionToRange = Poster.objectionToRange(type, tensor, offset, length, communicator, request);
        if (objectionToRange != null) {
            return refuse(NrtStatus.FAILURE, objectionToRange);
        }
        try {
            return Poster.post(tensor, offset, length, communicator, request) ? NrtStatus.SUCCESS
                : refuseQuietly(NrtStatus.RESOURCE, communicator.exhaustedText());
        } catch (final RuntimeException ex) {
            return refuse(communicator.isDead() ? NrtStatus.INVALID_HANDLE : NrtStatus.FAILURE,
                type.word() + " of " + length + " bytes on " + communicator + ": " + textOf(ex));
        }
    }

    /**
     * Asks whether a request is done; the answer is in {@link SendRecvRequest#done()} and {@link SendRecvRequest#size()}.
     * Ports {@code nrt_async_sendrecv_test_request}.
     *
     * @param request handle from {@link #sendTensor} or {@link #recvTensor}.
     * @return SUCCESS while it is in flight and when it is done; FAILURE when the transfer failed, which ends the request, or when
     *     the LNC's service thread has failed, which leaves it to the close of the LNC;
     *     TIMEOUT while it is in flight beyond the configured time limit, which does not; INVALID_HANDLE for a handle that was
     *     never filled, whose request is done, or whose LNC was closed.
     */
    public NrtStatus testRequest(final SendRecvRequest request) {
        final RequestSlot slot = request == null ? null : request.slot();
        if (slot == null) {
            return refuse(NrtStatus.INVALID_HANDLE, "testRequest: "
                + (request == null ? "Expected request" : "Request not in use: the handle was never filled"));
        }
        final Communicator communicator = slot.comm();
        final LncContext context = communicator.context();
        if (communicator.isDead() || context.owner() != this) {
            return refuse(NrtStatus.INVALID_HANDLE, "testRequest: " + communicator + " is closed, or of another instance");
        }
        if (context.fatal() != null) {
            return refuseFatal("testRequest", context);
        }
        try {
            if (Completer.test(request, slot)) {
                return NrtStatus.SUCCESS;
            }
            lastError.get().setOverdue(slot);
            return NrtStatus.TIMEOUT;
        } catch (final NrtException ex) {
            return refuse(ex.status() == NrtStatus.INVALID_HANDLE ? NrtStatus.INVALID_HANDLE : NrtStatus.FAILURE,
                "testRequest: " + ex.getMessage());
        }
    }

    /**
     * Waits until the data of receives that tested complete before this call is in memory; bounded by the configured flush
     * time limit. Ports {@code nrt_async_sendrecv_flush}.
     *
     * @param lnc 0 to 127.
     * @return SUCCESS; TIMEOUT at the limit; FAILURE when the LNC is out of range, not initialised, or has failed.
     */
    public NrtStatus flush(final int lnc) {
        final LncContext context = isLnc(lnc) ? contexts.get(lnc) : null;
        if (context == null) {
            return refuse(NrtStatus.FAILURE, "flush: " + (isLnc(lnc) ? "lnc " + lnc + " is not initialised"
                : outOfRange("lnc", lnc)));
        }
        if (context.fatal() != null) {
            return refuseFatal("flush", context);
        }
        final long startNs = System.nanoTime();
        try {
            context.flush();
            return NrtStatus.SUCCESS;
        } catch (final RuntimeException ex) { // whatever a transport throws
            final boolean late = ex instanceof NrtException known && known.status() == NrtStatus.TIMEOUT;
            return refuse(late ? NrtStatus.TIMEOUT : NrtStatus.FAILURE, "flush of lnc " + lnc + (late ? " is not done" : " failed")
                + " after " + (System.nanoTime() - startNs) / 1_000_000 + " ms: " + textOf(ex));
        }
    }

    /**
     * Why the calling thread's last failed call on this instance failed. A call that succeeds leaves it as it is, like C's
     * {@code errno}: ask after a status other than SUCCESS.
     *
     * @return one line; empty when none of its calls failed.
     */
    public String lastError() {
        return lastError.get().toString();
    }

    /**
     * Configuration of this instance.
     *
     * @return what it was made with.
     */
    public NrtConfig config() {
        return config;
    }

    /** For tests and diagnostics: the context of an initialised LNC, or null. */
    LncContext context(final int lnc) {
        return contexts.get(lnc);
    }

    private static boolean isLnc(final int lnc) {
        return lnc >= 0 && lnc < NrtConfig.MAX_LNCS;
    }

    private static String outOfRange(final String what, final int lnc) {
        return what + " " + lnc + " is not within 0 and " + (NrtConfig.MAX_LNCS - 1);
    }

    private static String textOf(final Throwable ex) {
        return ex instanceof NrtException && ex.getMessage() != null ? ex.getMessage() : ex.toString();
    }

    private NrtStatus refuseFatal(final String call, final LncContext context) {
        return refuseQuietly(NrtStatus.FAILURE,
            call + ": the service thread of lnc " + context.lnc() + " has failed: " + context.fatal());
    }

    private NrtStatus refuse(final NrtStatus status, final String text) {
        LOG.warn("{} ({})", text, status);
        return refuseQuietly(status, text);
    }

    /** Answers that a well-behaved application meets in a loop are kept out of the log. */
    private NrtStatus refuseQuietly(final NrtStatus status, final String text) {
        lastError.get().set(text);
        return status;
    }

    @Override
    public String toString() {
        return "NrtAsyncSendRecv over " + config.transport() + Stream.iterate(0, lnc -> lnc < NrtConfig.MAX_LNCS, lnc -> lnc + 1)
            .map(contexts::get).filter(Objects::nonNull).map(context -> "\n  " + context).reduce("", String::concat);
    }
}
