package io.nrt4j.tools;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.NrtTensor;
import io.nrt4j.sendrecv.SendRecvRequest;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The receiving role of a transfer, see {@link TransferWire}. Receives into a few tensors that are used again and again, and
 * digests what arrived, and writes it, beside the transfer.
 *
 * <p>Threads: {@link #run()} by one thread, once; the digest lane gives slots back to {@code free}.
 */
final class TransferReceiver {
    private static final Logger LOG = LoggerFactory.getLogger(TransferReceiver.class);
    /** Most memory for receives. */
    private static final long MAX_BUFFER_BYTES = 8L << 30;
    private static final long GIVE_UP_NS = TimeUnit.SECONDS.toNanos(2);

    /** A tensor with a view of all of it. */
    private record Slot(NrtTensor tensor, ByteBuffer bytes) {
    }

    /** A chunk that is expected; an empty file's has no slot. */
    private static final class Expected {
        private final Slot slot;
        private final int file;
        private final int length;
        private final boolean last;
        private final SendRecvRequest request = new SendRecvRequest();
        private boolean done;

        Expected(final Slot slot, final ChunkCursor cursor) {
            this.slot = slot;
            file = cursor.file();
            length = (int) cursor.length();
            last = cursor.isLastOfFile();
            done = slot == null;
        }
    }

    private final PeerLink link;
    private final Path out;
    private final int inFlight;
    private final ProgressMeter progress;

    private final List<Slot> slots = new ArrayList<>();
    private final Queue<Slot> free = new ConcurrentLinkedQueue<>();
    private final Deque<Expected> expected = new ArrayDeque<>();
    private final SendRecvRequest control = new SendRecvRequest();
    private int posted;
    private long postedSinceNs;
    private long inFlightNs;
    private long laneSeen;
    private boolean peerGaveUp;

    /**
     * A receiver.
     *
     * @param link     not connected yet; closed by {@link #run()}.
     * @param out      folder for what arrives; null to digest it only.
     * @param inFlight receives in flight, 1 to 128.
     * @param progress told of what arrived; null for none.
     */
    TransferReceiver(final PeerLink link, final Path out, final int inFlight, final ProgressMeter progress) {
        this.link = link;
        this.out = out;
        this.inFlight = inFlight;
        this.progress = progress;
    }

    /**
     * Connects, receives all files, and compares digests.
     *
     * @return what became of each file.
     * @throws NrtException when the transfer failed; the sender was told if it could be.
     */
    TransferReport run() {
        try (link; NrtTensor nothing = NrtTensor.allocate(1)) {
            link.connect();
            final TransferReport report;
            try {
                report = receive();
                link.receive(nothing, 0, 1, control);
                link.await(control, "the sender's farewell");
            } catch (final RuntimeException ex) {
                if (!peerGaveUp) {
                    giveUp(ex);
                }
                throw ex;
            }
            link.closeInOrder();
            return report;
        } finally {
            slots.forEach(slot -> slot.tensor().close());
        }
    }

    private TransferReport receive() {
        final TransferWire.Header header =
            TransferWire.Header.decode(receiveBytes(TransferWire.HEADER_BYTES, "the sender's header"));
        final long startNs = System.nanoTime();
        final List<TransferFile> files =
            TransferWire.decodeManifest(header, receiveBytes(header.manifestBytes(), "the sender's manifest"));
        if (progress != null) {
            progress.start(header.totalBytes());
        }
        allocateSlots(header, files);
        try (FileSink sink = out == null ? null : new FileSink(out, files);
            DigestLane lane = new DigestLane("nrt4j-digest-received", files.size(), 2 * inFlight, sink)) {
            receiveChunks(files, header.chunkBytes(), lane);
            final int trailerBytes = TransferWire.TRAILER_HEAD_BYTES + files.size() * TransferWire.DIGEST_BYTES;
            final ByteBuffer trailer = TransferWire.wrap(receiveBytes(trailerBytes, "the sender's digests"));
            final long senderDigestNs = trailer.getLong();
            final TransferReport report = new TransferReport(files, TransferWire.digests(trailer, files.size()), lane.digests(),
                header.chunkBytes(), System.nanoTime() - startNs, inFlightNs, senderDigestNs, lane.busyNs());
            if (sink != null) {
                for (int i = 0; i < files.size(); i++) {
                    if (report.isOk(i)) {
                        sink.keep(i);
                    }
                }
            }
            reply(new TransferWire.Reply(inFlightNs, lane.busyNs(), lane.digests(), null));
            return report;
        }
    }

    private void allocateSlots(final TransferWire.Header header, final List<TransferFile> files) {
        final long largest = files.stream().mapToLong(TransferFile::sizeBytes).max().orElse(0);
        final long slotBytes = Math.max(1, Math.min(header.chunkBytes(), largest));
        final long messages = files.stream().mapToLong(file -> (file.sizeBytes() + slotBytes - 1) / slotBytes).sum();
        final int needed = (int) Math.min(inFlight, Math.max(1, messages));
        if (slotBytes > Integer.MAX_VALUE || slotBytes * needed > MAX_BUFFER_BYTES) {
            throw new NrtException(NrtStatus.RESOURCE, needed + " receives of " + slotBytes + " bytes in flight need more than "
                + MAX_BUFFER_BYTES + " bytes of memory: take a smaller chunk or fewer in flight");
        }
        for (int i = 0; i < needed; i++) {
            final NrtTensor tensor = NrtTensor.allocate(slotBytes);
            slots.add(new Slot(tensor, tensor.view(0, (int) slotBytes)));
        }
        free.addAll(slots);
    }

    private void receiveChunks(final List<TransferFile> files, final long chunkBytes, final DigestLane lane) {
        final ChunkCursor cursor = new ChunkCursor(files, chunkBytes);
        boolean more = cursor.next();
        while (more || !expected.isEmpty() || !lane.isIdle()) {
            boolean moved = false;
            while (more && expected.size() < inFlight && expect(cursor)) {
                more = cursor.next();
                moved = true;
            }
            moved |= harvest();
            moved |= handOver(lane);
            if (!moved) {
                watch(lane);
                link.patience().pause(() -> (posted > 0 ? posted + " receives in flight" : "what arrived to be digested")
                    + "; " + link);
            }
        }
        lane.check();
    }

    /** Posts the receive of a chunk; false while every slot is in use. */
    private boolean expect(final ChunkCursor cursor) {
        if (cursor.length() == 0) {
            expected.add(new Expected(null, cursor));
            return true;
        }
        final Slot slot = free.poll();
        if (slot == null) {
            return false;
        }
        final Expected chunk = new Expected(slot, cursor);
        link.receive(slot.tensor(), 0, chunk.length, chunk.request);
        expected.add(chunk);
        if (posted++ == 0) {
            postedSinceNs = System.nanoTime();
        }
        return true;
    }

    /** Finds out which chunks have arrived, in order. */
    private boolean harvest() {
        boolean arrived = false;
        for (final Expected chunk : expected) {
            if (chunk.done) {
                continue;
            }
            if (!link.isDone(chunk.request)) {
                break;
            }
            checkSize(chunk.request.size(), chunk.length, "a chunk");
            chunk.done = true;
            arrived = true;
            if (--posted == 0) {
                inFlightNs += System.nanoTime() - postedSinceNs;
            }
            if (progress != null) {
                progress.moved(chunk.length);
            }
        }
        if (arrived) {
            link.flush();
        }
        return arrived;
    }

    /** Hands what has arrived to the digest lane. */
    private boolean handOver(final DigestLane lane) {
        boolean moved = false;
        for (Expected chunk = expected.peek(); chunk != null && chunk.done; chunk = expected.peek()) {
            final Slot slot = chunk.slot;
            final ByteBuffer bytes = slot == null ? ByteBuffer.allocate(0) : slot.bytes().slice(0, chunk.length);
            final Runnable done = slot == null ? () -> { } : () -> free.add(slot);
            if (!lane.offer(new DigestLane.Piece(chunk.file, bytes, chunk.last, done))) {
                return moved;
            }
            expected.remove();
            moved = true;
        }
        return moved;
    }

    private void watch(final DigestLane lane) {
        lane.check();
        final long seen = lane.processed();
        if (seen != laneSeen) {
            laneSeen = seen;
            link.patience().progressed();
        }
    }

    private byte[] receiveBytes(final int bytes, final String what) {
        try (NrtTensor tensor = NrtTensor.allocate(bytes)) {
            link.receive(tensor, 0, bytes, control);
            link.await(control, what);
            checkSize(control.size(), bytes, what);
            link.flush();
            return tensor.read(0, bytes);
        }
    }

    private void checkSize(final long size, final long wanted, final String what) {
        if (size == 0) {
            peerGaveUp = true;
            throw new NrtException(NrtStatus.FAILURE, "the sending end of " + link + " gave up");
        }
        if (size != wanted) {
            throw new NrtException(NrtStatus.FAILURE, what + " has " + size + " bytes instead of " + wanted + "; " + link);
        }
    }

    private void reply(final TransferWire.Reply reply) {
        final byte[] bytes = reply.encode();
        try (NrtTensor tensor = NrtTensor.allocate(bytes.length)) {
            tensor.write(0, bytes);
            link.send(tensor, 0, bytes.length, control);
            link.await(control, "the sender to take the reply");
        }
    }

    /** Tells the sender why, if it still listens, and for a short time only. */
    private void giveUp(final RuntimeException why) {
        final byte[] bytes = new TransferWire.Reply(0, 0, null, String.valueOf(why.getMessage())).encode();
        final long startNs = System.nanoTime();
        final SendRecvRequest request = new SendRecvRequest();
        try (NrtTensor tensor = NrtTensor.allocate(bytes.length)) {
            tensor.write(0, bytes);
            link.send(tensor, 0, bytes.length, request);
            while (!link.isDone(request) && System.nanoTime() - startNs < GIVE_UP_NS) {
                TimeUnit.MILLISECONDS.sleep(1);
            }
        } catch (final NrtException ex) {
            LOG.debug("the sender could not be told", ex);
        } catch (final InterruptedException ex) {
            Thread.currentThread().interrupt();
        }
    }
}
