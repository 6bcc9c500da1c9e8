package io.nrt4j.tools;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.NrtTensor;
import io.nrt4j.sendrecv.SendRecvRequest;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The sending role of a transfer, see {@link TransferWire}.
 *
 * <p>Threads: {@link #run()} by one thread, once.
 */
final class TransferSender {
    private static final Logger LOG = LoggerFactory.getLogger(TransferSender.class);
    private static final int LANE_CAPACITY = 4096;
    private static final long GIVE_UP_NS = TimeUnit.SECONDS.toNanos(2);

    private final PeerLink link;
    private final List<TransferFile> files;
    private final long chunkBytes;
    private final int inFlight;
    private final ProgressMeter progress;

    private final SendRecvRequest[] requests;
    private final SendMemory[] memories;
    private final long[] lengths;
    /** Chunks that were posted, and of these the ones that are done. */
    private long posted;
    private long done;
    private final SendRecvRequest control = new SendRecvRequest();
    private final SendRecvRequest replyRequest = new SendRecvRequest();
    private long laneSeen;

    /**
     * A sender.
     *
     * @param link       not connected yet; closed by {@link #run()}.
     * @param files      what to send.
     * @param chunkBytes longest message.
     * @param inFlight   chunks in flight, 1 to 128.
     * @param progress   told of what was sent; null for none.
     */
    TransferSender(
        final PeerLink link,
        final List<TransferFile> files,
        final long chunkBytes,
        final int inFlight,
        final ProgressMeter progress) {
        this.link = link;
        this.files = files;
        this.chunkBytes = chunkBytes;
        this.inFlight = inFlight;
        this.progress = progress;
        requests = new SendRecvRequest[inFlight];
        memories = new SendMemory[inFlight];
        lengths = new long[inFlight];
        for (int i = 0; i < inFlight; i++) {
            requests[i] = new SendRecvRequest();
        }
    }

    /**
     * Connects, sends all files, and compares digests.
     *
     * @return what became of each file.
     * @throws NrtException when the transfer failed; the receiver was told if it could be.
     */
    TransferReport run() {
        final byte[] manifest = TransferWire.encodeManifest(files);
        final long replyBytes = TransferWire.REPLY_HEAD_BYTES
            + Math.max((long) files.size() * TransferWire.DIGEST_BYTES, TransferWire.REASON_BYTES);
        try (link;
            NrtTensor reply = NrtTensor.allocate(replyBytes);
            NrtTensor nothing = NrtTensor.allocate(1);
            FileSource source = new FileSource(chunkBytes, inFlight, largestBytes(),
                link.transport().equals(PeerOptions.ONE_JVM_TRANSPORT));
            DigestLane lane = new DigestLane("nrt4j-digest-sent", files.size(), LANE_CAPACITY, null)) {
            link.connect();
            final TransferReport report;
            try {
                link.receive(reply, 0, replyBytes, replyRequest);
                report = send(manifest, source, lane, reply);
                link.send(nothing, 0, 0, control);
                link.await(control, "the receiver to take the farewell");
            } catch (final RuntimeException ex) {
                giveUp(nothing);
                throw ex;
            }
            link.closeInOrder();
            return report;
        }
    }

    private long largestBytes() {
        return files.stream().mapToLong(TransferFile::sizeBytes).max().orElse(0);
    }

    private TransferReport send(
        final byte[] manifest, final FileSource source, final DigestLane lane, final NrtTensor reply) {
        final long startNs = System.nanoTime();
        final long totalBytes = files.stream().mapToLong(TransferFile::sizeBytes).sum();
        if (progress != null) {
            progress.start(totalBytes);
        }
        sendBytes(new TransferWire.Header(files.size(), manifest.length, chunkBytes, totalBytes).encode(), lane, reply);
        sendBytes(manifest, lane, reply);
        sendChunks(source, lane, reply);
        while (!lane.isIdle()) {
            watch(lane, reply);
            link.patience().pause(() -> "the digests of what was sent; " + link);
        }
        lane.check();
        sendBytes(TransferWire.encodeTrailer(lane.busyNs(), lane.digests()), lane, reply);
        link.await(replyRequest, "the receiver's reply");
        link.flush();
        final TransferWire.Reply answer = decodeReply(reply);
        return new TransferReport(files, lane.digests(), answer.digests(), chunkBytes, System.nanoTime() - startNs,
            answer.inFlightNs(), lane.busyNs(), answer.digestNs());
    }

    private TransferWire.Reply decodeReply(final NrtTensor reply) {
        final TransferWire.Reply answer =
            TransferWire.Reply.decode(reply.read(0, (int) replyRequest.size()), files.size());
        if (answer.reason() != null) {
            throw new NrtException(NrtStatus.FAILURE, "the receiving end of " + link + " failed: " + answer.reason());
        }
        return answer;
    }

    private void sendBytes(final byte[] bytes, final DigestLane lane, final NrtTensor reply) {
        try (NrtTensor tensor = NrtTensor.allocate(bytes.length)) {
            tensor.write(0, bytes);
            link.send(tensor, 0, bytes.length, control);
            while (!link.isDone(control)) {
                watch(lane, reply);
                link.patience().pause(() -> "the receiver to take " + bytes.length + " bytes of control data; " + link);
            }
        }
    }

    private void sendChunks(final FileSource source, final DigestLane lane, final NrtTensor reply) {
        final ChunkCursor cursor = new ChunkCursor(files, chunkBytes);
        while (cursor.next()) {
            final int file = cursor.file();
            final boolean last = cursor.isLastOfFile();
            if (cursor.length() == 0) {
                digest(new DigestLane.Piece(file, ByteBuffer.allocate(0), true, () -> { }), lane, reply);
                continue;
            }
            while (posted - done == inFlight) {
                reapOrPause(lane, reply);
            }
            FileSource.Chunk chunk = source.open(files.get(file), cursor.offset(), (int) cursor.length(), last);
            while (chunk == null) {
                reapOrPause(lane, reply);
                chunk = source.open(files.get(file), cursor.offset(), (int) cursor.length(), last);
            }
            final int at = (int) (posted % inFlight);
            link.send(chunk.memory().tensor(), chunk.offset(), cursor.length(), requests[at]);
            memories[at] = chunk.memory();
            lengths[at] = cursor.length();
            posted++;
            digest(new DigestLane.Piece(file, chunk.bytes(), last, chunk.memory()::release), lane, reply);
        }
        while (done < posted) {
            reapOrPause(lane, reply);
        }
    }

    private void digest(final DigestLane.Piece piece, final DigestLane lane, final NrtTensor reply) {
        while (!lane.offer(piece)) {
            reapOrPause(lane, reply);
        }
    }

    private void reapOrPause(final DigestLane lane, final NrtTensor reply) {
        if (!reap()) {
            watch(lane, reply);
            link.patience().pause(() -> "one of " + (posted - done) + " chunks in flight, or for their digests; " + link);
        }
    }

    /** Takes back the chunks that are done, in order. */
    private boolean reap() {
        final long before = done;
        while (done < posted && link.isDone(requests[(int) (done % inFlight)])) {
            final int at = (int) (done % inFlight);
            done++;
            memories[at].release();
            memories[at] = null;
            if (progress != null) {
                progress.moved(lengths[at]);
            }
        }
        return done > before;
    }

    /** While waiting: has the lane failed, or the receiver? */
    private void watch(final DigestLane lane, final NrtTensor reply) {
        lane.check();
        final long seen = lane.processed();
        if (seen != laneSeen) {
            laneSeen = seen;
            link.patience().progressed();
        }
        if (link.isDone(replyRequest)) {
            decodeReply(reply);
            throw new NrtException(NrtStatus.FAILURE, "the receiving end of " + link + " replied before all was sent");
        }
    }

    /** Tells the receiver with an empty message, if it still listens, and for a short time only. */
    private void giveUp(final NrtTensor nothing) {
        final long startNs = System.nanoTime();
        final SendRecvRequest empty = new SendRecvRequest();
        try {
            boolean sent = false;
            while (System.nanoTime() - startNs < GIVE_UP_NS) {
                reap();
                sent = sent || link.trySend(nothing, 0, 0, empty);
                if (sent && link.isDone(empty)) {
                    return;
                }
                TimeUnit.MILLISECONDS.sleep(1);
            }
        } catch (final NrtException ex) {
            LOG.debug("the receiver could not be told", ex);
        } catch (final InterruptedException ex) {
            Thread.currentThread().interrupt();
        }
    }
}
