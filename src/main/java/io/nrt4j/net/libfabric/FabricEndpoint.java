package io.nrt4j.net.libfabric;

import com.sun.jna.Function;
import com.sun.jna.Pointer;
import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.net.signals.SignalGuard;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.Deque;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One reliable-datagram endpoint with its fabric, domain, address vector and completion queue: native objects that are built
 * once and closed once, in the right order.
 *
 * <p>Threads: every method under the endpoint's lock, which its owner keeps.
 */
final class FabricEndpoint {
    /** Requests whose operations we cancel have a cause of their own already: what is seen of this was the provider's doing. */
    private static final String CANCELLED = "cancelled by the provider, as when the connection with the peer breaks";
    private static final Logger LOG = LoggerFactory.getLogger(FabricEndpoint.class);
    private static final int BATCH = 16;
    private static final int MAX_NAME = 128;

    /** Told of each completion. */
    interface Completions {
        /**
         * An operation succeeded.
         *
         * @param endpoint    whose operation it is.
         * @param op          its number; the receiver gives it back to the table.
         * @param lengthBytes bytes received; meaningless for a send.
         * @param tag         of what was received; meaningless for a send.
         */
        void onCompletion(FabricEndpoint endpoint, int op, long lengthBytes, long tag);

        /**
         * An operation failed, or was cancelled.
         *
         * @param endpoint whose operation it is.
         * @param op       its number.
         * @param text     number and the provider's text.
         */
        void onError(FabricEndpoint endpoint, int op, String text);
    }

    private final Libfabric libfabric;
    private final FabricInfo info;
    private final ShmRescue rescue;
    /** For tests on machines whose providers do not ask for it. */
    private final boolean alwaysRegister = Boolean.getBoolean("nrt4j.libfabric.alwaysRegister");
    private final Deque<Long> openObjects = new ArrayDeque<>();
    private final OpTable ops;
    private final long entries = Memory.allocate((long) BATCH * FiLayout.CQ_ENTRY_BYTES);
    private final ByteBuffer entryView = Memory.view(entries, (long) BATCH * FiLayout.CQ_ENTRY_BYTES);
    private final long errorEntry = Memory.allocate(FiLayout.CQ_ERR_ROOM);
    private final Deque<Long> allocations = new ArrayDeque<>();
    private long domain;
    private long vector;
    private long queue;
    private long endpoint;
    private DataPath path;
    /** Receives into user memory that the provider has; counted by {@link Receiving}. */
    int directReceives;
    private byte[] name;
    private long nextKey = 1;
    private boolean closed;
    private Neighbours neighbours;

    /**
     * Opens an endpoint.
     *
     * @param libfabric loaded library.
     * @param info      provider and source address.
     * @param rescue    told of endpoints and peers.
     * @param maxOps    most operations that it has under way.
     * @throws NrtException with the call that failed, its number and text; nothing stays open then.
     */
    FabricEndpoint(final Libfabric libfabric, final FabricInfo info, final ShmRescue rescue, final int maxOps) {
        ops = new OpTable(maxOps);
        this.libfabric = libfabric;
        this.info = info;
        this.rescue = rescue;
        boolean open = false;
        try {
            open();
            open = true;
        } finally {
            if (!open) {
                close();
            }
        }
    }

    private void open() {
        final long infoPointer = info.address();
        final Pointer fabricAttr = new Pointer(Memory.getLong(infoPointer + FiLayout.INFO_FABRIC_ATTR));
        final long fabric = create("fi_fabric", out -> libfabric.function("fi_fabric")
            .invokeInt(new Object[] {fabricAttr, out, Pointer.NULL}));
        domain = create("fi_domain", out -> call(fabric + FiLayout.OBJECT_OPS, FiLayout.FABRIC_OPS_DOMAIN,
            fabric, infoPointer, Pointer.nativeValue(out), 0L));
        final long attributes = Memory.allocate(256);
        try {
            Memory.putInt(attributes + FiLayout.AV_ATTR_TYPE, FiLayout.AV_TABLE);
            Memory.putLong(attributes + FiLayout.AV_ATTR_COUNT, 64);
            vector = create("fi_av_open", out -> call(domain + FiLayout.OBJECT_OPS, FiLayout.DOMAIN_OPS_AV_OPEN,
                domain, attributes, Pointer.nativeValue(out), 0L));
            new Pointer(attributes).clear(256);
            Memory.putLong(attributes + FiLayout.CQ_ATTR_SIZE, Math.max(4096, info.txSize() + info.rxSize()));
            Memory.putInt(attributes + FiLayout.CQ_ATTR_FORMAT, FiLayout.CQ_FORMAT_TAGGED);
            Memory.putInt(attributes + FiLayout.CQ_ATTR_WAIT_OBJ, FiLayout.WAIT_NONE);
            queue = create("fi_cq_open", out -> call(domain + FiLayout.OBJECT_OPS, FiLayout.DOMAIN_OPS_CQ_OPEN,
                domain, attributes, Pointer.nativeValue(out), 0L));
        } finally {
            Memory.free(attributes);
        }
        endpoint = create("fi_endpoint", out -> call(domain + FiLayout.OBJECT_OPS, FiLayout.DOMAIN_OPS_ENDPOINT,
            domain, infoPointer, Pointer.nativeValue(out), 0L));
        check("fi_ep_bind(av)", call(endpoint + FiLayout.FID_OPS, FiLayout.FI_OPS_BIND, endpoint, vector, 0L));
        check("fi_ep_bind(cq)", call(endpoint + FiLayout.FID_OPS, FiLayout.FI_OPS_BIND, endpoint, queue,
            FiLayout.FLAG_SEND | FiLayout.FLAG_RECV));
        if (info.provider().equals("shm")) {
            setName(ShmRegion.freshName());
        }
        check("fi_enable", SignalGuard.around(() -> call(endpoint + FiLayout.FID_OPS, FiLayout.FI_OPS_CONTROL, endpoint,
            (long) FiLayout.ENABLE, 0L)));
        path = DataPath.open(endpoint, queue);
        name = readName();
        rescue.learn(name);
        neighbours = info.provider().equals("shm") ? new Neighbours(this::closeNow, name) : null;
    }

    /** A set-up call that puts an object's address where it is told. */
    private interface Create {
        int call(Pointer out);
    }

    private long create(final String what, final Create create) {
        final long out = Memory.allocate(Long.BYTES);
        try {
            check(what, SignalGuard.around(() -> create.call(new Pointer(out))));
            final long object = Memory.getLong(out);
            openObjects.push(object);
            return object;
        } finally {
            Memory.free(out);
        }
    }

    private static int call(final long tableAddress, final int offset, final long... arguments) {
        final Object[] boxed = new Object[arguments.length];
        for (int i = 0; i < boxed.length; i++) {
            boxed[i] = arguments[i];
        }
        return Function.getFunction(new Pointer(Memory.getLong(Memory.getLong(tableAddress) + offset))).invokeInt(boxed);
    }

    private void check(final String what, final int rc) {
        if (rc != 0) {
            throw new NrtException(NrtStatus.FAILURE, describe(what, rc));
        }
    }

    /** Call, number and text of an error. */
    String describe(final String what, final long error) {
        return what + " of libfabric's " + info.provider() + " failed: " + Math.abs(error) + " (" + libfabric.errorText(error) + ")";
    }

    /** Names the endpoint before it is enabled; where the provider does not let us, its own name stays. */
    private void setName(final String wanted) {
        final byte[] bytes = wanted.getBytes(StandardCharsets.US_ASCII);
        final long buffer = Memory.allocate(bytes.length + 1L);
        try {
            new Pointer(buffer).write(0, bytes, 0, bytes.length);
            final int rc = call(endpoint + FiLayout.EP_CM_OPS, FiLayout.CM_OPS_SETNAME, endpoint, buffer, bytes.length + 1L);
            if (rc != 0) {
                LOG.debug("{}", describe("fi_setname", rc));
            }
        } finally {
            Memory.free(buffer);
        }
    }

    private byte[] readName() {
        final long buffer = Memory.allocate(MAX_NAME + Long.BYTES);
        try {
            Memory.putLong(buffer, MAX_NAME);
            check("fi_getname", call(endpoint + FiLayout.EP_CM_OPS, FiLayout.CM_OPS_GETNAME, endpoint, buffer + Long.BYTES, buffer));
            return Memory.bytes(buffer + Long.BYTES, (int) Memory.getLong(buffer));
        } finally {
            Memory.free(buffer);
        }
    }

    /** Address of this endpoint as another one's address vector takes it. */
    byte[] name() {
        return name.clone();
    }

    FabricInfo info() {
        return info;
    }

    DataPath path() {
        return path;
    }

    OpTable ops() {
        return ops;
    }

    boolean closed() {
        return closed;
    }

    /** Another endpoint of the same kind. */
    FabricEndpoint another(final int maxOps) {
        return new FabricEndpoint(libfabric, info, rescue, maxOps);
    }

    /** Puts a peer into the address vector. */
    long insert(final byte[] peerName) {
        if (neighbours != null && !neighbours.reach(peerName)) {
            throw new NrtException(NrtStatus.CLOSED, "the peer's endpoint in this process is being closed");
        }
        rescue.watch(this, name, peerName); // first, since the provider may take the peer's lock here
        final long buffer = Memory.allocate(MAX_NAME + 2L * Long.BYTES);
        try {
            new Pointer(buffer + Long.BYTES).write(0, peerName, 0, peerName.length);
            final int inserted = SignalGuard.around(() -> call(vector + FiLayout.OBJECT_OPS, FiLayout.AV_OPS_INSERT,
                vector, buffer + Long.BYTES, 1L, buffer, 0L, 0L));
            if (inserted != 1) {
                throw new NrtException(NrtStatus.FAILURE, describe("fi_av_insert", inserted));
            }
            return Memory.getLong(buffer);
        } finally {
            Memory.free(buffer);
        }
    }

    /** Takes a peer out of the address vector, as often as it was put in. */
    void remove(final long peer) {
        if (closed || peer == FiLayout.ADDR_UNSPEC) {
            return;
        }
        final long buffer = Memory.allocate(Long.BYTES);
        try {
            Memory.putLong(buffer, peer);
            final int rc = call(vector + FiLayout.OBJECT_OPS, FiLayout.AV_OPS_REMOVE, vector, buffer, 1L, 0L);
            if (rc != 0) {
                LOG.debug("{}", describe("fi_av_remove", rc));
            }
        } finally {
            Memory.free(buffer);
        }
    }

    /** Whether the provider wants memory to be registered. */
    boolean needsRegistration() {
        return alwaysRegister || (info.mrMode() & FiLayout.MR_LOCAL) != 0;
    }

    /** Registers memory, whether the provider asks for it or not. */
    long register(final long address, final long sizeBytes) {
        if (closed) {
            throw new NrtException(NrtStatus.CLOSED, "the libfabric endpoint is closed");
        }
        final long out = Memory.allocate(Long.BYTES);
        try {
            final int rc = call(domain + FiLayout.DOMAIN_MR_OPS, FiLayout.MR_OPS_REG, domain, address, sizeBytes,
                FiLayout.FLAG_SEND | FiLayout.FLAG_RECV, 0L, nextKey++, 0L, out, 0L);
            if (rc != 0) {
                throw new NrtException(NrtStatus.FAILURE, describe("fi_mr_reg of " + sizeBytes + " bytes at 0x"
                    + Long.toHexString(address), rc));
            }
            openObjects.push(Memory.getLong(out));
            return Memory.getLong(out);
        } finally {
            Memory.free(out);
        }
    }

    /** Ends a registration. */
    void deregister(final long registration) {
        if (closed) {
            return; // went with the domain
        }
        openObjects.remove(registration);
        closeObject(registration);
    }

    /** Allocates library buffers, registered where the provider asks for it, and freed with the endpoint. */
    LibraryBuffer[] buffers(final int count, final int sizeBytes) {
        final int stride = sizeBytes + 63 & ~63;
        final long raw = Memory.allocate((long) count * stride + 64);
        allocations.push(raw);
        final long base = raw + 63 & ~63L;
        long descriptor = 0;
        if (needsRegistration()) {
            final long registration = register(base, (long) count * stride);
            descriptor = Memory.getLong(registration + FiLayout.MR_MEM_DESC);
        }
        final LibraryBuffer[] buffers = new LibraryBuffer[count];
        for (int i = 0; i < count; i++) {
            buffers[i] = new LibraryBuffer(this, base + (long) i * stride, sizeBytes, descriptor);
        }
        return buffers;
    }

    /**
     * Reads the completion queue once.
     *
     * @param completions told of each entry.
     * @return number of entries.
     * @throws NrtException when the queue is broken.
     */
    int poll(final Completions completions) {
        final long count = path.cqRead(entries, BATCH);
        if (count == -FiLayout.EAGAIN) {
            return 0;
        }
        if (count == -FiLayout.EAVAIL) {
            return readError(completions);
        }
        if (count < 0) {
            throw new NrtException(NrtStatus.FAILURE, describe("fi_cq_read", count));
        }
        for (int at = 0; at < (int) count * FiLayout.CQ_ENTRY_BYTES; at += FiLayout.CQ_ENTRY_BYTES) {
            final int op = ops.of(entryView.getLong(at + FiLayout.CQ_ENTRY_CONTEXT));
            if (op != OpTable.NONE) {
                completions.onCompletion(
                    this, op, entryView.getLong(at + FiLayout.CQ_ENTRY_LEN), entryView.getLong(at + FiLayout.CQ_ENTRY_TAG));
            }
        }
        return (int) count;
    }

    /** Polls for the end of long receives before the close; answers whether the provider has some still. */
    boolean drain(final Completions completions) {
        try {
            poll(completions);
        } catch (final NrtException ex) {
            LOG.debug("the endpoint that is being closed is broken", ex);
            return false;
        }
        return directReceives > 0;
    }

    private int readError(final Completions completions) {
        new Pointer(errorEntry).clear(FiLayout.CQ_ERR_ROOM);
        final long rc = path.cqReadError(errorEntry);
        if (rc == 0 || rc == -FiLayout.EAGAIN) {
            return 0;
        }
        if (rc < 0) { // the queue would say for ever that there is an error, and give none
            throw new NrtException(NrtStatus.FAILURE, describe("fi_cq_readerr", rc));
        }
        final int op = ops.of(Memory.getLong(errorEntry + FiLayout.CQ_ERR_CONTEXT));
        final int error = Math.abs(Memory.getInt(errorEntry + FiLayout.CQ_ERR_ERR));
        final String text = error == FiLayout.ECANCELED ? CANCELLED : errorText(error);
        if (op == OpTable.NONE) {
            LOG.warn("libfabric's {} reports an error that belongs to no operation: {}", info.provider(), text);
        } else {
            completions.onError(this, op, text);
        }
        return 1;
    }

    private String errorText(final int error) {
        final int providerError = Memory.getInt(errorEntry + FiLayout.CQ_ERR_PROV_ERRNO);
        final Pointer strerror = new Pointer(Memory.getLong(Memory.getLong(queue + FiLayout.OBJECT_OPS) + FiLayout.CQ_OPS_STRERROR));
        final String providerText = Function.getFunction(strerror).invokeString(new Object[] {new Pointer(queue), providerError,
            new Pointer(Memory.getLong(errorEntry + FiLayout.CQ_ERR_DATA)), Pointer.NULL, 0L}, false);
        return error + " (" + libfabric.errorText(error) + "), provider: " + providerError + " (" + providerText + ")";
    }

    private void closeObject(final long object) {
        final int rc = call(object + FiLayout.FID_OPS, FiLayout.FI_OPS_CLOSE, object);
        if (rc != 0) {
            LOG.warn("{}", describe("fi_close of " + (object == domain ? "the domain" : object == vector ? "the address vector"
                : object == queue ? "the completion queue" : object == endpoint ? "the endpoint" : "a fabric or registration"), rc));
        }
    }

    /** Closes everything, the endpoint first; the provider touches no memory of ours or of users afterwards. Idempotent. */
    void close() {
        if (closed) {
            return;
        }
        closed = true;
        if (directReceives > 0 && info.provider().endsWith(";ofi_rxm")) {
            // rxm (seen in 1.17) follows a null pointer in fi_close when a rendezvous receive is under way. Nobody polls any more, so
            // none of the memory that it was given is written to.
            LOG.warn("{} long receives over {} are still under way: their endpoint stays open until the process ends", directReceives,
                info.provider());
            return;
        }
        if (neighbours == null) {
            closeNow();
        } else {
            neighbours.end();
        }
    }

    private void closeNow() {
        // The endpoint must go before the queue and the vector that it is bound to, and before any registration.
        if (endpoint != 0) {
            openObjects.remove(endpoint);
            closeObject(endpoint);
        }
        ops.free();
        while (!openObjects.isEmpty()) {
            closeObject(openObjects.pop());
        }
        if (path != null) {
            path.free();
        }
        while (!allocations.isEmpty()) {
            Memory.free(allocations.pop());
        }
        Memory.free(entries);
        Memory.free(errorEntry);
        rescue.forget(this); // last, since a close may wait for a lock, too
    }
}
