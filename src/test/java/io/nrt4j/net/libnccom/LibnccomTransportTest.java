package io.nrt4j.net.libnccom;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nrt4j.NrtConfig;
import io.nrt4j.NrtSetting;
import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.NrtTensor;
import io.nrt4j.Placement;
import io.nrt4j.net.NetTransport;
import io.nrt4j.net.libnccom.NccomStandIn.Live;
import io.nrt4j.testing.Await;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What this transport does beyond the contract. */
@ExtendWith(StandInGuard.class)
@Timeout(value = 120, unit = TimeUnit.SECONDS)
class LibnccomTransportTest {
    private static final Duration LIMIT = Duration.ofSeconds(20);

    private static NetTransport open() {
        return new LibnccomProvider().create(NccomStandIn.config().build());
    }

    /** The state of a connect that waits is in the handle's bytes, and must survive the way through Java. */
    @ParameterizedTest
    @ValueSource(ints = {0, 1})
    void aConnectThatWaitsKeepsItsStateInTheHandle(final int sockets) {
        NccomStandIn.set("CONNECT_WAITS", 1);
        NccomStandIn.set("SOCKETS", sockets);
        try (NetTransport transport = open()) {
            final byte[] handle = new byte[NetTransport.HANDLE_BYTES];
            final long listener = transport.listen(0, handle);
            final byte[] fresh = handle.clone();
            for (int i = 0; i < 100; i++) {
                assertThat(transport.connect(0, handle)).isEqualTo(NetTransport.NOT_YET);
            }
            assertThat(handle).isNotEqualTo(fresh);
            assertThat(NccomStandIn.live(Live.COMMS)).as("one connect, not a hundred").isEqualTo(1);
            assertThat(transport.accept(listener)).isNotEqualTo(NetTransport.NOT_YET);
            assertThat(transport.connect(0, handle)).isNotEqualTo(NetTransport.NOT_YET);
            assertThat(handle).isEqualTo(fresh);
            assertThat(transport.accept(listener)).isEqualTo(NetTransport.NOT_YET);
        }
        NccomStandIn.assertNothingOpen();
    }

    @Test
    void aListenerThatGoesAwayFailsAConnectThatWaitsAsStale() {
        NccomStandIn.set("CONNECT_WAITS", 1);
        try (NetTransport transport = open()) {
            final byte[] handle = new byte[NetTransport.HANDLE_BYTES];
            final long listener = transport.listen(0, handle);
            assertThat(transport.connect(0, handle)).isEqualTo(NetTransport.NOT_YET);
            transport.closeListen(listener);
            assertThatThrownBy(() -> transport.connect(0, handle)).isInstanceOfSatisfying(NrtException.class,
                ex -> assertThat(ex.status()).isEqualTo(NrtStatus.CLOSED)).hasMessageContaining("stale");
        }
        NccomStandIn.assertNothingOpen();
    }

    @Test
    void theNetworkStartsWithTheFirstAndEndsWithTheLast() {
        try (NetTransport first = open()) {
            assertThat(NccomStandIn.calls(NccomSymbol.INIT_NET)).isEqualTo(1);
            open().close();
            assertThat(NccomStandIn.calls(NccomSymbol.INIT_NET)).isEqualTo(1);
            assertThat(NccomStandIn.calls(NccomSymbol.FINI_PLUGIN)).isZero();
            assertThat(first.name()).isEqualTo("libnccom");
        }
        assertThat(NccomStandIn.calls(NccomSymbol.FINI_PLUGIN)).isEqualTo(1);
        NccomStandIn.assertNothingOpen();
    }

    @Test
    void anotherRootCommunicatorIdHasToWait() {
        final NrtConfig other = NccomStandIn.config().set(NrtSetting.ROOT_COMM_ID, "10.0.0.1:4000").build();
        final LibnccomProvider provider = new LibnccomProvider();
        try (NetTransport first = open()) {
            assertThat(first.maxMessageBytes()).isEqualTo(Integer.MAX_VALUE);
            assertThatThrownBy(() -> provider.create(other)).isInstanceOf(NrtException.class).hasMessageContaining("10.0.0.1:4000");
        }
        provider.create(other).close();
        NccomStandIn.assertNothingOpen();
    }

    @Test
    void aCloseEndsTheRegistrationsOfItsCommunicator() {
        try (NetTransport transport = open(); NrtTensor tensor = NrtTensor.allocate(1000)) {
            final byte[] handle = new byte[NetTransport.HANDLE_BYTES];
            final long listener = transport.listen(3, handle);
            final long send = transport.connect(3, handle);
            final long recv = transport.accept(listener);
            for (int i = 0; i < 50; i++) {
                transport.regMr(send, tensor.address(), 1000, Placement.HOST);
                transport.regMr(recv, tensor.address(), 1000, Placement.DEVICE);
            }
            assertThat(NccomStandIn.live(Live.MRS)).isEqualTo(100);
            transport.closeSend(send);
            assertThat(NccomStandIn.live(Live.MRS)).isEqualTo(50);
            transport.closeRecv(recv);
            assertThat(NccomStandIn.live(Live.MRS)).isZero();
            assertThat(NccomStandIn.live(Live.COMMS)).isZero();
            assertThat(NccomStandIn.live(Live.LISTENERS)).isEqualTo(1);
        }
        NccomStandIn.assertNothingOpen();
    }

    /** What is over, was never or is another's is refused before the library would follow a pointer. */
    @Test
    void nothingThatIsNotAHandleReachesTheLibrary() {
        try (NetTransport transport = open(); NrtTensor tensor = NrtTensor.allocate(100)) {
            final byte[] handle = new byte[NetTransport.HANDLE_BYTES];
            final long listener = transport.listen(0, handle);
            final long send = transport.connect(0, handle);
            final long recv = transport.accept(listener);
            final long registration = transport.regMr(recv, tensor.address(), 100, Placement.HOST);
            final long request = transport.irecv(recv, tensor.address(), 100, registration);
            for (final long wrong : new long[] {0, -1, 1, Long.MAX_VALUE, Long.MIN_VALUE, send, recv, listener, registration,
                request + 65536, request ^ 1L << 40}) {
                assertThatThrownBy(() -> transport.test(wrong)).as("test 0x%x", wrong).isInstanceOf(NrtException.class);
            }
            for (final long wrong : new long[] {0, -1, send, listener, request, registration}) {
                assertThatThrownBy(() -> transport.irecv(wrong, tensor.address(), 1, registration)).isInstanceOf(NrtException.class);
            }
            assertThatThrownBy(() -> transport.accept(recv)).isInstanceOf(NrtException.class);
            assertThatThrownBy(() -> transport.regMr(listener, tensor.address(), 1, Placement.HOST)).isInstanceOf(NrtException.class);
            transport.closeSend(recv);
            transport.closeListen(recv);
            assertThat(transport.test(request)).isEqualTo(NetTransport.PENDING);
            transport.closeRecv(recv);
            assertThatThrownBy(() -> transport.test(request)).isInstanceOf(NrtException.class);
        }
    }

    /** A registration may take long: it neither holds up the data path of its communicator nor survives its close. */
    @Test
    void aCloseWaitsForNothingButTheRegistrationsUnderWay() throws InterruptedException {
        try (NetTransport transport = open(); NrtTensor tensor = NrtTensor.allocate(1000)) {
            for (int round = 0; round < 200; round++) {
                final byte[] handle = new byte[NetTransport.HANDLE_BYTES];
                final long listener = transport.listen(0, handle);
                final long send = transport.connect(0, handle);
                final CountDownLatch started = new CountDownLatch(1);
                final Thread registrar = new Thread(() -> {
                    started.countDown();
                    try {
                        while (true) {
                            transport.deregMr(send, transport.regMr(send, tensor.address(), 1000, Placement.HOST));
                            transport.regMr(send, tensor.address(), 1000, Placement.HOST);
                        }
                    } catch (final NrtException ex) {
                        // The communicator was closed.
                    }
                });
                registrar.start();
                started.await();
                transport.closeSend(send);
                registrar.join(10_000);
                assertThat(registrar.isAlive()).isFalse();
                transport.closeListen(listener);
                assertThat(NccomStandIn.live(Live.MRS)).isZero();
            }
        }
        NccomStandIn.assertNothingOpen();
    }

    /** A registration that does not come back holds up neither the close of its communicator nor that of the transport. */
    @Test
    void aCloseGivesUpOnARegistrationThatDoesNotComeBackWhichThenEndsTheCommunicator() throws InterruptedException {
        final NetTransport transport = open();
        try (NrtTensor tensor = NrtTensor.allocate(1000)) {
            final byte[] handle = new byte[NetTransport.HANDLE_BYTES];
            transport.listen(0, handle);
            final long send = transport.connect(0, handle);
            transport.regMr(send, tensor.address(), 1000, Placement.HOST);
            NccomStandIn.set("HOLD_REG", 1);
            NccomStandIn.configure();
            final long before = NccomStandIn.calls(NccomSymbol.NET_REG_MR_OG);
            final Thread registrar = new Thread(() -> transport.regMr(send, tensor.address(), 1000, Placement.HOST));
            registrar.start();
            Await.until(LIMIT, "it is inside", () -> NccomStandIn.calls(NccomSymbol.NET_REG_MR_OG) > before);
            final long startNs = System.nanoTime();
            assertThatThrownBy(() -> transport.closeSend(send)).isInstanceOfSatisfying(NrtException.class,
                ex -> assertThat(ex.status()).isEqualTo(NrtStatus.TIMEOUT)).hasMessageContaining("send communicator")
                .hasMessageContaining("1 calls");
            transport.closeSend(send);
            transport.close();
            assertThat(System.nanoTime() - startNs).as("2 s for all").isLessThan(TimeUnit.SECONDS.toNanos(8));
            assertThat(NccomStandIn.live(Live.COMMS)).as("not closed under the call").isEqualTo(1);
            assertThat(NccomStandIn.calls(NccomSymbol.FINI_PLUGIN)).as("the network neither").isZero();
            NccomStandIn.set("HOLD_REG", 0);
            NccomStandIn.configure();
            registrar.join(10_000);
            assertThat(registrar.isAlive()).isFalse();
        }
        assertThat(NccomStandIn.calls(NccomSymbol.FINI_PLUGIN)).isEqualTo(1);
        NccomStandIn.assertNothingOpen();
    }

    @Test
    void moreInFlightThanTheTableBeganWith() {
        NccomStandIn.set("ROOM", 1000);
        try (NetTransport transport = open(); NrtTensor tensor = NrtTensor.allocate(1000)) {
            final byte[] handle = new byte[NetTransport.HANDLE_BYTES];
            final long listener = transport.listen(0, handle);
            final long send = transport.connect(0, handle);
            final long recv = transport.accept(listener);
            final long sendMr = transport.regMr(send, tensor.address(), 1000, Placement.HOST);
            final long recvMr = transport.regMr(recv, tensor.address(), 1000, Placement.HOST);
            final long[] requests = new long[1000];
            for (int i = 0; i < 1000; i++) {
                requests[i] = transport.irecv(recv, tensor.address() + i, 1, recvMr);
                assertThat(requests[i]).isNotEqualTo(NetTransport.NOT_YET);
            }
            assertThat(transport.irecv(recv, tensor.address(), 1, recvMr)).isEqualTo(NetTransport.NOT_YET);
            for (int i = 0; i < 1000; i++) {
                assertThat(transport.test(transport.isend(send, tensor.address() + i, 1, sendMr))).isEqualTo(1);
                assertThat(transport.test(requests[i])).isEqualTo(1);
            }
        }
        NccomStandIn.assertNothingOpen();
    }

    @Test
    void eachLncHasItsInterfaceAndItIsAskedForOnce() {
        try (NetTransport transport = open()) {
            for (int round = 0; round < 3; round++) {
                for (int lnc = 0; lnc < 128; lnc++) {
                    assertThat(transport.nicOf(lnc)).isEqualTo(lnc % 4);
                }
            }
            assertThat(NccomStandIn.calls(NccomSymbol.PREFERRED_NC_RID_NIC)).isEqualTo(128);
            assertThatThrownBy(() -> transport.nicOf(128)).isInstanceOf(NrtException.class);
        }
    }
}
