package io.nrt4j.sendrecv;

import io.nrt4j.NrtConfig;
import io.nrt4j.NrtStatus;
import io.nrt4j.NrtTensor;
import io.nrt4j.testing.FreePorts;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Comparator;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Stream;

/** Connected pairs between two engines of this JVM, driven from both ends by one thread through the public API. */
final class LoopbackPairs implements AutoCloseable {
    private static final String HOST = "127.0.0.1";
    private static final long CONNECT_LIMIT_NS = Duration.ofSeconds(120).toNanos();

    private final Path locks;
    private final NrtAsyncSendRecv sender;
    private final NrtAsyncSendRecv receiver;
    private final SendRecvComm[] sends;
    private final SendRecvComm[] receives;
    private final SendRecvRequest sendRequest = new SendRecvRequest();
    private final SendRecvRequest recvRequest = new SendRecvRequest();

    private LoopbackPairs(final int pairs) {
        try {
            locks = Files.createTempDirectory("nrt4j-bench-");
        } catch (final IOException ex) {
            throw new UncheckedIOException(ex);
        }
        final NrtConfig config = NrtConfig.builder().asyncSendRecvEnabled(true).transport("loopback")
            .bootstrapPort(FreePorts.next()).kvBindAddress(HOST).kvLockDirectory(locks).build();
        sender = new NrtAsyncSendRecv(config);
        receiver = new NrtAsyncSendRecv(config);
        sends = new SendRecvComm[pairs];
        receives = new SendRecvComm[pairs];
    }

    /** Initialises {@code lncs} LNCs at each end, with {@code pairsPerLnc} pairs each, and waits until all are connected. */
    static LoopbackPairs open(final int lncs, final int pairsPerLnc) {
        final LoopbackPairs pairs = new LoopbackPairs(lncs * pairsPerLnc);
        for (int lnc = 0; lnc < lncs; lnc++) {
            pairs.check(pairs.sender, pairs.sender.init(lnc));
            pairs.check(pairs.receiver, pairs.receiver.init(lnc));
        }
        for (int i = 0; i < pairs.sends.length; i++) {
            final int lnc = i % lncs;
            pairs.sends[i] = new SendRecvComm();
            pairs.receives[i] = new SendRecvComm();
            pairs.check(pairs.sender, pairs.sender.connect(HOST, lnc, lnc, pairs.sends[i]));
            pairs.check(pairs.receiver, pairs.receiver.accept(HOST, lnc, lnc, pairs.receives[i]));
        }
        pairs.awaitConnected();
        return pairs;
    }

    private void awaitConnected() {
        final long startNs = System.nanoTime();
        for (int i = 0; i < sends.length; i++) {
            while (!sends[i].connected() || !receives[i].connected()) {
                check(sender, sender.testComm(sends[i]));
                check(receiver, receiver.testComm(receives[i]));
                if (System.nanoTime() - startNs > CONNECT_LIMIT_NS) {
                    throw new IllegalStateException("pair " + i + " did not connect: " + sends[i] + ", " + receives[i]);
                }
                LockSupport.parkNanos(100_000);
            }
        }
    }

    int count() {
        return sends.length;
    }

    NrtAsyncSendRecv sender() {
        return sender;
    }

    /** Sends through every pair once, so that the tensors are registered everywhere. */
    void warm(final NrtTensor from, final NrtTensor to, final long length) {
        for (int i = 0; i < count(); i++) {
            exchange(i, from, to, length);
        }
    }

    /** Post send, post receive, test both until done. */
    long exchange(final int pair, final NrtTensor from, final NrtTensor to, final long length) {
        check(sender, sender.sendTensor(from, 0, length, sends[pair], sendRequest));
        check(receiver, receiver.recvTensor(to, 0, length, receives[pair], recvRequest));
        do {
            check(sender, sender.testRequest(sendRequest));
        } while (!sendRequest.done());
        do {
            check(receiver, receiver.testRequest(recvRequest));
        } while (!recvRequest.done());
        return recvRequest.size();
    }

    private void check(final NrtAsyncSendRecv engine, final NrtStatus status) {
        if (status != NrtStatus.SUCCESS) {
            throw new IllegalStateException(status + ": " + engine.lastError());
        }
    }

    @Override
    public void close() {
        sender.close();
        receiver.close();
        try (Stream<Path> paths = Files.walk(locks)) {
            paths.sorted(Comparator.reverseOrder()).forEach(path -> path.toFile().delete());
        } catch (final IOException ex) {
            throw new UncheckedIOException(ex);
        }
    }
}
