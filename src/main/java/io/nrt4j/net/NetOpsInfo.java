package io.nrt4j.net;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * One network operation of a block: its semaphores, its credits, how many entries it has. Ports {@code net_ops_info_t}.
 *
 * <pre>
 *  +0  sema_shift_offset u16        +40 tx_entry_cnt u32               +72 is_dynamic_send_recv_sz bool
 *  +2  early_send_completion bool   +44 rx_entry_cnt u32               +73 variable_peer bool
 *  +3  early_recv_posting bool      +48 net_idx_loop_size u32          +74 add_to_histogram bool
 *  +8  inc_send_handshake u32*      +52 initial_send_credits u32       +76 basic_block_id u32
 *  +16 inc_send_complete u32*       +56 ending_recv_credits u32        +80 func_rel_op_idx u32
 *  +24 inc_recv_handshake u32*      +60 (padding)                      +84 unrolled_count u32
 *  +32 inc_recv_complete u32*       +64 data_type_sz size_t            +88 enc_channel void*       96 bytes
 * </pre>
 *
 * @param semaShiftOffset      how far a semaphore's count is shifted to the left when it is stored, 0 to 31.
 * @param earlySendCompletion  a send counts as complete when the network took it.
 * @param earlyRecvPosting     receives are posted when the block is started, not only when it runs.
 * @param incSendHandshake     address of the word that tells the device how many sends it has credit for, or 0.
 * @param incSendComplete      address of the word that counts completed rounds of sends, or 0.
 * @param incRecvHandshake     address of the word that counts posted receives, or 0.
 * @param incRecvComplete      address of the word that counts completed rounds of receives, or 0.
 * @param txEntryCnt           entries of this operation in the source list.
 * @param rxEntryCnt           entries of this operation in the destination list.
 * @param netIdxLoopSize       carried, not interpreted.
 * @param initialSendCredits   most sends in flight, up to 128; 0 is 128.
 * @param endingRecvCredits    carried, not interpreted.
 * @param dataTypeSz           bytes of an element; carried, not interpreted.
 * @param dynamicSendRecvSz    a receive may be shorter than its entry says.
 * @param variablePeer         carried, not interpreted: entries name their peer in any case.
 * @param addToHistogram       carried, not interpreted.
 * @param basicBlockId         block that it belongs to; carried, not interpreted.
 * @param funcRelOpIdx         carried, not interpreted.
 * @param unrolledCount        carried, not interpreted.
 * @param encChannel           carried, not interpreted.
 */
public record NetOpsInfo(
    int semaShiftOffset,
    boolean earlySendCompletion,
    boolean earlyRecvPosting,
    long incSendHandshake,
    long incSendComplete,
    long incRecvHandshake,
    long incRecvComplete,
    int txEntryCnt,
    int rxEntryCnt,
    int netIdxLoopSize,
    int initialSendCredits,
    int endingRecvCredits,
    long dataTypeSz,
    boolean dynamicSendRecvSz,
    boolean variablePeer,
    boolean addToHistogram,
    int basicBlockId,
    int funcRelOpIdx,
    int unrolledCount,
    long encChannel) {

    /** Size of the native record. */
    public static final int BYTES = 96;

    /**
     * Starts an operation without entries, semaphores and special wishes.
     *
     * @return a builder.
     */
    public static Builder builder() {
        return new Builder();
    }

    /**
     * Writes the native record, padding as zeros.
     *
     * @param target gets {@link #BYTES} bytes at its position, which moves on; its byte order is left alone.
     */
    public void encode(final ByteBuffer target) {
        final ByteBuffer to = target.slice().order(ByteOrder.LITTLE_ENDIAN).limit(BYTES);
        for (int i = 0; i < BYTES; i += Long.BYTES) {
            to.putLong(i, 0);
        }
        to.putShort(0, (short) semaShiftOffset).put(2, bool(earlySendCompletion)).put(3, bool(earlyRecvPosting));
        to.putLong(8, incSendHandshake).putLong(16, incSendComplete);
        to.putLong(24, incRecvHandshake).putLong(32, incRecvComplete);
        to.putInt(40, txEntryCnt).putInt(44, rxEntryCnt).putInt(48, netIdxLoopSize);
        to.putInt(52, initialSendCredits).putInt(56, endingRecvCredits).putLong(64, dataTypeSz);
        to.put(72, bool(dynamicSendRecvSz)).put(73, bool(variablePeer)).put(74, bool(addToHistogram));
        to.putInt(76, basicBlockId).putInt(80, funcRelOpIdx).putInt(84, unrolledCount).putLong(88, encChannel);
        target.position(target.position() + BYTES);
    }

    private static byte bool(final boolean value) {
        return (byte) (value ? 1 : 0);
    }

    /** Collects the fields that matter to most operations. Not safe for use by several threads. */
    public static final class Builder {
        private int semaShiftOffset;
        private boolean earlySendCompletion;
        private boolean earlyRecvPosting;
        private long incSendHandshake;
        private long incSendComplete;
        private long incRecvHandshake;
        private long incRecvComplete;
        private int txEntryCnt;
        private int rxEntryCnt;
        private int initialSendCredits;
        private long dataTypeSz = 1;
        private boolean dynamicSendRecvSz;
        private int basicBlockId;

        private Builder() {
        }

        /**
         * How many entries there are.
         *
         * @param sends    in the source list.
         * @param receives in the destination list.
         * @return this.
         */
        public Builder entries(final int sends, final int receives) {
            txEntryCnt = sends;
            rxEntryCnt = receives;
            return this;
        }

        /**
         * Words that tell the device of completed rounds.
         *
         * @param send    address, or 0.
         * @param receive address, or 0.
         * @return this.
         */
        public Builder completeSemaphores(final long send, final long receive) {
            incSendComplete = send;
            incRecvComplete = receive;
            return this;
        }

        /**
         * Words that tell the device of credits for sends and of posted receives.
         *
         * @param send    address, or 0.
         * @param receive address, or 0.
         * @return this.
         */
        public Builder handshakeSemaphores(final long send, final long receive) {
            incSendHandshake = send;
            incRecvHandshake = receive;
            return this;
        }

        /**
         * Shift of the stored counts.
         *
         * @param bits 0 to 31.
         * @return this.
         */
        public Builder semaShiftOffset(final int bits) {
            semaShiftOffset = bits;
            return this;
        }

        /**
         * Most sends in flight.
         *
         * @param credits up to 128; 0 is 128.
         * @return this.
         */
        public Builder initialSendCredits(final int credits) {
            initialSendCredits = credits;
            return this;
        }

        /**
         * Whether a send counts as complete when the network took it.
         *
         * @param early false is when the network says that it is complete.
         * @return this.
         */
        public Builder earlySendCompletion(final boolean early) {
            earlySendCompletion = early;
            return this;
        }

        /**
         * Whether receives are posted when the block is started.
         *
         * @param early false is when it runs.
         * @return this.
         */
        public Builder earlyRecvPosting(final boolean early) {
            earlyRecvPosting = early;
            return this;
        }

        /**
         * Whether a receive may be shorter than its entry says.
         *
         * @param dynamic false makes a shorter one a failure.
         * @return this.
         */
        public Builder dynamicSizes(final boolean dynamic) {
            dynamicSendRecvSz = dynamic;
            return this;
        }

        /**
         * Size of an element.
         *
         * @param bytes carried, not interpreted.
         * @return this.
         */
        public Builder dataTypeSz(final long bytes) {
            dataTypeSz = bytes;
            return this;
        }

        /**
         * Block that the operation belongs to.
         *
         * @param id as it will be started.
         * @return this.
         */
        public Builder basicBlockId(final int id) {
            basicBlockId = id;
            return this;
        }

        /**
         * Makes the operation.
         *
         * @return an immutable operation.
         */
        public NetOpsInfo build() {
            return new NetOpsInfo(semaShiftOffset, earlySendCompletion, earlyRecvPosting, incSendHandshake, incSendComplete,
                incRecvHandshake, incRecvComplete, txEntryCnt, rxEntryCnt, 0, initialSendCredits, 0, dataTypeSz,
                dynamicSendRecvSz, false, false, basicBlockId, 0, 0, 0);
        }
    }
}
