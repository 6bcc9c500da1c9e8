package io.nrt4j.net.libfabric;

import static io.nrt4j.net.libfabric.FabricPair.complete;
import static io.nrt4j.net.libfabric.FabricPair.failure;
import static io.nrt4j.net.libfabric.FabricPair.irecv;
import static io.nrt4j.net.libfabric.FabricPair.isend;
import static io.nrt4j.net.libfabric.FabricPair.register;
import static org.assertj.core.api.Assertions.assertThat;

import io.nrt4j.NrtTensor;
import io.nrt4j.net.NetTransport;
import io.nrt4j.testing.Await;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** As many sends as may be in flight, of 0 B to 8 MiB, before any receive: each meets its own, in order. */
class SendsBeforeReceivesTest {
    private static final int MIB = 1 << 20;
    private static final int COUNT = 128;
    private static final int LONGEST = 8 * MIB;
    /** Bytes of the target behind each message: the most that its receive is longer than it. */
    private static final int SLACK = 64;
    private static final Duration PAUSE = Duration.ofSeconds(5);

    @BeforeAll
    static void libfabricIsThere() {
        FabricPair.assumeLibfabric();
    }

    /** What a send is beside the receive that it meets. */
    private enum Fit { AS_LONG, SHORTER, LONGER }

    /** A link with all of its sends posted, and no receive. */
    private static final class Backlog implements AutoCloseable {
        private final String provider;
        private final FabricPair pair;
        private final FabricPair.Link link;
        private final NrtTensor source = NrtTensor.allocate(LONGEST);
        private final NrtTensor target;
        private final long from;
        private final long to;
        private final int[] lengths = new int[COUNT];
        private final int[] offsets = new int[COUNT];
        private final Fit[] fits = new Fit[COUNT];
        private final long[] sends = new long[COUNT];

        Backlog(final String provider) {
            this.provider = provider;
            pair = new FabricPair(provider);
            link = FabricPair.link(pair.left, pair.right);
            final byte[] bytes = new byte[LONGEST];
            final Random random = new Random(7);
            random.nextBytes(bytes);
            source.write(0, bytes);
            from = register(pair.left, link.send(), source);
            long room = 0;
            for (int i = 0; i < COUNT; i++) {
                lengths[i] = i == 0 ? 0 : switch (i % 4) {
                    case 0 -> random.nextInt(64);
                    case 1 -> random.nextInt(8192);
                    case 2 -> random.nextInt(200_000);
                    default -> i % 32 == 3 ? LONGEST : random.nextInt(2 * MIB);
                };
                offsets[i] = random.nextInt(LONGEST - lengths[i] + 1);
                fits[i] = i % 5 == 4 && lengths[i] > 0 ? Fit.LONGER : i % 5 == 3 ? Fit.SHORTER : Fit.AS_LONG;
                room += lengths[i] + SLACK;
            }
            target = NrtTensor.allocate(room);
            to = register(pair.right, link.recv(), target);
            for (int i = 0; i < COUNT; i++) {
                sends[i] = pair.left.isend(link.send(), source.address() + offsets[i], lengths[i], from);
                assertThat(sends[i]).as("%s, send %d", provider, i).isNotEqualTo(NetTransport.NOT_YET);
            }
            assertThat(pair.left.isend(link.send(), source.address(), 1, from)).as(provider).isEqualTo(NetTransport.NOT_YET);
        }

        /** How the sends that travel eagerly, or those that do not, fit their receives. */
        Set<Fit> fits(final boolean eager) {
            final Set<Fit> all = EnumSet.noneOf(Fit.class);
            for (int i = 0; i < COUNT; i++) {
                if (eager == lengths[i] <= pair.left.engine().eagerLimit()) {
                    all.add(fits[i]);
                }
            }
            return all;
        }

        /** Drives both ends and asks one send. None may have an outcome: whether it fits is known only when its receive is. */
        void hold(final int number) {
            pair.left.progress();
            pair.right.progress();
            assertThat(pair.left.test(sends[number])).as("%s, send %d of %d bytes", provider, number, lengths[number])
                .isEqualTo(NetTransport.PENDING);
        }

        /** Posts all receives, each with a place of its own, and looks at what came into each, and at what came after them. */
        void receive() {
            final long[] receives = new long[COUNT];
            long at = 0;
            for (int i = 0; i < COUNT; i++) {
                receives[i] = irecv(link, target, at, posted(i), to);
                at += lengths[i] + SLACK;
            }
            at = 0;
            for (int i = 0; i < COUNT; i++) {
                final byte[] expected = new byte[lengths[i] + SLACK];
                if (fits[i] == Fit.LONGER) {
                    assertThat(failure(link, pair.right, receives[i])).hasMessageContaining(lengths[i] + " bytes is longer");
                    assertThat(failure(link, pair.left, sends[i])).hasMessageContaining(lengths[i] + " bytes is longer");
                } else {
                    assertThat(complete(link, pair.right, receives[i])).as("%s, receive %d", provider, i).isEqualTo(lengths[i]);
                    assertThat(complete(link, pair.left, sends[i])).as("%s, send %d", provider, i).isEqualTo(lengths[i]);
                    System.arraycopy(source.read(offsets[i], lengths[i]), 0, expected, 0, lengths[i]);
                }
                assertThat(target.read(at, expected.length)).as("%s, receive %d", provider, i).isEqualTo(expected);
                at += expected.length;
            }
            final long next = isend(link, source, 1, 3001, from);
            final long last = irecv(link, target, 0, LONGEST, to);
            assertThat(complete(link, pair.right, last)).as("%s, what is sent next is next", provider).isEqualTo(3001);
            assertThat(complete(link, pair.left, next)).isEqualTo(3001);
            assertThat(target.read(0, 3001)).isEqualTo(source.read(1, 3001));
        }

        private int posted(final int number) {
            return switch (fits[number]) {
                case AS_LONG -> lengths[number];
                case SHORTER -> lengths[number] + 1 + number % SLACK;
                case LONGER -> number % 2 == 0 ? lengths[number] - 1 : lengths[number] / 2;
            };
        }

        @Override
        public void close() {
            try (source; target; pair) {
                link.close();
            }
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"tcp;ofi_rxm", "shm", "sockets"})
    void theirReceivesAtOnceKeepTheirOrder(final String provider) {
        try (Backlog backlog = new Backlog(provider)) {
            backlog.receive();
        }
    }

    /** One pause for all providers, in which every end is driven about a thousand times a second, and every send asked in turn. */
    @Test
    @Tag("slow")
    void theirReceivesFiveSecondsLaterKeepTheirOrder() {
        final List<Backlog> backlogs = new ArrayList<>();
        try {
            for (final String provider : List.of("tcp;ofi_rxm", "shm", "sockets")) {
                final Backlog backlog = new Backlog(provider);
                backlogs.add(backlog);
                assertThat(backlog.fits(true)).as(provider).containsExactly(Fit.values());
                assertThat(backlog.fits(false)).as(provider).containsExactly(Fit.values());
            }
            final int[] rounds = {0};
            final long startNs = System.nanoTime();
            Await.until(FabricPair.LIMIT, "the end of the pause", () -> {
                backlogs.forEach(backlog -> backlog.hold(rounds[0] % COUNT));
                rounds[0]++;
                return System.nanoTime() - startNs >= PAUSE.toNanos();
            });
            assertThat(rounds[0]).as("every send was asked").isGreaterThan(COUNT);
            backlogs.forEach(Backlog::receive);
        } finally {
            backlogs.forEach(Backlog::close);
        }
    }
}
