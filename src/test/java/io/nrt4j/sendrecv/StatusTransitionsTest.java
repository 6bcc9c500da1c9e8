package io.nrt4j.sendrecv;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nrt4j.NrtTensor;
import io.nrt4j.concurrent.NanoClock;
import java.net.InetAddress;
import java.util.EnumSet;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** Which way both machines may go, and the numbers of the original. */
class StatusTransitionsTest {
    @Test
    void theNumbersAreThoseOfTheOriginal() {
        assertThat(CommStatus.values()).extracting(CommStatus::code).containsExactly(0, 1, 2, 3, 4, 5, 6, 7);
        assertThat(CommStatus.values()).extracting(Enum::name).containsExactly("START_INIT", "WAIT_FOR_HOSTNAME",
            "WAIT_FOR_NET_HANDLE_GET", "WAIT_FOR_NET_HANDLE_SET", "NET_CONNECT", "LISTEN", "CONNECTED", "CONNECTION_ERROR");
        assertThat(RequestStatus.values()).extracting(RequestStatus::code).containsExactly(0, 1, 2, 3);
        assertThat(RequestStatus.values()).extracting(Enum::name).containsExactly("FREE", "STASHED", "OFI_POSTED", "ERROR");
        assertThat(RequestType.values()).extracting(RequestType::code).containsExactly(0, 1, 2);
        assertThat(CommType.values()).extracting(CommType::code).containsExactly(0, 1);
    }

    @Test
    void sendWalks0246() {
        assertMoves(CommType.SEND_COMM, CommStatus.START_INIT, CommStatus.WAIT_FOR_NET_HANDLE_GET);
        assertMoves(CommType.SEND_COMM, CommStatus.WAIT_FOR_NET_HANDLE_GET, CommStatus.NET_CONNECT);
        assertMoves(CommType.SEND_COMM, CommStatus.NET_CONNECT, CommStatus.CONNECTED, CommStatus.START_INIT);
    }

    @Test
    void recvWalks015346() {
        assertMoves(CommType.RECV_COMM, CommStatus.START_INIT, CommStatus.WAIT_FOR_HOSTNAME);
        assertMoves(CommType.RECV_COMM, CommStatus.WAIT_FOR_HOSTNAME, CommStatus.LISTEN);
        assertMoves(CommType.RECV_COMM, CommStatus.LISTEN, CommStatus.WAIT_FOR_NET_HANDLE_SET);
        assertMoves(CommType.RECV_COMM, CommStatus.WAIT_FOR_NET_HANDLE_SET, CommStatus.NET_CONNECT);
        assertMoves(CommType.RECV_COMM, CommStatus.NET_CONNECT, CommStatus.CONNECTED, CommStatus.WAIT_FOR_NET_HANDLE_SET);
    }

    /** Exactly these, and CONNECTION_ERROR. */
    private static void assertMoves(final CommType type, final CommStatus from, final CommStatus... to) {
        final Set<CommStatus> allowed = EnumSet.of(CommStatus.CONNECTION_ERROR, to);
        for (final CommStatus next : CommStatus.values()) {
            assertThat(from.mayMoveTo(next, type)).as("%s from %s to %s", type, from, next).isEqualTo(allowed.contains(next));
        }
    }

    @Test
    void nothingLeadsOutOfATerminalStateOrThroughTheOtherTypesStates() {
        for (final CommType type : CommType.values()) {
            for (final CommStatus next : CommStatus.values()) {
                assertThat(CommStatus.CONNECTED.mayMoveTo(next, type)).isFalse();
                assertThat(CommStatus.CONNECTION_ERROR.mayMoveTo(next, type)).isFalse();
            }
        }
        for (final CommStatus foreign : EnumSet.of(CommStatus.WAIT_FOR_HOSTNAME, CommStatus.LISTEN, CommStatus.WAIT_FOR_NET_HANDLE_SET)) {
            assertThat(foreign.isLegalFor(CommType.SEND_COMM)).isFalse();
            assertThat(foreign.mayMoveTo(CommStatus.CONNECTION_ERROR, CommType.SEND_COMM)).isFalse();
        }
        assertThat(CommStatus.WAIT_FOR_NET_HANDLE_GET.isLegalFor(CommType.RECV_COMM)).isFalse();
    }

    @Test
    void aRequestWalksItsMachineAndIllegalStepsAreRefusedLoudly() throws Exception {
        try (EngineRig rig = new EngineRig(); NrtTensor tensor = NrtTensor.allocate(8)) {
            final NrtAsyncSendRecv engine = rig.handDriven(builder -> builder, null, NanoClock.SYSTEM);
            EngineRig.init(engine, 0);
            final Communicator comm =
                new Communicator(engine.context(0), CommType.SEND_COMM, InetAddress.getByName(EngineRig.LOCALHOST), 1, 0);
            final RequestSlot slot = comm.freelist().pop();
            assertThat(slot.type()).isEqualTo(RequestType.NOTYPE);
            assertThat(RequestSlot.statusOf(slot.stateWord())).isEqualTo(RequestStatus.FREE);
            assertThatThrownBy(() -> slot.fail(new RuntimeException())).isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("FREE").hasMessageContaining("ERROR");
            assertThatThrownBy(() -> slot.posted(1, RequestStatus.STASHED)).isInstanceOf(IllegalStateException.class);
            slot.describe(tensor, 0, 8, 0);
            slot.stash();
            assertThatThrownBy(slot::stash).isInstanceOf(IllegalStateException.class);
            slot.posted(77, RequestStatus.STASHED);
            assertThat(RequestSlot.statusOf(slot.stateWord())).isEqualTo(RequestStatus.OFI_POSTED);
            assertThat(slot.netRequest()).isEqualTo(77);
            assertThatThrownBy(() -> slot.fail(new RuntimeException())).isInstanceOf(IllegalStateException.class);
            final long seen = slot.stateWord();
            final long generation = RequestSlot.generationOf(seen);
            assertThat(slot.finish(seen)).isTrue();
            assertThat(slot.finish(seen)).as("once").isFalse();
            assertThat(slot.clear()).isSameAs(tensor);
            assertThat(slot.type()).isEqualTo(RequestType.NOTYPE);
            assertThat(RequestSlot.generationOf(slot.stateWord())).isEqualTo(generation + 1);
            slot.describe(tensor, 0, 8, 0);
            slot.stash();
            slot.fail(new RuntimeException("why"));
            assertThat(RequestSlot.statusOf(slot.stateWord())).isEqualTo(RequestStatus.ERROR);
            assertThat(slot.failure()).hasMessage("why");
        }
    }
}
