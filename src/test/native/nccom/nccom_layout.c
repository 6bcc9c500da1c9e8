/* Prints where each field of each record is, as record.field=offset,size, and each record's size, as record=size. */
#include "nccom_records.h"
#include <stdio.h>

#define SIZE(type) printf(#type "=%zu\n", sizeof(type))
#define AT(type, field) printf(#type "." #field "=%zu,%zu\n", offsetof(type, field), sizeof(((type *)0)->field))

int main(void)
{
    SIZE(nccom_version_info_t);
    AT(nccom_version_info_t, major);
    AT(nccom_version_info_t, minor);
    AT(nccom_version_info_t, patch);
    AT(nccom_version_info_t, maintenance);
    AT(nccom_version_info_t, git_hash);
    AT(nccom_version_info_t, compatibility_id);

    SIZE(net_ops_info_t);
    AT(net_ops_info_t, sema_shift_offset);
    AT(net_ops_info_t, early_send_completion);
    AT(net_ops_info_t, early_recv_posting);
    AT(net_ops_info_t, inc_send_handshake);
    AT(net_ops_info_t, inc_send_complete);
    AT(net_ops_info_t, inc_recv_handshake);
    AT(net_ops_info_t, inc_recv_complete);
    AT(net_ops_info_t, tx_entry_cnt);
    AT(net_ops_info_t, rx_entry_cnt);
    AT(net_ops_info_t, net_idx_loop_size);
    AT(net_ops_info_t, initial_send_credits);
    AT(net_ops_info_t, ending_recv_credits);
    AT(net_ops_info_t, data_type_sz);
    AT(net_ops_info_t, is_dynamic_send_recv_sz);
    AT(net_ops_info_t, variable_peer);
    AT(net_ops_info_t, add_to_histogram);
    AT(net_ops_info_t, basic_block_id);
    AT(net_ops_info_t, func_rel_op_idx);
    AT(net_ops_info_t, unrolled_count);
    AT(net_ops_info_t, enc_channel);

    SIZE(net_src_addr_t);
    AT(net_src_addr_t, net_op_idx);
    AT(net_src_addr_t, complete);
    AT(net_src_addr_t, dev_addr);
    AT(net_src_addr_t, host_addr);
    AT(net_src_addr_t, nccl_mhandle);
    AT(net_src_addr_t, size);
    AT(net_src_addr_t, mark);
    AT(net_src_addr_t, proxy_histogram_tag);
    AT(net_src_addr_t, dst_rank);
    AT(net_src_addr_t, dst_addr);
    AT(net_src_addr_t, dst_mhandle);

    SIZE(net_dest_addr_t);
    AT(net_dest_addr_t, net_op_idx);
    AT(net_dest_addr_t, complete);
    AT(net_dest_addr_t, dev_addr);
    AT(net_dest_addr_t, host_addr);
    AT(net_dest_addr_t, nccl_mhandle);
    AT(net_dest_addr_t, size);
    AT(net_dest_addr_t, mark);
    AT(net_dest_addr_t, src_rank);
    return 0;
}
