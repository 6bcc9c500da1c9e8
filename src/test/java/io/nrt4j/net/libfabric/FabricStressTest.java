package io.nrt4j.net.libfabric;

import static io.nrt4j.net.libfabric.FabricPair.register;
import static org.assertj.core.api.Assertions.assertThat;

import io.nrt4j.NrtException;
import io.nrt4j.NrtTensor;
import io.nrt4j.net.NetTransport;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.Random;
import java.util.concurrent.locks.LockSupport;
import java.util.regex.Pattern;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/**
 * Random messages over several communicators in both directions, with ends that stall, close and come again. Whatever happens, the n-th
 * send is the n-th receive, with its size and its bytes, and everything ends. Hand-driven, so that a seed repeats itself but for the
 * control threads.
 *
 * <p>{@code -Dnrt4j.test.stress.seconds} and {@code .seed} make it run longer, with ever new seeds.
 */
@Tag("slow")
class FabricStressTest {
    private static final int[] LIMITS = {32, 64, 2048, 4048, 4064, 4080, 4096, 8160, 8192, 16_384, 65_536};
    private static final int MAX = 70_000;
    private static final int CHANNELS = 6;
    private static final int SLOTS = 24;
    private static final int FEW = 100;
    private static final Pattern EARLY = Pattern.compile("[1-9][0-9]* early");

    @BeforeAll
    static void libfabricIsThere() {
        FabricPair.assumeLibfabric();
    }

    /** One message, as both ends know it. */
    private static final class Post {
        private final long request;
        private final int slot;
        private final int length;
        private final int number;
        private boolean done;

        private Post(final long request, final int slot, final int length, final int number) {
            this.request = request;
            this.slot = slot;
            this.length = length;
            this.number = number;
        }
    }

    /** One end of a channel. */
    private static final class End implements AutoCloseable {
        private final LibfabricTransport owner;
        private final long comm;
        private final boolean sends;
        private final NrtTensor memory = NrtTensor.allocate((long) SLOTS * MAX);
        private final long registration;
        private final Queue<Integer> free = new ArrayDeque<>();
        private final List<Post> pending = new ArrayList<>();
        private int next;
        private boolean closed;

        private End(final LibfabricTransport owner, final long comm, final boolean sends) {
            this.owner = owner;
            this.comm = comm;
            this.sends = sends;
            registration = register(owner, comm, memory);
            for (int i = 0; i < SLOTS; i++) {
                free.add(i);
            }
        }

        /** Posts one; false when there is no room. */
        private boolean post(final int length) {
            final Integer slot = free.peek();
            if (slot == null) {
                return false;
            }
            final long at = (long) slot * MAX;
            final long address = memory.address() + at;
            final long request = sends ? owner.isend(comm, address, length, registration)
                : owner.irecv(comm, address, length, registration);
            if (request == NetTransport.NOT_YET) {
                return false;
            }
            free.remove();
            pending.add(new Post(request, slot, length, next++));
            return true;
        }

        @Override
        public void close() {
            closed = true;
            if (sends) {
                owner.closeSend(comm);
            } else {
                owner.closeRecv(comm);
            }
            memory.close();
        }
    }

    /** Two ends, and what was agreed about each message. */
    private static final class Channel {
        private final End send;
        private final End recv;
        private final int seed;
        private final List<Integer> sent = new ArrayList<>();
        private final List<Integer> posted = new ArrayList<>();

        private Channel(final LibfabricTransport from, final LibfabricTransport to, final int seed) {
            final FabricPair.Link link = FabricPair.link(from, to);
            send = new End(from, link.send(), true);
            recv = new End(to, link.recv(), false);
            this.seed = seed;
        }

        private byte[] bytes(final int number, final int length) {
            final byte[] bytes = new byte[length];
            new Random(seed * 31L + number).nextBytes(bytes);
            return bytes;
        }

        private void send(final int length) {
            final Integer slot = send.free.peek();
            if (slot != null) {
                send.memory.write((long) slot * MAX, bytes(send.next, length));
                if (send.post(length)) {
                    sent.add(length);
                }
            }
        }

        private void receive(final int length) {
            final Integer slot = recv.free.peek();
            if (slot != null) {
                recv.memory.write((long) slot * MAX, new byte[length]);
                if (recv.post(length)) {
                    posted.add(length);
                }
            }
        }

        /** Tests one request of an end. */
        private void test(final End end, final int index) {
            final Post post = end.pending.get(index);
            final String what = (end.sends ? "send " : "receive ") + post.number + " of " + post.length + " bytes, channel " + seed;
            long size = 0;
            boolean failed = false;
            try {
                size = end.owner.test(post.request);
            } catch (final NrtException ex) {
                if (send.closed || recv.closed) {
                    failed = true;
                } else {
                    assertThat(ex).as(what).hasMessageContaining("is longer than its receive");
                    assertThat(sent.get(post.number)).as(what).isGreaterThan(posted.get(post.number));
                    failed = true;
                }
            }
            if (size == NetTransport.PENDING) {
                return;
            }
            post.done = true;
            if (!failed) {
                assertThat(size).as(what).isEqualTo((long) sent.get(post.number));
                assertThat(sent.get(post.number)).as(what).isLessThanOrEqualTo(posted.get(post.number));
                if (!end.sends) {
                    assertThat(end.memory.read((long) post.slot * MAX, (int) size)).as(what).isEqualTo(bytes(post.number, (int) size));
                }
            }
            if (!end.sends && post.length > size) {
                assertThat(end.memory.read((long) post.slot * MAX + size, post.length - (int) size)).as(what)
                    .isEqualTo(new byte[post.length - (int) size]);
            }
            end.pending.remove(index);
            end.free.add(post.slot);
        }

        private boolean balanced() {
            return send.next == recv.next && send.pending.isEmpty() && recv.pending.isEmpty();
        }

        @Override
        public String toString() {
            return "channel " + seed + ": " + send.next + " sends, " + send.pending.size() + " pending; " + recv.next + " receives, "
                + recv.pending.size() + " pending; " + send.owner + " | " + recv.owner;
        }
    }

    private static int length(final Random random) {
        return switch (random.nextInt(4)) {
            case 0 -> random.nextInt(200);
            case 1 -> random.nextInt(MAX + 1);
            default -> Math.max(0, LIMITS[random.nextInt(LIMITS.length)] + random.nextInt(35) - 17);
        };
    }

    private static int lengthOf(final int seed, final int number) {
        return length(new Random(seed * 1009L + number));
    }

    /** Mostly enough for the message, sometimes not. */
    private static int roomOf(final int seed, final int number) {
        final Random random = new Random(seed * 2003L + number);
        final int length = lengthOf(seed, number);
        return switch (random.nextInt(10)) {
            case 0 -> length(random);
            case 1 -> MAX;
            case 2, 3 -> Math.min(MAX, length + random.nextInt(40));
            default -> length;
        };
    }

    private static void run(final String provider, final long seed, final int steps) {
        final Random random = new Random(seed);
        try (FabricPair pair = new FabricPair(provider)) {
            final Channel[] channels = new Channel[CHANNELS];
            int made = 0;
            int[] stalled = new int[2];
            for (int step = 0; step < steps; step++) {
                final int at = random.nextInt(CHANNELS);
                if (channels[at] == null) {
                    final boolean there = at % 2 == 0;
                    channels[at] = new Channel(there ? pair.left : pair.right, there || at == CHANNELS - 1 ? pair.right : pair.left,
                        (int) seed * FEW + made++);
                }
                final Channel channel = channels[at];
                final End end = random.nextBoolean() ? channel.send : channel.recv;
                final int side = end.owner == pair.left ? 0 : 1;
                if (random.nextInt(400) == 0) {
                    stalled[side] = 300; // stands still for so many steps
                }
                stalled[side]--;
                if (stalled[side] > 0) {
                    continue;
                }
                for (int i = random.nextInt(4); i > 0; i--) {
                    if (end.sends) {
                        channel.send(lengthOf(channel.seed, end.next));
                    } else {
                        channel.receive(roomOf(channel.seed, end.next));
                    }
                }
                if (!end.pending.isEmpty()) {
                    channel.test(end, random.nextInt(end.pending.size()));
                }
                if (random.nextInt(3) == 0) {
                    end.owner.progress();
                }
                if (random.nextInt(1500) == 0) {
                    close(channel, random.nextBoolean());
                    channels[at] = null;
                } else if (random.nextInt(800) == 0) {
                    drain(channel);
                }
            }
            for (final Channel channel : channels) {
                if (channel != null) {
                    drain(channel);
                    close(channel, true);
                }
            }
            awaitClean(pair.left, pair.right);
            awaitClean(pair.right, pair.left);
        }
    }

    /** Nothing is left of what was closed. */
    private static void awaitClean(final LibfabricTransport transport, final LibfabricTransport other) {
        final String[] state = new String[1];
        FabricPair.await(new Object() {
            @Override
            public String toString() {
                return state[0];
            }
        }, () -> {
            transport.progress();
            other.progress();
            LockSupport.parkNanos(1000); // the control threads need the lock, too
            final MessageEngine engine = transport.engine();
            engine.lock.lock();
            try {
                state[0] = engine.describe() + "; operations: " + engine.operations(OpTable.SINK) + " sinks, "
                    + engine.operations(OpTable.DIRECT_RECV) + " receives, " + engine.operations(OpTable.DIRECT_SEND) + " sends";
            } finally {
                engine.lock.unlock();
            }
            return state[0].startsWith("0 requests") && state[0].endsWith("operations: 0 sinks, 0 receives, 0 sends")
                && !state[0].contains("communicator") && !EARLY.matcher(state[0]).find();
        });
    }

    /** Whichever end has posted less catches up, and everything completes. */
    private static void drain(final Channel channel) {
        FabricPair.await(channel, () -> {
            if (channel.send.next < channel.recv.next) {
                channel.send(lengthOf(channel.seed, channel.send.next));
            } else if (channel.recv.next < channel.send.next) {
                channel.receive(roomOf(channel.seed, channel.recv.next));
            }
            for (final End end : new End[] {channel.send, channel.recv}) {
                end.owner.progress();
                for (int i = end.pending.size() - 1; i >= 0; i--) {
                    channel.test(end, i);
                }
            }
            return channel.balanced();
        });
    }

    /** Closes both ends, with whatever is on its way; the other side is driven meanwhile, as another process would be. */
    private static void close(final Channel channel, final boolean sendFirst) {
        final End first = sendFirst ? channel.send : channel.recv;
        final End second = sendFirst ? channel.recv : channel.send;
        final Thread closer = new Thread(first::close, "closer");
        closer.start();
        FabricPair.await("the close of " + channel, () -> {
            second.owner.progress();
            return !closer.isAlive();
        });
        final Thread other = new Thread(second::close, "closer");
        other.start();
        FabricPair.await("the other close of " + channel, () -> {
            first.owner.progress();
            return !other.isAlive();
        });
    }

    @ParameterizedTest
    @CsvSource({"tcp;ofi_rxm,1", "shm,2", "shm,3", "sockets,4"})
    void everythingArrivesInOrderAndEnds(final String provider, final long seed) {
        final long endNs = System.nanoTime() + 1_000_000_000L * Long.getLong("nrt4j.test.stress.seconds", 0);
        long next = Long.getLong("nrt4j.test.stress.seed", seed);
        do {
            try {
                run(provider, next, 20_000);
            } catch (final Throwable ex) {
                throw new AssertionError("seed " + next + ": " + ex.getMessage(), ex);
            }
            next++;
        } while (System.nanoTime() - endNs < 0);
        assertThat(next).isGreaterThan(0);
    }
}
