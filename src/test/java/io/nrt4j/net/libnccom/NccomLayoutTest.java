package io.nrt4j.net.libnccom;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.jna.Memory;
import io.nrt4j.net.NetAddrMark;
import io.nrt4j.net.NetDestAddr;
import io.nrt4j.net.NetOpsInfo;
import io.nrt4j.net.NetSrcAddr;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** The native records against what a C compiler makes of their declarations. */
class NccomLayoutTest {
    /** From the program: record=size, record.field=offset,size. */
    private static final Map<String, int[]> LAYOUT = new LinkedHashMap<>();

    private final Set<String> compared = new HashSet<>();

    @BeforeAll
    static void askTheCompiler() {
        NccomStandIn.assumeGcc();
        for (final String line : NccomStandIn.run(List.of(NccomStandIn.program("nccom_layout.c").toString()))) {
            final String[] sides = line.split("=");
            final String[] numbers = sides[1].split(",");
            LAYOUT.put(sides[0], numbers.length == 1 ? new int[] {Integer.parseInt(numbers[0])}
                : new int[] {Integer.parseInt(numbers[0]), Integer.parseInt(numbers[1])});
        }
    }

    private void expect(final ByteBuffer record, final String field, final long value) {
        final int[] at = LAYOUT.get(field);
        assertThat(at).as(field).isNotNull();
        final long found = switch (at[1]) {
            case 1 -> record.get(at[0]);
            case 2 -> record.getShort(at[0]) & 0xFFFFL;
            case 4 -> record.getInt(at[0]) & 0xFFFFFFFFL;
            default -> record.getLong(at[0]);
        };
        assertThat(found).as(field).isEqualTo(value);
        compared.add(field);
    }

    /** Every field of the record was looked at, and what is no field is 0. */
    private void expectComplete(final ByteBuffer record, final String name) {
        final byte[] rest = new byte[record.capacity()];
        record.get(0, rest);
        LAYOUT.forEach((field, at) -> {
            if (field.startsWith(name + ".")) {
                assertThat(compared).contains(field);
                java.util.Arrays.fill(rest, at[0], at[0] + at[1], (byte) 0);
            }
        });
        assertThat(rest).as("padding of " + name).containsOnly(0);
        assertThat(record.capacity()).isEqualTo(LAYOUT.get(name)[0]);
    }

    /** A buffer that is not zero, so that what is not written shows. */
    private static ByteBuffer dirty(final int bytes) {
        final ByteBuffer buffer = ByteBuffer.allocate(bytes).order(ByteOrder.LITTLE_ENDIAN);
        java.util.Arrays.fill(buffer.array(), (byte) 0x5A);
        return buffer;
    }

    @Test
    void netOpsInfo() {
        final ByteBuffer record = dirty(NetOpsInfo.BYTES);
        new NetOpsInfo(31, true, true, 0x1111_2222_3333_4444L, 0x1112L, 0x1113L, 0x1114L, 0x21, 0x22, 0x23, 0x24, 0x25,
            0x3131_3131_3131_3131L, true, true, true, 0x41, 0x42, 0x43, 0x5151_5151_5151_5151L).encode(record);
        final String name = "net_ops_info_t";
        expect(record, name + ".sema_shift_offset", 31);
        expect(record, name + ".early_send_completion", 1);
        expect(record, name + ".early_recv_posting", 1);
        expect(record, name + ".inc_send_handshake", 0x1111_2222_3333_4444L);
        expect(record, name + ".inc_send_complete", 0x1112);
        expect(record, name + ".inc_recv_handshake", 0x1113);
        expect(record, name + ".inc_recv_complete", 0x1114);
        expect(record, name + ".tx_entry_cnt", 0x21);
        expect(record, name + ".rx_entry_cnt", 0x22);
        expect(record, name + ".net_idx_loop_size", 0x23);
        expect(record, name + ".initial_send_credits", 0x24);
        expect(record, name + ".ending_recv_credits", 0x25);
        expect(record, name + ".data_type_sz", 0x3131_3131_3131_3131L);
        expect(record, name + ".is_dynamic_send_recv_sz", 1);
        expect(record, name + ".variable_peer", 1);
        expect(record, name + ".add_to_histogram", 1);
        expect(record, name + ".basic_block_id", 0x41);
        expect(record, name + ".func_rel_op_idx", 0x42);
        expect(record, name + ".unrolled_count", 0x43);
        expect(record, name + ".enc_channel", 0x5151_5151_5151_5151L);
        expectComplete(record, name);
    }

    /** Each flag alone, so that none stands in for another. */
    @Test
    void netOpsInfoFlags() {
        final String[] flags = {"early_send_completion", "early_recv_posting", "is_dynamic_send_recv_sz", "variable_peer",
            "add_to_histogram"};
        for (int set = 0; set < flags.length; set++) {
            final ByteBuffer record = dirty(NetOpsInfo.BYTES);
            new NetOpsInfo(0, set == 0, set == 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, set == 2, set == 3, set == 4, 0, 0, 0, 0).encode(record);
            for (int i = 0; i < flags.length; i++) {
                expect(record, "net_ops_info_t." + flags[i], i == set ? 1 : 0);
            }
        }
    }

    @Test
    void netSrcAddr() {
        final ByteBuffer record = dirty(NetSrcAddr.BYTES);
        final NetSrcAddr entry = new NetSrcAddr(0x61, 0x6262_6262_6262_6262L, 0x6363_6363_6363_6363L, 0x6464_6464_6464_6464L, 0x65,
            NetAddrMark.EXEC_COMPLETE, 0x66);
        entry.complete(true);
        entry.encode(record);
        final String name = "net_src_addr_t";
        expect(record, name + ".net_op_idx", 0x61);
        expect(record, name + ".complete", 1);
        expect(record, name + ".dev_addr", 0x6262_6262_6262_6262L);
        expect(record, name + ".host_addr", 0x6363_6363_6363_6363L);
        expect(record, name + ".nccl_mhandle", 0x6464_6464_6464_6464L);
        expect(record, name + ".size", 0x65);
        expect(record, name + ".mark", 2);
        expect(record, name + ".proxy_histogram_tag", 0);
        expect(record, name + ".dst_rank", 0x66);
        expect(record, name + ".dst_addr", 0);
        expect(record, name + ".dst_mhandle", 0);
        expectComplete(record, name);
    }

    @Test
    void netDestAddr() {
        final ByteBuffer record = dirty(NetDestAddr.BYTES);
        final NetDestAddr entry = new NetDestAddr(0x71, 0x7272_7272_7272_7272L, 0x7373_7373_7373_7373L, 0x7474_7474_7474_7474L, 0x75,
            NetAddrMark.NET_OP_COMPLETE, 0x76);
        entry.complete(true);
        entry.encode(record);
        final String name = "net_dest_addr_t";
        expect(record, name + ".net_op_idx", 0x71);
        expect(record, name + ".complete", 1);
        expect(record, name + ".dev_addr", 0x7272_7272_7272_7272L);
        expect(record, name + ".host_addr", 0x7373_7373_7373_7373L);
        expect(record, name + ".nccl_mhandle", 0x7474_7474_7474_7474L);
        expect(record, name + ".size", 0x75);
        expect(record, name + ".mark", 1);
        expect(record, name + ".src_rank", 0x76);
        expectComplete(record, name);
    }

    @Test
    void versionInfo() {
        try (Memory info = new Memory(NccomVersion.BYTES)) {
            final String name = "nccom_version_info_t";
            info.clear();
            info.setLong(LAYOUT.get(name + ".major")[0], 1);
            info.setLong(LAYOUT.get(name + ".minor")[0], 2);
            info.setLong(LAYOUT.get(name + ".patch")[0], 3);
            info.setLong(LAYOUT.get(name + ".maintenance")[0], 4);
            info.write(LAYOUT.get(name + ".git_hash")[0], "0123456789abcdef".getBytes(java.nio.charset.StandardCharsets.US_ASCII), 0, 16);
            info.setLong(LAYOUT.get(name + ".compatibility_id")[0], 89);
            assertThat(NccomVersion.read(info)).isEqualTo(new NccomVersion(1, 2, 3, 4, "0123456789abcdef", 89));
            assertThat(NccomVersion.BYTES).isEqualTo(LAYOUT.get(name)[0]);
            assertThat(NccomVersion.GIT_HASH_BYTES).isEqualTo(LAYOUT.get(name + ".git_hash")[1]);
        }
    }
}
