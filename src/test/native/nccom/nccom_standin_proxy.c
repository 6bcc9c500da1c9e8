/*
 * The communicator functions of the stand-in: set-up, bootstrap, and the proxy seam over its own net functions. Ranks find one
 * another at socket names made of the root id; links are made when they are first needed. See nccom_standin.c.
 */
#define _GNU_SOURCE
#include "nccom_standin.h"
#include "nccom_settings.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MAX_RANKS 64
#define BOOTSTRAP_STREAM MAX_STREAMS
#define LINKS (MAX_STREAMS + 1)
#define WINDOW 128
#define NONE (-1)

struct block {
    int id;
    int running;
    int has_run;
    net_ops_info_t *ops;
    net_src_addr_t *src;
    net_dest_addr_t *dest;
    int ops_n;
    int src_n;
    int dest_n;
    int sent;
    int send_done;
    int posted;
    int recv_done;
    struct request *sends[WINDOW];
    struct request *recvs[WINDOW];
    uint64_t sum;
    struct block *next;
};

struct stream {
    struct block *blocks;
    struct block *current;
    int pending;
    int failed;
};

struct global_comm {
    uint64_t magic;
    int rank;
    int ranks;
    char root[64];
    atomic_flag in_call;
    struct stream streams[MAX_STREAMS];
    struct comm *to[LINKS][MAX_RANKS];
    struct comm *from[LINKS][MAX_RANKS];
    int listening[LINKS][MAX_RANKS];
};

static struct global_comm *check(const char *name, void *comm)
{
    struct global_comm *global = comm;
    if (!aligned(comm, 8) || global->magic != MAGIC_GLOBAL) {
        violation("%s: %p is no communicator", name, comm);
        return NULL;
    }
    return global;
}

#define CHECKED(name) \
    struct global_comm *global = check(#name, comm); \
    if (!global) { \
        return INVALID; \
    }

static struct global_comm *global_new(int rank, int ranks, const char *root)
{
    struct global_comm *global = calloc(1, sizeof(*global));
    global->magic = MAGIC_GLOBAL;
    global->rank = rank;
    global->ranks = ranks;
    snprintf(global->root, sizeof(global->root), "%s", root);
    for (int s = 0; s < LINKS; s++) {
        for (int r = 0; r < MAX_RANKS; r++) {
            global->listening[s][r] = -1;
        }
    }
    for (int s = 0; s < MAX_STREAMS; s++) {
        global->streams[s].pending = NONE;
    }
    live[LIVE_GLOBALS]++;
    return global;
}

/* Where the ranks of a root wait for one another; come counts the calls, and each full round of ranks goes on together. */
struct meeting {
    char root[128];
    int stage;
    int come;
    struct meeting *next;
};

static int meet(const char *root, int stage, int ranks)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static pthread_cond_t come = PTHREAD_COND_INITIALIZER;
    static struct meeting *meetings;
    struct timespec limit;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += 10;
    pthread_mutex_lock(&lock);
    struct meeting *meeting = meetings;
    while (meeting && (meeting->stage != stage || strcmp(meeting->root, root))) {
        meeting = meeting->next;
    }
    if (!meeting) {
        meeting = calloc(1, sizeof(*meeting));
        snprintf(meeting->root, sizeof(meeting->root), "%s", root);
        meeting->stage = stage;
        meeting->next = meetings;
        meetings = meeting;
    }
    int all = (meeting->come++ / ranks + 1) * ranks;
    pthread_cond_broadcast(&come);
    int rc = 0;
    while (meeting->come < all && !rc) {
        rc = pthread_cond_timedwait(&come, &lock, &limit);
    }
    int met = meeting->come >= all;
    pthread_mutex_unlock(&lock);
    return met ? OK : FAILURE;
}

EXPORT int neuronGetUniqueId(char id[128], int rank_n, const char *hint)
{
    record("neuronGetUniqueId(%d,%d,%s)", id != NULL, rank_n, hint);
    ENTER(neuronGetUniqueId);
    if (!id || rank_n < 1) {
        return violation("neuronGetUniqueId(%p, %d)", (void *)id, rank_n);
    }
    static _Atomic int ids;
    memset(id, 0, 128);
    snprintf(id, 128, "unique-%d-%d", (int)getpid(), ids++);
    return OK;
}

EXPORT int neuronInitGlobalComm(int g_dev_id, int g_dev_count, const void *device_info, const char *root_id, void **comm,
    const char *hint)
{
    record("neuronInitGlobalComm(%d,%d,%p,%s,%d,%s)", g_dev_id, g_dev_count, device_info, root_id, comm != NULL, hint);
    ENTER(neuronInitGlobalComm);
    if (g_dev_count < 1 || g_dev_count > MAX_RANKS || g_dev_id < 0 || g_dev_id >= g_dev_count || !root_id || !aligned(comm, 8)) {
        return violation("neuronInitGlobalComm(%d, %d, %p, %s, %p, %s)", g_dev_id, g_dev_count, device_info, root_id, (void *)comm,
            hint);
    }
    if (settings.init_waits && meet(root_id, 0, g_dev_count)) {
        return FAILURE;
    }
    *comm = global_new(g_dev_id, g_dev_count, root_id);
    return OK;
}

EXPORT int neuronInitComm(void **comm, int rank_n, char *id, int rank, const void *device_info, bool bypass_graph)
{
    record("neuronInitComm(%d,%d,%s,%d,%p,%d)", comm != NULL, rank_n, id, rank, device_info, bypass_graph);
    ENTER(neuronInitComm);
    if (!aligned(comm, 8) || rank_n < 1 || rank_n > MAX_RANKS || rank < 0 || rank >= rank_n || !id) {
        return violation("neuronInitComm(%p, %d, %p, %d)", (void *)comm, rank_n, (void *)id, rank);
    }
    *comm = global_new(rank, rank_n, id);
    return OK;
}

EXPORT int neuronBuildGraphComm(void *comm)
{
    record("neuronBuildGraphComm(%p)", comm);
    ENTER(neuronBuildGraphComm);
    CHECKED(neuronBuildGraphComm)
    return settings.init_waits ? meet(global->root, 1, global->ranks) : OK;
}

EXPORT int neuronGetCommInfo(void *comm, void *out)
{
    record("neuronGetCommInfo(%p,%d)", comm, out != NULL);
    ENTER(neuronGetCommInfo);
    if (!check("neuronGetCommInfo", comm) || !aligned(out, 8)) {
        return INVALID;
    }
    memset(out, 0x5a, 1376);
    return OK;
}

EXPORT int neuronExpandConnectivity(void *comm, int connectivity)
{
    record("neuronExpandConnectivity(%p,%d)", comm, connectivity);
    ENTER(neuronExpandConnectivity);
    return check("neuronExpandConnectivity", comm) ? OK : INVALID;
}

EXPORT int neuronGetPeerDeviceId(void *comm, int peer, int *out)
{
    record("neuronGetPeerDeviceId(%p,%d,%d)", comm, peer, out != NULL);
    ENTER(neuronGetPeerDeviceId);
    CHECKED(neuronGetPeerDeviceId)
    if (peer < 0 || peer >= global->ranks || !aligned(out, 4)) {
        return violation("neuronGetPeerDeviceId(%p, %d, %p)", comm, peer, (void *)out);
    }
    *out = peer;
    return OK;
}

EXPORT int neuronGetNetConnector(void *comm, int pattern, int peer, bool send, void **out)
{
    record("neuronGetNetConnector(%p,%d,%d,%d,%d)", comm, pattern, peer, send, out != NULL);
    ENTER(neuronGetNetConnector);
    if (!check("neuronGetNetConnector", comm) || !aligned(out, 8)) {
        return INVALID;
    }
    *out = comm;
    return OK;
}

EXPORT int neuronNetRegMr(void *comm, int pattern, int peer, bool send, int ofi_comm_type, void *data, size_t size, int ptr_type,
    void **mhandle)
{
    record("neuronNetRegMr(%p,%d,%d,%d,%d,%p,%zu,%d,%d)", comm, pattern, peer, send, ofi_comm_type, data, size, ptr_type,
        mhandle != NULL);
    ENTER(neuronNetRegMr);
    if (!check("neuronNetRegMr", comm) || !data || !size || !aligned(mhandle, 8)) {
        return violation("neuronNetRegMr(%p, %d, %d, %d, %d, %p, %zu, %d, %p)", comm, pattern, peer, send, ofi_comm_type, data, size,
            ptr_type, (void *)mhandle);
    }
    int rc = mr_check_type(ptr_type);
    *mhandle = rc ? NULL : mr_new(comm, data, size);
    return rc;
}

EXPORT int neuronNetDeregMr(void *comm, int pattern, int peer, bool send, int ofi_comm_type, void *mhandle)
{
    struct mr *mr = mhandle;
    record("neuronNetDeregMr(%p,%d,%d,%d,%d,%p)", comm, pattern, peer, send, ofi_comm_type, mhandle);
    ENTER(neuronNetDeregMr);
    if (!check("neuronNetDeregMr", comm) || !aligned(mr, 8) || mr->magic != MAGIC_MR || mr->owner != comm) {
        return violation("neuronNetDeregMr(%p, %p)", comm, mhandle);
    }
    mr_free(mr);
    return OK;
}

/* ---- links between ranks */

static void link_name(char name[96], const struct global_comm *global, int from, int to, int stream)
{
    snprintf(name, 96, "nccom-%s-%d-%d-%d", global->root, from, to, stream);
}

/* The way to a peer, or NULL while the peer does not listen yet. */
static struct comm *link_to(struct global_comm *global, int stream, int peer)
{
    if (!global->to[stream][peer]) {
        char name[96];
        link_name(name, global, global->rank, peer, stream);
        int fd = net_socket_at(name, 0);
        if (fd >= 0) {
            global->to[stream][peer] = net_link(fd, KIND_SEND);
        }
    }
    return global->to[stream][peer];
}

static struct comm *link_from(struct global_comm *global, int stream, int peer)
{
    int *listening = &global->listening[stream][peer];
    if (!global->from[stream][peer] && *listening < 0) {
        char name[96];
        link_name(name, global, peer, global->rank, stream);
        *listening = net_socket_at(name, 1);
    }
    if (!global->from[stream][peer] && *listening >= 0) {
        int fd = accept4(*listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            global->from[stream][peer] = net_link(fd, KIND_RECV);
            close(*listening);
            *listening = -1;
        }
    }
    return global->from[stream][peer];
}

EXPORT int neuronFreeComm(void *comm)
{
    record("neuronFreeComm(%p)", comm);
    ENTER(neuronFreeComm);
    CHECKED(neuronFreeComm)
    for (int s = 0; s < LINKS; s++) {
        for (int r = 0; r < MAX_RANKS; r++) {
            if (global->to[s][r]) {
                net_close(global->to[s][r]);
            }
            if (global->from[s][r]) {
                net_close(global->from[s][r]);
            }
            if (global->listening[s][r] >= 0) {
                close(global->listening[s][r]);
            }
        }
    }
    global->magic = 0;
    live[LIVE_GLOBALS]--;
    return OK;
}

/* ---- bootstrap: small messages between ranks, blocking up to ten seconds */

static int wait_for(struct global_comm *global, int peer, int sending, void *data, size_t size)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    time_t limit = now.tv_sec + 10;
    struct request *request = NULL;
    int done = 0;
    int moved = 0;
    while (now.tv_sec < limit) {
        struct comm *link = sending ? link_to(global, BOOTSTRAP_STREAM, peer) : link_from(global, BOOTSTRAP_STREAM, peer);
        int rc = OK;
        if (request) {
            rc = net_test(request, &done, &moved);
        } else if (link) {
            rc = net_post(link, sending ? KIND_SEND : KIND_RECV, data, (int)size, NULL, &request);
        }
        if (rc || done) {
            return rc ? rc : (size_t)moved == size ? OK : FAILURE;
        }
        clock_gettime(CLOCK_MONOTONIC, &now);
    }
    return FAILURE;
}

static int bootstrap(const char *name, void *state, int peer, void *data, size_t size, int sending)
{
    struct global_comm *global = check(name, state);
    if (!global || peer < 0 || peer >= global->ranks || !data || size > 1 << 20) {
        return violation("%s(%p, %d, %p, %zu)", name, state, peer, data, size);
    }
    return wait_for(global, peer, sending, data, size);
}

EXPORT int neuronBootstrapSend(void *state, int peer, void *data, size_t size, const char *hint)
{
    record("neuronBootstrapSend(%p,%d,%p,%zu,%s)", state, peer, data, size, hint);
    ENTER(neuronBootstrapSend);
    return bootstrap("neuronBootstrapSend", state, peer, data, size, 1);
}

EXPORT int neuronBootstrapRecv(void *state, int peer, void *data, size_t size, const char *hint)
{
    record("neuronBootstrapRecv(%p,%d,%p,%zu,%s)", state, peer, data, size, hint);
    ENTER(neuronBootstrapRecv);
    return bootstrap("neuronBootstrapRecv", state, peer, data, size, 0);
}

/* Pairwise: in round r each rank sends to rank + r and receives from rank - r; the lower one of each exchange sends first. */
EXPORT int neuronBootstrapAllGather(void *state, void *all_data, size_t size, const char *hint)
{
    record("neuronBootstrapAllGather(%p,%p,%zu,%s)", state, all_data, size, hint);
    ENTER(neuronBootstrapAllGather);
    struct global_comm *global = check("neuronBootstrapAllGather", state);
    if (!global || !all_data || size > 1 << 16) {
        return violation("neuronBootstrapAllGather(%p, %p, %zu)", state, all_data, size);
    }
    char *all = all_data;
    for (int peer = 0; peer < global->ranks; peer++) {
        int rc = OK;
        for (int step = 0; step < 2 && peer != global->rank && rc == OK; step++) {
            int sending = (step == 0) == (global->rank < peer);
            rc = wait_for(global, peer, sending, all + (size_t)(sending ? global->rank : peer) * size, size);
        }
        if (rc) {
            return rc;
        }
    }
    return OK;
}

/* ---- the proxy seam */

static uint64_t sum_of(const struct block *block)
{
    uint64_t sum = 14695981039346656037ULL;
    for (int i = 0; i < block->src_n; i++) {
        const net_src_addr_t *e = &block->src[i];
        sum = (sum ^ e->net_op_idx ^ (uintptr_t)e->host_addr ^ e->size ^ (unsigned)e->mark ^ (unsigned)e->dst_rank) * 1099511628211ULL;
    }
    for (int i = 0; i < block->dest_n; i++) {
        const net_dest_addr_t *e = &block->dest[i];
        sum = (sum ^ e->net_op_idx ^ (uintptr_t)e->host_addr ^ e->size ^ (unsigned)e->mark ^ (unsigned)e->src_rank) * 1099511628211ULL;
    }
    return sum;
}

static int is_bool(const bool *flag)
{
    return *(const unsigned char *)flag <= 1;
}

static int is_word(const uint32_t *word)
{
    return !word || aligned(word, 4);
}

static int check_ops(const net_ops_info_t *ops, int n)
{
    for (int i = 0; i < n; i++) {
        const net_ops_info_t *op = &ops[i];
        if (!is_bool(&op->early_send_completion) || !is_bool(&op->early_recv_posting) || !is_bool(&op->is_dynamic_send_recv_sz)
            || !is_bool(&op->variable_peer) || !is_bool(&op->add_to_histogram) || op->sema_shift_offset > 31
            || !is_word(op->inc_send_handshake) || !is_word(op->inc_send_complete) || !is_word(op->inc_recv_handshake)
            || !is_word(op->inc_recv_complete)) {
            return violation("operation %d is malformed", i);
        }
    }
    return OK;
}

static int check_entry(const char *kind, int at, int n, int ops_n, uint32_t op, int mark, const void *address, uint32_t size,
    const struct mr *mr, int peer, const struct global_comm *global)
{
    if (mark < NET_TRANSFER || mark > EXEC_COMPLETE || (mark == EXEC_COMPLETE) != (at == n - 1)) {
        fprintf(stderr, "nccom stand-in: %s entry %d of %d is marked %d\n", kind, at, n, mark);
        return FAILURE;
    }
    if (mark == EXEC_COMPLETE && !address) {
        return OK;
    }
    if (op >= (uint32_t)ops_n || !address || size > INT32_MAX || peer < 0 || peer >= global->ranks || peer == global->rank) {
        return violation("%s entry %d: operation %u, address %p, size %u, peer %d", kind, at, op, address, size, peer);
    }
    if (!aligned(mr, 8) || mr->magic != MAGIC_MR || mr->owner != global || (char *)address < mr->data
        || (size_t)((char *)address - mr->data) + size > mr->size) {
        return violation("%s entry %d: %u bytes at %p are not in registration %p", kind, at, size, address, (void *)mr);
    }
    return OK;
}

static int check_lists(const struct global_comm *global, const struct block *block)
{
    int rc = check_ops(block->ops, block->ops_n);
    for (int i = 0; rc == OK && i < block->src_n; i++) {
        const net_src_addr_t *e = &block->src[i];
        rc = check_entry("send", i, block->src_n, block->ops_n, e->net_op_idx, e->mark, e->host_addr, e->size, e->nccl_mhandle,
            e->dst_rank, global);
    }
    for (int i = 0; rc == OK && i < block->dest_n; i++) {
        const net_dest_addr_t *e = &block->dest[i];
        rc = check_entry("receive", i, block->dest_n, block->ops_n, e->net_op_idx, e->mark, e->host_addr, e->size, e->nccl_mhandle,
            e->src_rank, global);
    }
    return rc;
}

EXPORT int neuronStartNetworkProxy(void *comm, uint32_t stream, uint32_t basic_block, net_ops_info_t *ops, int ops_n,
    net_src_addr_t *src, int src_n, net_dest_addr_t *dest, int dest_n)
{
    record("neuronStartNetworkProxy(%p,%u,%u,%d,%d,%d,%d,%d,%d)", comm, stream, basic_block, ops != NULL, ops_n, src != NULL, src_n,
        dest != NULL, dest_n);
    ENTER(neuronStartNetworkProxy);
    CHECKED(neuronStartNetworkProxy)
    if (stream >= MAX_STREAMS || ops_n < 0 || src_n < 0 || dest_n < 0 || (ops_n && !aligned(ops, 8)) || (src_n && !aligned(src, 8))
        || (dest_n && !aligned(dest, 8))) {
        return violation("neuronStartNetworkProxy(%p, %u, %u, %p, %d, %p, %d, %p, %d)", comm, stream, basic_block, (void *)ops, ops_n,
            (void *)src, src_n, (void *)dest, dest_n);
    }
    struct block *block = calloc(1, sizeof(*block));
    *block = (struct block){.id = (int)basic_block, .ops = ops, .ops_n = ops_n, .src = src, .src_n = src_n, .dest = dest,
        .dest_n = dest_n};
    int rc = check_lists(global, block);
    block->sum = sum_of(block);
    struct block **at = &global->streams[stream].blocks;
    while (*at && (*at)->id != block->id) {
        at = &(*at)->next;
    }
    if (rc || (*at && (*at)->running)) {
        free(block);
        return rc ? rc : FAILURE;
    }
    struct block *old = *at;
    block->next = old ? old->next : NULL;
    *at = block;
    if (global->streams[stream].current == old) {
        global->streams[stream].current = NULL;
    }
    free(old);
    return OK;
}

static void increment(uint32_t *semaphore, uint32_t value)
{
    if (semaphore) {
        __atomic_store_n(semaphore, value, __ATOMIC_RELEASE); /* nec_inc_semaphore is a plain store */
    }
}

static int window_of(const net_ops_info_t *op)
{
    return op->initial_send_credits && op->initial_send_credits < WINDOW ? (int)op->initial_send_credits : WINDOW;
}

static int transfers(int n, const void *last_address)
{
    return n && !last_address ? n - 1 : n;
}

static int tick_sends(struct global_comm *global, int stream, struct block *block, int n, int *moved)
{
    while (block->send_done < block->sent) {
        int done;
        int size;
        int rc = net_test(block->sends[block->send_done % WINDOW], &done, &size);
        if (rc || !done) {
            if (rc) {
                return NETWORK_PROXY_FAILURE;
            }
            break;
        }
        net_src_addr_t *e = &block->src[block->send_done++];
        net_ops_info_t *op = &block->ops[e->net_op_idx];
        e->complete = 1;
        *moved = 1;
        increment(op->inc_send_handshake, 1u << op->sema_shift_offset);
        if (e->mark != NET_TRANSFER && !op->early_send_completion) {
            increment(op->inc_send_complete, 1u << op->sema_shift_offset);
        }
    }
    while (block->sent < n) {
        net_src_addr_t *e = &block->src[block->sent];
        net_ops_info_t *op = &block->ops[e->net_op_idx];
        struct comm *link = link_to(global, stream, e->dst_rank);
        if (!link || block->sent - block->send_done >= window_of(op)) {
            break;
        }
        struct request *request;
        if (net_post(link, KIND_SEND, e->host_addr, (int)e->size, e->nccl_mhandle, &request)) {
            return NETWORK_PROXY_FAILURE;
        }
        if (!request) {
            break;
        }
        block->sends[block->sent++ % WINDOW] = request;
        *moved = 1;
        if (e->mark != NET_TRANSFER && op->early_send_completion) {
            increment(op->inc_send_complete, 1u << op->sema_shift_offset);
        }
    }
    return OK;
}

static int tick_recvs(struct global_comm *global, int stream, struct block *block, int n, int *moved)
{
    while (block->recv_done < block->posted) {
        int done;
        int size;
        int rc = net_test(block->recvs[block->recv_done % WINDOW], &done, &size);
        if (rc || !done) {
            if (rc) {
                return NETWORK_PROXY_FAILURE;
            }
            break;
        }
        net_dest_addr_t *e = &block->dest[block->recv_done++];
        net_ops_info_t *op = &block->ops[e->net_op_idx];
        if (!op->is_dynamic_send_recv_sz && size != (int)e->size) {
            return NETWORK_PROXY_FAILURE;
        }
        e->complete = 1;
        *moved = 1;
        if (e->mark != NET_TRANSFER) {
            increment(op->inc_recv_complete, 1u << op->sema_shift_offset);
        }
    }
    while (block->posted < n) {
        net_dest_addr_t *e = &block->dest[block->posted];
        struct comm *link = link_from(global, stream, e->src_rank);
        if (!link || block->posted - block->recv_done >= WINDOW) {
            break;
        }
        struct request *request;
        if (net_post(link, KIND_RECV, e->host_addr, (int)e->size, e->nccl_mhandle, &request)) {
            return NETWORK_PROXY_FAILURE;
        }
        if (!request) {
            break;
        }
        block->recvs[block->posted++ % WINDOW] = request;
        *moved = 1;
        increment(block->ops[e->net_op_idx].inc_recv_handshake, 1u << block->ops[e->net_op_idx].sema_shift_offset);
    }
    return OK;
}

static int start_run(struct block *block)
{
    if (block->sum != sum_of(block)) {
        return violation("the lists of block %d have changed since it was started", block->id);
    }
    block->running = 1;
    for (int i = 0; i < block->ops_n; i++) {
        if (block->ops[i].tx_entry_cnt) {
            increment(block->ops[i].inc_send_handshake, (uint32_t)window_of(&block->ops[i]) << block->ops[i].sema_shift_offset);
        }
    }
    return OK;
}

static void finish_run(struct block *block)
{
    block->running = 0;
    block->has_run = 1;
    block->sent = block->send_done = block->posted = block->recv_done = 0;
    for (int i = 0; i < block->src_n; i++) {
        block->src[i].complete = 0;
    }
    for (int i = 0; i < block->dest_n; i++) {
        block->dest[i].complete = 0;
    }
}

static int tick(struct global_comm *global, int stream_n, struct block *block, bool *idle, bool *done)
{
    int moved = 0;
    int sends = transfers(block->src_n, block->src_n ? block->src[block->src_n - 1].host_addr : NULL);
    int recvs = transfers(block->dest_n, block->dest_n ? block->dest[block->dest_n - 1].host_addr : NULL);
    int rc = block->running ? OK : start_run(block);
    rc = rc ? rc : tick_recvs(global, stream_n, block, recvs, &moved);
    rc = rc ? rc : tick_sends(global, stream_n, block, sends, &moved);
    if (rc) {
        global->streams[stream_n].failed = 1;
        return NETWORK_PROXY_FAILURE;
    }
    int finished = block->send_done == sends && block->recv_done == recvs;
    if (finished) {
        finish_run(block);
    }
    *idle = *idle && !moved && !finished;
    *done = *done && finished;
    return OK;
}

EXPORT int neuronNetworkProxyProgress(void *comm, uint32_t stream, uint32_t basic_block, bool *idle, bool *done)
{
    record("neuronNetworkProxyProgress(%p,%u,%u,%d,%d)", comm, stream, basic_block, idle ? *idle : -1, done ? *done : -1);
    ENTER(neuronNetworkProxyProgress);
    CHECKED(neuronNetworkProxyProgress)
    if (stream >= MAX_STREAMS || !idle || !done || !is_bool(idle) || !is_bool(done)) {
        return violation("neuronNetworkProxyProgress(%p, %u, %u, %p, %p)", comm, stream, basic_block, (void *)idle, (void *)done);
    }
    if (atomic_flag_test_and_set(&global->in_call)) {
        return violation("neuronNetworkProxyProgress by two threads at once");
    }
    struct stream *on = &global->streams[stream];
    struct block *block = on->blocks;
    while (block && block->id != (int)basic_block) {
        block = block->next;
    }
    int rc = OK;
    if (!block || on->failed) {
        rc = NETWORK_PROXY_FAILURE;
    } else if (on->current && on->current != block && on->current->running) {
        on->pending = (int)basic_block;
        *done = false;
    } else {
        on->pending = NONE;
        on->current = block;
        rc = tick(global, (int)stream, block, idle, done);
    }
    atomic_flag_clear(&global->in_call);
    return rc;
}

EXPORT int neuronStopNetworkProxy(void *comm, uint32_t stream)
{
    record("neuronStopNetworkProxy(%p,%u)", comm, stream);
    ENTER(neuronStopNetworkProxy);
    CHECKED(neuronStopNetworkProxy)
    if (stream >= MAX_STREAMS) {
        return violation("neuronStopNetworkProxy(%p, %u)", comm, stream);
    }
    struct stream *on = &global->streams[stream];
    for (struct block **at = &on->blocks; *at;) {
        struct block *block = *at;
        if (block->has_run && !block->running && block->id != on->pending) {
            *at = block->next;
            if (on->current == block) {
                on->current = NULL;
            }
            free(block);
        } else {
            at = &block->next;
        }
    }
    return OK;
}
