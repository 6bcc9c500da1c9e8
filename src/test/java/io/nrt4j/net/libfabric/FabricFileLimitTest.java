package io.nrt4j.net.libfabric;

import static org.assertj.core.api.Assertions.assertThat;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.NrtTensor;
import io.nrt4j.net.NetTransport;
import io.nrt4j.testing.Await;
import io.nrt4j.testing.ChildJvm;
import io.nrt4j.testing.FileLimit;
import io.nrt4j.testing.NeedsLibfabric;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The limit of file descriptors is reached in the middle of connecting 160 communicators, ten to each of 16 peers. */
@Tag("slow")
class FabricFileLimitTest {
    private static final Duration LIMIT = Duration.ofSeconds(30);
    private static final int PEERS = 16;
    private static final int COMMS = 160;

    @BeforeAll
    static void libfabricIsThere() {
        FabricPair.assumeLibfabric();
    }

    /** The communicators of one transport to the listeners of a child. */
    private static final class Fan implements AutoCloseable {
        private final LibfabricTransport transport;
        private final ChildJvm child;
        private final NrtTensor source = NrtTensor.allocate((long) COMMS * FabricListeners.LENGTH);
        private final byte[][] handles = new byte[COMMS][];
        private final long[] comms = new long[COMMS];
        private final long[] registrations = new long[COMMS];
        private final NrtException[] failures = new NrtException[COMMS];
        private long messages;

        Fan(final LibfabricTransport transport, final ChildJvm child) {
            this.transport = transport;
            this.child = child;
            for (int i = 0; i < COMMS; i++) {
                final String line = child.awaitLine("handle " + i + " ", LIMIT);
                handles[i] = HexFormat.of().parseHex(line.substring(line.lastIndexOf(' ') + 1));
            }
        }

        /** Begins all that are not connected, and waits until each is, or has failed. */
        void connect() {
            Arrays.fill(failures, null);
            Await.until(LIMIT, () -> count() + " connected, " + failed() + " failed, of " + COMMS, () -> {
                for (int i = 0; i < COMMS; i++) {
                    if (comms[i] == 0 && failures[i] == null) {
                        try {
                            comms[i] = transport.connect(0, handles[i]);
                            registrations[i] = comms[i] == 0 ? 0 : FabricPair.register(transport, comms[i], source);
                        } catch (final NrtException ex) {
                            failures[i] = ex;
                        }
                    }
                }
                return count() + failed() == COMMS;
            });
        }

        long count() {
            return Arrays.stream(comms).filter(comm -> comm != 0).count();
        }

        long failed() {
            return Arrays.stream(failures).filter(Objects::nonNull).count();
        }

        /** A long message on each that is connected, with a number of its own, all at once. */
        void send() {
            final Set<Long> numbers = new HashSet<>();
            final List<Long> requests = new ArrayList<>();
            for (int i = 0; i < COMMS; i++) {
                if (comms[i] != 0) {
                    final long at = (long) i * FabricListeners.LENGTH;
                    messages++;
                    source.view(at, Long.BYTES).putLong(0, messages);
                    source.view(at + FabricListeners.LENGTH - Long.BYTES, Long.BYTES).putLong(0, messages);
                    numbers.add(messages);
                    requests.add(transport.isend(comms[i], source.address() + at, FabricListeners.LENGTH, registrations[i]));
                }
            }
            assertThat(requests).doesNotContain(NetTransport.NOT_YET);
            Await.until(LIMIT, () -> requests.size() + " sends", () -> {
                requests.removeIf(request -> transport.test(request) == FabricListeners.LENGTH);
                return requests.isEmpty();
            });
            while (!numbers.isEmpty()) {
                final String line = child.awaitLine("a message", text -> text.startsWith("got ") || text.startsWith("wrong "), LIMIT);
                assertThat(numbers.remove(Long.valueOf(line.substring("got ".length())))).as(line).isTrue();
            }
        }

        @Override
        public void close() {
            source.close();
        }
    }

    /** Enough for about half of the peers: each has a control connection, and over tcp one of the provider's, too. */
    @ParameterizedTest
    @CsvSource({"tcp;ofi_rxm,24", "shm,8"})
    @Timeout(120)
    void theLimitReachedInTheMiddleOf160FailsWhatItMeetsAndNothingElse(final String provider, final int spare) {
        try (ChildJvm child = ChildJvm.startUnder(NeedsLibfabric.SMALL_BUFFERS, List.of("-Xmx256m"), FabricListeners.class, provider,
            Integer.toString(PEERS), Integer.toString(COMMS / PEERS));
            LibfabricTransport transport = new LibfabricTransport(FabricPair.config(provider)); Fan fan = new Fan(transport, child)) {
            final List<NrtException> failures = new ArrayList<>();
            FileLimit.whileOnly(spare, () -> {
                fan.connect();
                failures.addAll(Arrays.stream(fan.failures).filter(Objects::nonNull).toList());
                fan.send();
            }, FabricFileLimitTest.class, LibfabricTransport.class);
            assertThat(fan.count()).as("connected with %d descriptors", spare).isBetween(1L * COMMS / PEERS, COMMS - 1L * COMMS / PEERS);
            assertThat(failures).hasSize(COMMS - (int) fan.count()).allSatisfy(failure -> {
                assertThat(failure).hasMessageContaining("Too many open files");
                assertThat(failure.status()).as("%s", failure).isEqualTo(NrtStatus.FAILURE);
            });
            fan.connect();
            assertThat(fan.failures).containsOnlyNulls();
            fan.send();
        }
    }
}
