package io.nrt4j.kv;

import static io.nrt4j.kv.KvTesting.bytes;
import static org.assertj.core.api.Assertions.assertThat;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Layout, what can and what cannot be a frame, and the seal. */
class KvFrameTest {
    private static final long EPOCH = 0x1122334455667788L;
    private static final long NONCE = 0x99AABBCCDDEEFF00L;

    private static byte[] frame(final int opcode, final long epoch) {
        final byte[] frame = new byte[KvFrame.LENGTH];
        KvFrame.encode(frame, opcode, bytes("key"), bytes("value"), epoch, NONCE);
        return frame;
    }

    @Test
    void layoutIsTheDocumentedOne() {
        final byte[] frame = new byte[KvFrame.LENGTH];
        new Random(1).nextBytes(frame);
        KvFrame.encode(frame, KvFrame.TAKE, bytes("ab"), bytes("xyz"), EPOCH, NONCE);
        final ByteBuffer expected = ByteBuffer.allocate(1156).order(ByteOrder.LITTLE_ENDIAN);
        expected.put(0, (byte) 3).put(1, (byte) 1).putShort(2, (short) 0x564B).putInt(4, 2).putInt(8, 3);
        expected.put(12, bytes("ab")).put(156, bytes("xyz")).putLong(1108, EPOCH).putLong(1116, NONCE);
        assertThat(frame).isEqualTo(expected.array());
        assertThat(KvFrame.opcode(frame)).isEqualTo(KvFrame.TAKE);
        assertThat(KvFrame.key(frame)).isEqualTo("ab");
        assertThat(KvFrame.value(frame)).isEqualTo(bytes("xyz"));
        assertThat(KvFrame.serverEpoch(frame)).isEqualTo(EPOCH);
        assertThat(KvFrame.nonce(frame)).isEqualTo(NONCE);
    }

    @Test
    void everyPrefixOfARightFrameIsRight() {
        for (int opcode = KvFrame.SET; opcode <= KvFrame.ERROR; opcode++) {
            for (final boolean request : new boolean[] {true, false}) {
                if (request ? opcode <= KvFrame.END : opcode != KvFrame.END) {
                    final byte[] frame = frame(opcode, request ? 0 : EPOCH);
                    for (int have = 0; have <= KvFrame.LENGTH; have++) {
                        assertThat(KvFrame.prefixFault(frame, have, request)).as("%d bytes", have).isNull();
                    }
                    assertThat(KvFrame.fault(frame, request)).isNull();
                }
            }
        }
    }

    @Test
    void firstBytesOfStrangersAreKnown() {
        for (int first = 0; first < 256; first++) {
            final byte[] frame = {(byte) first};
            assertThat(KvFrame.prefixFault(frame, 1, true) == null).as("request %d", first).isEqualTo(first >= 1 && first <= 4);
            assertThat(KvFrame.prefixFault(frame, 1, false) == null).as("answer %d", first)
                .isEqualTo(first >= 1 && first <= 6 && first != 4);
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 11})
    void aWrongHeaderByteIsKnownWhenItComesAndNotBefore(final int at) {
        final byte[] frame = frame(KvFrame.SET, 0);
        frame[at] = (byte) 0xFF;
        assertThat(KvFrame.prefixFault(frame, at, true)).isNull();
        assertThat(KvFrame.prefixFault(frame, at + 1, true)).isNotNull();
        assertThat(KvFrame.fault(frame, true)).isNotNull();
    }

    @Test
    void lengthsAtTheirLimits() {
        final byte[] frame = new byte[KvFrame.LENGTH];
        KvFrame.encode(frame, KvFrame.SET, new byte[144], new byte[952], 0, 1);
        assertThat(KvFrame.fault(frame, true)).isNull();
        frame[4] = (byte) 145;
        assertThat(KvFrame.fault(frame, true)).contains("key is longer than 144");
        frame[4] = (byte) 144;
        frame[8] = (byte) (953 & 0xFF);
        assertThat(KvFrame.fault(frame, true)).contains("value is longer than 952");
    }

    @ParameterizedTest
    @ValueSource(ints = {15, 155, 161, 1107})
    void unusedBytesMustBeZero(final int at) {
        final byte[] frame = frame(KvFrame.SET, 0);
        frame[at] = 1;
        assertThat(KvFrame.fault(frame, true)).contains("unused");
    }

    @Test
    void aRequestSentBackIsNoAnswerAndTheReverse() {
        assertThat(KvFrame.fault(frame(KvFrame.GET, 0), false)).contains("it is a request");
        assertThat(KvFrame.fault(frame(KvFrame.GET, EPOCH), true)).contains("it is an answer");
    }

    @Test
    void sealsRightWrongMissingAndUnexpected() {
        final KvSeal ours = new KvSeal("secret");
        final KvSeal theirs = new KvSeal("Secret");
        final KvSeal none = new KvSeal("");
        final byte[] frame = frame(KvFrame.SET, 0);
        none.seal(frame);
        assertThat(none.fault(frame)).isNull();
        assertThat(ours.fault(frame)).contains("carries no MAC");
        ours.seal(frame);
        assertThat(ours.fault(frame)).isNull();
        assertThat(theirs.fault(frame)).contains("MAC is wrong");
        assertThat(none.fault(frame)).contains("no secret is configured");
    }

    @Test
    void noByteOfASealedFrameCanBeChanged() {
        final KvSeal seal = new KvSeal("secret");
        final byte[] frame = frame(KvFrame.SET, 0);
        seal.seal(frame);
        for (int i = 0; i < KvFrame.LENGTH; i++) {
            frame[i] ^= 0x10;
            assertThat(seal.fault(frame)).as("byte %d", i).isNotNull();
            frame[i] ^= 0x10;
        }
        assertThat(seal.fault(frame)).isNull();
    }

    @Test
    void theMacIsHmacSha256() throws Exception {
        final byte[] frame = frame(KvFrame.SET, 0);
        final javax.crypto.Mac mac = javax.crypto.Mac.getInstance("HmacSHA256");
        mac.init(new javax.crypto.spec.SecretKeySpec(bytes("secret"), "HmacSHA256"));
        mac.update(frame, 0, 1124);
        new KvSeal("secret").seal(frame);
        assertThat(java.util.Arrays.copyOfRange(frame, 1124, 1156)).isEqualTo(mac.doFinal());
    }

    @Test
    void textsForLogsHoldNothingThatIsNotPrintable() {
        assertThat(KvFrame.printable("handle-\u0001\u0000x\u001b[31m\n\u0000\u0000")).isEqualTo("handle-..x.[31m.");
        assertThat(KvOptions.DEFAULT.withSecret("geheim").toString()).doesNotContain("geheim");
    }
}
