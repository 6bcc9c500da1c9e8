package io.nrt4j.net;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Objects;

/**
 * Where one receive of a block goes, and whom it comes from. Ports {@code net_dest_addr_t}.
 *
 * <pre>
 *  +0 net_op_idx u32    +8  dev_addr u64       +32 size u32                      +40 src_rank int
 *  +4 complete int      +16 host_addr void*    +36 mark int                      +44 (padding)
 *                       +24 nccl_mhandle void*                                48 bytes
 * </pre>
 *
 * <p>Threads: {@code complete} is written and read by the thread that drives the block; everything else never changes.
 */
public final class NetDestAddr {
    /** Size of the native record. */
    public static final int BYTES = 48;

    private final int netOpIdx;
    private final long deviceAddress;
    private final long hostAddress;
    private final long registration;
    private final int sizeBytes;
    private final NetAddrMark mark;
    private final int srcRank;
    private int complete;

    /**
     * Makes an entry.
     *
     * @param netOpIdx      operation that it belongs to, by index.
     * @param deviceAddress address as the device knows it; carried, not interpreted.
     * @param hostAddress   where the first byte goes; 0 only in a bare {@link NetAddrMark#EXEC_COMPLETE}.
     * @param registration  covers the range; from the network.
     * @param sizeBytes     at least 0.
     * @param mark          what the entry's end means.
     * @param srcRank       rank that sends it.
     */
    public NetDestAddr(
        final int netOpIdx, final long deviceAddress, final long hostAddress, final long registration, final int sizeBytes,
        final NetAddrMark mark, final int srcRank) {
        this.netOpIdx = netOpIdx;
        this.deviceAddress = deviceAddress;
        this.hostAddress = hostAddress;
        this.registration = registration;
        this.sizeBytes = sizeBytes;
        this.mark = Objects.requireNonNull(mark);
        this.srcRank = srcRank;
    }

    /**
     * A receive into host memory.
     *
     * @param netOpIdx     operation that it belongs to, by index.
     * @param hostAddress  where the first byte goes.
     * @param registration covers the range.
     * @param sizeBytes    at least 0.
     * @param mark         what the entry's end means.
     * @param srcRank      rank that sends it.
     * @return the entry.
     */
    public static NetDestAddr receive(
        final int netOpIdx, final long hostAddress, final long registration, final int sizeBytes, final NetAddrMark mark,
        final int srcRank) {
        return new NetDestAddr(netOpIdx, hostAddress, hostAddress, registration, sizeBytes, mark, srcRank);
    }

    /**
     * The bare end of a list.
     *
     * @return an entry that transfers nothing.
     */
    public static NetDestAddr end() {
        return new NetDestAddr(0, 0, 0, 0, 0, NetAddrMark.EXEC_COMPLETE, -1);
    }

    /**
     * Writes the native record, padding as zeros.
     *
     * @param target gets {@link #BYTES} bytes at its position, which moves on; its byte order is left alone.
     */
    public void encode(final ByteBuffer target) {
        final ByteBuffer to = target.slice().order(ByteOrder.LITTLE_ENDIAN).limit(BYTES);
        to.putInt(0, netOpIdx).putInt(4, complete).putLong(8, deviceAddress).putLong(16, hostAddress).putLong(24, registration);
        to.putInt(32, sizeBytes).putInt(36, mark.code()).putInt(40, srcRank).putInt(44, 0);
        target.position(target.position() + BYTES);
    }

    /**
     * Operation that it belongs to.
     *
     * @return index.
     */
    public int netOpIdx() {
        return netOpIdx;
    }

    /**
     * Where the first byte goes.
     *
     * @return native address; 0 in a bare end.
     */
    public long hostAddress() {
        return hostAddress;
    }

    /**
     * Registration that covers the range.
     *
     * @return as the network gave it.
     */
    public long registration() {
        return registration;
    }

    /**
     * How much is received at most.
     *
     * @return bytes.
     */
    public int sizeBytes() {
        return sizeBytes;
    }

    /**
     * What the entry's end means.
     *
     * @return never null.
     */
    public NetAddrMark mark() {
        return mark;
    }

    /**
     * Rank that sends it.
     *
     * @return -1 in a bare end.
     */
    public int srcRank() {
        return srcRank;
    }

    /**
     * Whether this run's transfer is complete.
     *
     * @return false again when the block is armed anew.
     */
    public boolean isComplete() {
        return complete != 0;
    }

    /**
     * Sets or clears the mark of completion. For the thread that drives the block.
     *
     * @param done new value.
     */
    public void complete(final boolean done) {
        complete = done ? 1 : 0;
    }
}
