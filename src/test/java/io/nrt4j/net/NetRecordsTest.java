package io.nrt4j.net;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.BufferOverflowException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.junit.jupiter.api.Test;

/** The native layout of what crosses the proxy seam: sizes, and the offset of every field. */
class NetRecordsTest {
    private static final byte JUNK = (byte) 0x5a;

    /** A buffer with junk in it and a margin on both sides. */
    private static ByteBuffer junk(final int bytes) {
        final ByteBuffer buffer = ByteBuffer.allocate(bytes + 16);
        for (int i = 0; i < buffer.capacity(); i++) {
            buffer.put(i, JUNK);
        }
        return buffer.position(8);
    }

    private static ByteBuffer record(final ByteBuffer buffer, final int bytes) {
        assertThat(buffer.position()).isEqualTo(8 + bytes);
        for (int i = 0; i < 8; i++) {
            assertThat(buffer.get(i)).isEqualTo(JUNK);
            assertThat(buffer.get(8 + bytes + i)).isEqualTo(JUNK);
        }
        return buffer.slice(8, bytes).order(ByteOrder.LITTLE_ENDIAN);
    }

    @Test
    void opsInfoHas96Bytes() {
        final ByteBuffer buffer = junk(NetOpsInfo.BYTES);
        new NetOpsInfo(0x1234, true, true, 0x1_0000_0008L, 0x1_0000_0010L, 0x1_0000_0018L, 0x1_0000_0020L, 40, 44, 48, 52, 56,
            0x1_0000_0040L, true, true, true, 76, 80, 84, 0x1_0000_0058L).encode(buffer);
        final ByteBuffer record = record(buffer, 96);
        assertThat(record.getShort(0)).isEqualTo((short) 0x1234);
        assertThat(record.get(2)).isEqualTo((byte) 1);
        assertThat(record.get(3)).isEqualTo((byte) 1);
        assertThat(record.getInt(4)).isZero();
        for (final int pointer : new int[] {8, 16, 24, 32, 64, 88}) {
            assertThat(record.getLong(pointer)).as("+%d", pointer).isEqualTo(0x1_0000_0000L + pointer);
        }
        for (final int word : new int[] {40, 44, 48, 52, 56, 76, 80, 84}) {
            assertThat(record.getInt(word)).as("+%d", word).isEqualTo(word);
        }
        assertThat(record.getInt(60)).isZero();
        assertThat(record.getInt(72)).isEqualTo(0x00010101);
    }

    @Test
    void eachFlagOfOpsInfoHasItsOwnByte() {
        assertThat(flag(NetOpsInfo.builder().earlySendCompletion(true).build(), 2)).isTrue();
        assertThat(flag(NetOpsInfo.builder().earlySendCompletion(true).build(), 3)).isFalse();
        assertThat(flag(NetOpsInfo.builder().earlyRecvPosting(true).build(), 3)).isTrue();
        assertThat(flag(NetOpsInfo.builder().dynamicSizes(true).build(), 72)).isTrue();
        assertThat(flag(NetOpsInfo.builder().dynamicSizes(true).build(), 73)).isFalse();
    }

    private static boolean flag(final NetOpsInfo info, final int at) {
        final ByteBuffer buffer = ByteBuffer.allocate(96);
        info.encode(buffer);
        return buffer.get(at) == 1;
    }

    @Test
    void srcAddrHas72Bytes() {
        final ByteBuffer buffer = junk(NetSrcAddr.BYTES);
        final NetSrcAddr entry = new NetSrcAddr(7, 0x1_0000_0008L, 0x1_0000_0010L, 0x1_0000_0018L, 32, NetAddrMark.EXEC_COMPLETE, 48);
        entry.complete(true);
        entry.encode(buffer);
        final ByteBuffer record = record(buffer, 72);
        assertThat(record.getInt(0)).isEqualTo(7);
        assertThat(record.getInt(4)).isEqualTo(1);
        assertThat(record.getLong(8)).isEqualTo(0x1_0000_0008L);
        assertThat(record.getLong(16)).isEqualTo(0x1_0000_0010L);
        assertThat(record.getLong(24)).isEqualTo(0x1_0000_0018L);
        assertThat(record.getInt(32)).isEqualTo(32);
        assertThat(record.getInt(36)).isEqualTo(2);
        assertThat(record.getLong(40)).isZero();
        assertThat(record.getInt(48)).isEqualTo(48);
        assertThat(record.getInt(52)).isZero();
        assertThat(record.getLong(56)).isZero();
        assertThat(record.getLong(64)).isZero();
    }

    @Test
    void destAddrHas48Bytes() {
        final ByteBuffer buffer = junk(NetDestAddr.BYTES);
        final NetDestAddr entry = new NetDestAddr(7, 0x1_0000_0008L, 0x1_0000_0010L, 0x1_0000_0018L, 32,
            NetAddrMark.NET_OP_COMPLETE, 40);
        entry.encode(buffer);
        final ByteBuffer record = record(buffer, 48);
        assertThat(record.getInt(0)).isEqualTo(7);
        assertThat(record.getInt(4)).isZero();
        assertThat(record.getLong(8)).isEqualTo(0x1_0000_0008L);
        assertThat(record.getLong(16)).isEqualTo(0x1_0000_0010L);
        assertThat(record.getLong(24)).isEqualTo(0x1_0000_0018L);
        assertThat(record.getInt(32)).isEqualTo(32);
        assertThat(record.getInt(36)).isEqualTo(1);
        assertThat(record.getInt(40)).isEqualTo(40);
        assertThat(record.getInt(44)).isZero();
    }

    @Test
    void aBufferThatIsTooSmallStaysAsItIs() {
        final ByteBuffer buffer = ByteBuffer.allocate(95);
        assertThatThrownBy(() -> NetOpsInfo.builder().entries(1, 1).build().encode(buffer))
            .isInstanceOfAny(IllegalArgumentException.class, BufferOverflowException.class);
        assertThat(buffer.position()).isZero();
        assertThat(buffer.array()).containsOnly(0);
    }

    @Test
    void marksHaveTheOriginalsValues() {
        assertThat(NetAddrMark.NET_TRANSFER.code()).isZero();
        assertThat(NetAddrMark.NET_OP_COMPLETE.code()).isEqualTo(1);
        assertThat(NetAddrMark.EXEC_COMPLETE.code()).isEqualTo(2);
    }
}
