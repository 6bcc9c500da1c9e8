/*
 * The records that cross the boundary between a runtime and its collective library, in native layout: declared with the C types of
 * the interface and nothing else, so that the compiler says where the fields are.
 */
#ifndef NCCOM_RECORDS_H
#define NCCOM_RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    uint64_t major;
    uint64_t minor;
    uint64_t patch;
    uint64_t maintenance;
    char git_hash[16];
    uint64_t compatibility_id;
} nccom_version_info_t;

typedef struct {
    uint16_t sema_shift_offset;
    bool early_send_completion;
    bool early_recv_posting;
    uint32_t *inc_send_handshake;
    uint32_t *inc_send_complete;
    uint32_t *inc_recv_handshake;
    uint32_t *inc_recv_complete;
    uint32_t tx_entry_cnt;
    uint32_t rx_entry_cnt;
    uint32_t net_idx_loop_size;
    uint32_t initial_send_credits;
    uint32_t ending_recv_credits;
    size_t data_type_sz;
    bool is_dynamic_send_recv_sz;
    bool variable_peer;
    bool add_to_histogram;
    uint32_t basic_block_id;
    uint32_t func_rel_op_idx;
    uint32_t unrolled_count;
    void *enc_channel;
} net_ops_info_t;

typedef struct {
    uint32_t net_op_idx;
    int complete;
    uint64_t dev_addr;
    void *host_addr;
    void *nccl_mhandle;
    uint32_t size;
    int mark;
    void *proxy_histogram_tag;
    int dst_rank;
    void *dst_addr;
    void *dst_mhandle;
} net_src_addr_t;

typedef struct {
    uint32_t net_op_idx;
    int complete;
    uint64_t dev_addr;
    void *host_addr;
    void *nccl_mhandle;
    uint32_t size;
    int mark;
    int src_rank;
} net_dest_addr_t;

enum { NET_TRANSFER = 0, NET_OP_COMPLETE = 1, EXEC_COMPLETE = 2 };

#endif
