package io.nrt4j.kv;

import static io.nrt4j.kv.KvTesting.IGNORE;
import static io.nrt4j.kv.KvTesting.LIMIT;
import static io.nrt4j.kv.KvTesting.bytes;
import static io.nrt4j.kv.KvTesting.loopback;
import static io.nrt4j.kv.KvTesting.readFrame;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nrt4j.NrtException;
import io.nrt4j.NrtStatus;
import io.nrt4j.testing.Await;
import io.nrt4j.testing.FreePorts;
import io.nrt4j.testing.HandClock;
import io.nrt4j.testing.Listeners;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Every transition of the client's machine, driven by hand against a socket that does what the test says. */
class KvClientTest {
    private static final long EPOCH = 77;

    private final HandClock clock = new HandClock();
    private final KvOptions options = KvOptions.DEFAULT.withClock(clock);
    private ServerSocket listener;
    private InetSocketAddress address;
    private Socket peer;
    private String value;

    @BeforeEach
    void listen() throws IOException {
        listener = new ServerSocket();
        listener.setReuseAddress(true);
        listener.bind(loopback(0));
        listener.setSoTimeout((int) LIMIT.toMillis());
        address = loopback(listener.getLocalPort());
    }

    @AfterEach
    void close() throws IOException {
        if (peer != null) {
            peer.close();
        }
        listener.close();
    }

    private KvClient get(final boolean retryOnNotFound, final KvOptions with) {
        return KvClient.get(address, bytes("key"), false, retryOnNotFound,
            (buffer, offset, length) -> value = new String(buffer, offset, length, StandardCharsets.ISO_8859_1), with);
    }

    private static void stepUntil(final KvClient client, final KvClient.State state) {
        Await.until(LIMIT, () -> state + ": " + client.describe(), () -> client.state() == state || client.step() < 0
            || client.state() == state);
    }

    /** Steps the client into RECEIVING and hands out what it sent. */
    private byte[] request(final KvClient client) throws IOException {
        stepUntil(client, KvClient.State.RECEIVING);
        if (peer == null) {
            peer = listener.accept();
            peer.setSoTimeout((int) LIMIT.toMillis());
        }
        return readFrame(peer);
    }

    private byte[] answer(final byte[] request, final int opcode, final String answerValue) {
        final byte[] frame = new byte[KvFrame.LENGTH];
        KvFrame.encode(frame, opcode, new byte[0], bytes(answerValue), EPOCH, KvFrame.nonce(request));
        return frame;
    }

    private void say(final byte[] frame) throws IOException {
        peer.getOutputStream().write(frame);
        peer.getOutputStream().flush();
    }

    private static void stepUntilDone(final KvClient client) {
        Await.until(LIMIT, client::describe, () -> {
            client.step();
            return client.isDone();
        });
    }

    private void assertFailed(final KvClient client, final String reason) {
        stepUntilDone(client);
        assertThat(client.state()).isEqualTo(KvClient.State.FAILED);
        assertThat(client.failure().status()).isEqualTo(NrtStatus.FAILURE);
        assertThat(client.failure()).hasMessageContaining(KvAddress.text(address)).hasMessageContaining(reason)
            .hasMessageContaining("'key'");
        assertThat(client.step()).isZero();
    }

    @Test
    void getWalksEveryStateAndSaysGoodbye() throws IOException {
        try (KvClient client = get(true, options)) {
            assertThat(client.state()).isEqualTo(KvClient.State.INIT);
            final byte[] request = request(client);
            assertThat(KvFrame.fault(request, true)).isNull();
            assertThat(KvFrame.opcode(request)).isEqualTo(KvFrame.GET);
            assertThat(KvFrame.key(request)).isEqualTo("key");
            assertThat(client.step()).as("nothing to read").isZero();
            final byte[] answer = answer(request, KvFrame.GET, "hello");
            say(Arrays.copyOf(answer, 500));
            Await.until(LIMIT, client::describe, () -> client.step() == 500);
            assertThat(client.state()).isEqualTo(KvClient.State.RECEIVING);
            say(Arrays.copyOfRange(answer, 500, answer.length));
            stepUntil(client, KvClient.State.CLOSING);
            assertThat(client.isDone()).isFalse();
            assertThat(value).isEqualTo("hello");
            stepUntilDone(client);
            assertThat(KvFrame.opcode(readFrame(peer))).isEqualTo(KvFrame.END);
            assertThat(peer.getInputStream().read()).isEqualTo(-1);
            assertThat(client.state()).isEqualTo(KvClient.State.CLOSING);
            assertThat(client.found()).isTrue();
            assertThat(client.serverEpoch()).isEqualTo(EPOCH);
            assertThat(client.failure()).isNull();
        }
    }

    @Test
    void setIsAcknowledgedAndTakeIsTakes() throws IOException {
        try (KvClient client = KvClient.set(address, bytes("key"), bytes("v"), options)) {
            final byte[] request = request(client);
            assertThat(KvFrame.opcode(request)).isEqualTo(KvFrame.SET);
            assertThat(KvFrame.value(request)).isEqualTo(bytes("v"));
            say(answer(request, KvFrame.SET, ""));
            stepUntilDone(client);
            assertThat(client.found()).isTrue();
        }
        peer.close();
        peer = null;
        try (KvClient client = KvClient.get(address, bytes("key"), true, false, IGNORE, options)) {
            final byte[] request = request(client);
            assertThat(KvFrame.opcode(request)).isEqualTo(KvFrame.TAKE);
            say(answer(request, KvFrame.GET, ""));
            assertFailed(client, "it answers GET");
        }
    }

    @Test
    void refusedGoesBackToInitAndPausesWithoutTouchingTheNetwork() throws IOException {
        final int port = FreePorts.next();
        address = loopback(port);
        try (KvClient client = get(true, options)) {
            stepUntilRefused(client);
            assertThat(client.state()).isEqualTo(KvClient.State.INIT);
            listener.close();
            listener = new ServerSocket();
            listener.setReuseAddress(true);
            listener.bind(address);
            for (int i = 0; i < 1000; i++) {
                assertThat(client.step()).isZero();
            }
            assertThat(client.state()).as("the clock stood still").isEqualTo(KvClient.State.INIT);
            clock.advance(99, TimeUnit.MICROSECONDS);
            client.step();
            assertThat(client.state()).isEqualTo(KvClient.State.INIT);
            clock.advance(1, TimeUnit.MICROSECONDS);
            final byte[] request = request(client);
            say(answer(request, KvFrame.GET, "late"));
            stepUntilDone(client);
            assertThat(value).isEqualTo("late");
        }
    }

    private static void stepUntilRefused(final KvClient client) {
        Await.until(LIMIT, client::describe, () -> {
            client.step();
            return client.state() == KvClient.State.INIT && client.describe().contains("refused");
        });
    }

    @Test
    void pausesGrowToTenMilliseconds() {
        address = loopback(FreePorts.next());
        try (KvClient client = get(true, options)) {
            stepUntilRefused(client);
            long expectedUs = 100;
            for (int attempt = 2; attempt < 20; attempt++) {
                clock.advance(expectedUs - 1, TimeUnit.MICROSECONDS);
                client.step();
                assertThat(client.describe()).contains(" " + (attempt - 1) + " connection attempts");
                clock.advance(1, TimeUnit.MICROSECONDS);
                stepUntilRefusedAgain(client, attempt);
                expectedUs = Math.min(10_000, expectedUs * 2);
            }
        }
    }

    private static void stepUntilRefusedAgain(final KvClient client, final int attempt) {
        Await.until(LIMIT, client::describe, () -> {
            client.step();
            return client.state() == KvClient.State.INIT && client.describe().contains(" " + attempt + " connection attempts");
        });
    }

    @Test
    void notFoundSendsAgainOnTheSameConnectionWithAnotherNonce() throws IOException {
        try (KvClient client = get(true, options)) {
            final byte[] first = request(client);
            say(answer(first, KvFrame.NOT_FOUND, ""));
            stepUntil(client, KvClient.State.SENDING);
            for (int i = 0; i < 1000; i++) {
                assertThat(client.step()).isZero();
            }
            assertThat(client.state()).isEqualTo(KvClient.State.SENDING);
            clock.advance(100, TimeUnit.MICROSECONDS);
            final byte[] second = request(client);
            assertThat(KvFrame.nonce(second)).isNotEqualTo(KvFrame.nonce(first));
            say(answer(first, KvFrame.GET, "stale"));
            assertFailed(client, "it answers another request");
            assertThat(value).isNull();
        }
    }

    @Test
    void notFoundWithoutRetryIsDone() throws IOException {
        try (KvClient client = get(false, options)) {
            sayOnly(client, KvFrame.NOT_FOUND);
            stepUntilDone(client);
            assertThat(client.isFailed()).isFalse();
            assertThat(client.found()).isFalse();
            assertThat(KvFrame.opcode(readFrame(peer))).isEqualTo(KvFrame.END);
        }
    }

    private void sayOnly(final KvClient client, final int opcode) throws IOException {
        say(answer(request(client), opcode, ""));
    }

    @Test
    void serverErrorFailsWithItsReason() throws IOException {
        try (KvClient client = get(true, options)) {
            say(answer(request(client), KvFrame.ERROR, "the store is full"));
            assertFailed(client, "server error: the store is full");
        }
    }

    @Test
    void strangersAreKnownByTheirFirstWrongByte() throws IOException {
        for (final String banner : new String[] {"SSH-2.0-OpenSSH_9.2\r\n", "\u0000", "HTTP/1.1 400 Bad Request\r\n", "\u0001\u0001X"}) {
            try (KvClient client = get(true, options)) {
                request(client);
                say(bytes(banner));
                assertFailed(client, "is not a key-value store");
            }
            peer.close();
            peer = null;
        }
    }

    @Test
    void anEchoIsNoAnswer() throws IOException {
        final KvOptions sealed = options.withSecret("secret");
        try (KvClient client = get(true, sealed)) {
            say(request(client));
            assertFailed(client, "it is a request, perhaps our own sent back");
        }
    }

    @Test
    void anAnswerWithoutOrWithAWrongSealIsRefused() throws IOException {
        try (KvClient client = get(true, options.withSecret("secret"))) {
            final byte[] request = request(client);
            assertThat(new KvSeal("secret").fault(request)).isNull();
            say(answer(request, KvFrame.GET, "forged"));
            assertFailed(client, "carries no MAC");
        }
        peer.close();
        peer = null;
        try (KvClient client = get(true, options.withSecret("secret"))) {
            final byte[] answer = answer(request(client), KvFrame.GET, "forged");
            new KvSeal("other").seal(answer);
            say(answer);
            assertFailed(client, "MAC is wrong");
        }
        assertThat(value).isNull();
    }

    @Test
    void withoutABudgetTheFirstLossFailsAsInTheOriginal() throws IOException {
        try (KvClient client = get(true, options.withLossBudget(0))) {
            request(client);
            peer.close();
            assertFailed(client, "connection closed by server after 0 bytes");
        }
    }

    @Test
    void aCutConnectionIsTriedAgainAndAnAnswerRestoresTheBudget() throws IOException {
        try (KvClient client = get(true, options.withLossBudget(1))) {
            for (int round = 0; round < 5; round++) {
                request(client);
                peer.setSoLinger(true, 0);
                peer.close();
                peer = null;
                stepUntil(client, KvClient.State.INIT);
                assertThat(client.step()).isZero();
                clock.advance(10, TimeUnit.MILLISECONDS);
                say(answer(request(client), KvFrame.NOT_FOUND, ""));
                stepUntil(client, KvClient.State.SENDING);
                clock.advance(10, TimeUnit.MILLISECONDS);
            }
            request(client);
            peer.close();
            peer = null;
            stepUntil(client, KvClient.State.INIT);
            clock.advance(10, TimeUnit.MILLISECONDS);
            request(client);
            peer.close();
            assertFailed(client, "2 times in a row");
        }
    }

    /** It says no more about the server than a refusal does: most likely it died before it could accept, and another one comes. */
    @Test
    void aConnectionThatIsResetBeforeTheClientSawItIsNoLoss() throws IOException {
        try (KvClient client = get(true, options.withLossBudget(0))) {
            for (int i = 0; i < 3; i++) {
                client.step();
                assertThat(client.state()).as(client.describe()).isEqualTo(KvClient.State.CONNECTING);
                resetOne();
                client.step();
                assertThat(client.state()).as(client.describe()).isEqualTo(KvClient.State.INIT);
                clock.advance(10, TimeUnit.MILLISECONDS);
            }
            say(answer(request(client), KvFrame.GET, "the next one"));
            stepUntilDone(client);
            assertThat(value).isEqualTo("the next one");
        }
    }

    /** A host may be busy, or its network gone for a while: only the owner's time limit ends the wait for it. */
    @Test
    void silenceIsNoLossHoweverLongItLasts() throws IOException {
        try (KvClient client = get(true, options.withLossBudget(0))) {
            for (int i = 1; i <= 30; i++) {
                request(client);
                clock.advance(5001, TimeUnit.MILLISECONDS);
                assertThat(client.step()).isZero();
                assertThat(client.state()).as(client.describe()).isEqualTo(KvClient.State.INIT);
                assertThat(client.describe()).contains("no answer for 5 s", i + " connection attempts");
                clock.advance(10, TimeUnit.MILLISECONDS);
                peer.close();
                peer = null;
            }
            say(answer(request(client), KvFrame.GET, "at last"));
            stepUntilDone(client);
            assertThat(value).isEqualTo("at last");
        }
    }

    /** What the clients in a listener's queue see when its process dies. */
    private void resetOne() throws IOException {
        final Socket accepted = listener.accept();
        accepted.setSoLinger(true, 0);
        accepted.close();
        Await.until(LIMIT, "the reset", () -> Listeners.clientsOf(address.getPort()) == 0);
    }

    @Test
    void aCutDuringTheGoodbyeTakesNothingAway() throws IOException {
        try (KvClient client = get(true, options)) {
            final byte[] answer = answer(request(client), KvFrame.GET, "v");
            say(answer);
            stepUntil(client, KvClient.State.CLOSING);
            peer.setSoLinger(true, 0);
            peer.close();
            stepUntilDone(client);
            assertThat(client.isFailed()).isFalse();
            assertThat(value).isEqualTo("v");
        }
    }

    @Test
    void aCallbackThatThrowsFailsTheRequest() throws IOException {
        final KvClient.Callback angry = (buffer, offset, length) -> {
            throw new IllegalStateException("wrong length " + length);
        };
        try (KvClient client = KvClient.get(address, bytes("key"), false, true, angry, options)) {
            say(answer(request(client), KvFrame.GET, "abc"));
            assertFailed(client, "wrong length 3");
        }
    }

    @Test
    void closeInAnyStateFreesTheSocket() throws IOException {
        for (final KvClient.State state : new KvClient.State[] {
            KvClient.State.INIT, KvClient.State.SENDING, KvClient.State.RECEIVING, KvClient.State.CLOSING}) {
            final KvClient client = get(true, options);
            if (state != KvClient.State.INIT) {
                stepUntil(client, KvClient.State.SENDING);
                peer = listener.accept();
                peer.setSoTimeout((int) LIMIT.toMillis());
            }
            if (state == KvClient.State.CLOSING) {
                say(answer(request(client), KvFrame.GET, ""));
            }
            if (state != KvClient.State.INIT) {
                stepUntil(client, state);
            }
            client.close();
            client.close();
            assertThat(client.isDone()).isTrue();
            assertThat(client.failure()).hasMessageContaining("closed by its owner").hasMessageContaining("in " + state);
            assertThat(client.step()).isZero();
            if (peer != null) {
                peer.getInputStream().readAllBytes();
                peer.close();
                peer = null;
            }
        }
    }

    @Test
    void aSilentServerLeavesItsDescriptionToTheOwner() throws IOException {
        try (KvClient client = get(true, options)) {
            request(client);
            clock.advance(1234, TimeUnit.MILLISECONDS);
            assertThat(client.step()).isZero();
            assertThat(client.describe()).contains(KvAddress.text(address), "RECEIVING", "1234 ms", "request sent");
        }
    }

    @Test
    void badArgumentsAreRefusedAtOnce() {
        assertThatThrownBy(() -> KvClient.set(address, new byte[145], new byte[1], options)).isInstanceOf(NrtException.class)
            .hasMessageContaining("145");
        assertThatThrownBy(() -> KvClient.set(address, new byte[0], new byte[1], options)).isInstanceOf(NrtException.class);
        assertThatThrownBy(() -> KvClient.set(address, new byte[1], new byte[953], options)).isInstanceOf(NrtException.class)
            .hasMessageContaining("953");
        assertThatThrownBy(() -> KvClient.set(InetSocketAddress.createUnresolved("localhost", 1), new byte[1], new byte[1], options))
            .isInstanceOf(NrtException.class).hasMessageContaining("not an IP address");
    }
}
