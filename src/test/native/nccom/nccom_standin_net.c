/* The net functions of the stand-in: listen, connect, accept, registrations, posts, tests. See nccom_standin.c. */
#define _GNU_SOURCE
#include "nccom_standin.h"
#include "nccom_settings.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define MAX_ROOM 1024
#define CANARY 0xc0ffee0ddf00dULL

/* Two communicators of one process: what is posted at one end meets what is posted at the other. */
struct channel {
    pthread_mutex_t lock;
    struct comm *ends[3];
    struct request *head[3];
    struct request *tail[3];
    int broken;
    int accepted;
};

struct frame {
    uint32_t magic;
    int32_t status;
    uint32_t length;
    uint32_t number;
};

enum { FRAME_HELLO = 0x6f6c6c68, FRAME_DATA = 0x61746164, FRAME_ACK = 0x006b6361 };

struct comm {
    uint64_t magic;
    int kind;
    int outstanding;
    atomic_flag in_call;
    struct channel *channel;
    pthread_mutex_t lock;
    struct mr *mrs;
    struct request *free_requests;
    struct request requests[MAX_ROOM];
    /* Over a socket: requests in order, and how far the first unfinished frames have come. */
    int fd;
    int broken;
    int accepted;
    struct request *head;
    struct request *tail;
    struct request *writing;
    size_t out_done;
    struct frame out;
    size_t in_done;
    struct frame in;
    size_t body_done;
    struct frame acks[MAX_ROOM + 1];
    size_t acks_bytes;
    uint32_t sent;
    uint32_t received;
    struct comm *next_open;
    uint64_t canary;
};

struct listener {
    uint64_t magic;
    uint64_t id;
    int fd;
    char name[64];
    struct channel *backlog[64];
    int backlog_n;
    struct listener *next;
};

/* What stands in the 128 bytes of a handle. Only the last part changes while a connect is under way. */
struct handle {
    uint64_t magic;
    uint64_t process;
    uint64_t id;
    char name[64];
    uint64_t sum;
    uint64_t connecting;
    char unused[24];
};

_Static_assert(sizeof(struct handle) == HANDLE_BYTES, "a handle has 128 bytes");

static pthread_mutex_t world = PTHREAD_MUTEX_INITIALIZER;
static struct listener *listeners;
static struct comm *open_sockets;
static _Atomic long socket_comms;
static uint64_t process_nonce;
static uint64_t next_id = 1;

static uint64_t nonce(void)
{
    if (!process_nonce) {
        int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
        if (fd < 0 || read(fd, &process_nonce, sizeof(process_nonce)) != sizeof(process_nonce)) {
            process_nonce = (uint64_t)getpid();
        }
        close(fd);
    }
    return process_nonce;
}

static uint64_t sum_of(const struct handle *handle)
{
    uint64_t sum = 14695981039346656037ULL;
    const unsigned char *bytes = (const unsigned char *)handle;
    for (size_t i = 0; i < offsetof(struct handle, sum); i++) {
        sum = (sum ^ bytes[i]) * 1099511628211ULL;
    }
    return sum;
}

/* A non-blocking socket that listens at, or is connected to, an abstract name; or -errno. */
int net_socket_at(const char *name, int listening)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return -errno;
    }
    snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "%s", name);
    socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
    int rc = listening ? bind(fd, (struct sockaddr *)&address, length) || listen(fd, 128)
        : connect(fd, (struct sockaddr *)&address, length);
    if (rc) {
        rc = -errno;
        close(fd);
        return rc;
    }
    return fd;
}

static struct comm *comm_new(int kind)
{
    struct comm *comm = calloc(1, sizeof(*comm));
    comm->magic = MAGIC_COMM;
    comm->canary = CANARY;
    comm->kind = kind;
    comm->fd = -1;
    pthread_mutex_init(&comm->lock, NULL);
    long room = settings.room < MAX_ROOM ? settings.room : MAX_ROOM;
    for (long i = room - 1; i >= 0; i--) {
        comm->requests[i].magic = MAGIC_REQUEST;
        comm->requests[i].canary = CANARY;
        comm->requests[i].comm = comm;
        comm->requests[i].next = comm->free_requests;
        comm->free_requests = &comm->requests[i];
    }
    live[LIVE_COMMS]++;
    return comm;
}

/* A communicator over a connected socket; a receiver greets. */
struct comm *net_link(int fd, int kind)
{
    struct comm *comm = comm_new(kind);
    comm->fd = fd;
    if (kind == KIND_RECV) {
        comm->acks[0] = (struct frame){.magic = FRAME_HELLO};
        comm->acks_bytes = sizeof(struct frame);
    }
    pthread_mutex_lock(&world);
    comm->next_open = open_sockets;
    open_sockets = comm;
    socket_comms++;
    pthread_mutex_unlock(&world);
    return comm;
}

static int is_comm(const void *pointer, int kinds)
{
    const struct comm *comm = pointer;
    return aligned(pointer, 8) && comm->magic == MAGIC_COMM && comm->canary == CANARY && (kinds & (1 << comm->kind));
}

static void settle(struct request *request, int state, int told)
{
    request->told = told;
    atomic_store_explicit(&request->state, state, memory_order_release);
}

/* ---- in one process */

static void channel_match(struct channel *channel)
{
    while (channel->head[KIND_SEND] && channel->head[KIND_RECV]) {
        struct request *send = channel->head[KIND_SEND];
        struct request *recv = channel->head[KIND_RECV];
        channel->head[KIND_SEND] = send->next;
        channel->head[KIND_RECV] = recv->next;
        if (send->size > recv->size) {
            settle(send, REQ_FAILED, recv->size);
            settle(recv, REQ_FAILED, send->size);
        } else {
            memcpy(recv->data, send->data, (size_t)send->size);
            settle(recv, REQ_DONE, send->size);
            settle(send, REQ_DONE, send->size);
        }
    }
}

static void channel_break(struct channel *channel)
{
    channel->broken = 1;
    for (int kind = KIND_SEND; kind <= KIND_RECV; kind++) {
        for (struct request *request = channel->head[kind]; request; request = request->next) {
            settle(request, REQ_FAILED, 0);
        }
        channel->head[kind] = NULL;
    }
}

static int channel_post(struct channel *channel, struct request *request)
{
    int kind = request->kind;
    pthread_mutex_lock(&channel->lock);
    int broken = channel->broken;
    if (!broken) {
        request->next = NULL;
        if (channel->head[kind]) {
            channel->tail[kind]->next = request;
        } else {
            channel->head[kind] = request;
        }
        channel->tail[kind] = request;
        channel_match(channel);
    }
    pthread_mutex_unlock(&channel->lock);
    return broken ? FAILURE : OK;
}

/* ---- over a socket; each function is called under the communicator's lock */

static void socket_break(struct comm *comm)
{
    comm->broken = 1;
    for (struct request *request = comm->head; request; request = request->next) {
        settle(request, REQ_FAILED, 0);
    }
    comm->head = comm->writing = NULL;
}

/* Reads on to a length; 1 when it is reached, 0 when there is no more now, -1 when the peer is gone. */
static int read_on(struct comm *comm, void *to, size_t length, size_t *done)
{
    while (*done < length) {
        ssize_t n = recv(comm->fd, (char *)to + *done, length - *done, MSG_DONTWAIT);
        if (n <= 0) {
            return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
        }
        *done += (size_t)n;
    }
    return 1;
}

static int write_on(struct comm *comm, const void *from, size_t length, size_t *done)
{
    while (*done < length) {
        ssize_t n = send(comm->fd, (const char *)from + *done, length - *done, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0) {
            return errno == EAGAIN || errno == EINTR ? 0 : -1;
        }
        *done += (size_t)n;
    }
    return 1;
}

static int write_request(struct comm *comm, struct request *request)
{
    size_t head = sizeof(comm->out);
    if (comm->out_done == 0) {
        comm->out = (struct frame){.magic = FRAME_DATA, .length = (uint32_t)request->size, .number = comm->sent};
    }
    if (comm->out_done < head) {
        int rc = write_on(comm, &comm->out, head, &comm->out_done);
        if (rc != 1) {
            return rc;
        }
    }
    size_t body = comm->out_done - head;
    int rc = write_on(comm, request->data, (size_t)request->size, &body);
    comm->out_done = head + body;
    return rc;
}

static void pump_send(struct comm *comm)
{
    int rc = 1;
    while (rc == 1 && comm->writing) {
        rc = write_request(comm, comm->writing);
        if (rc == 1) {
            comm->out_done = 0;
            comm->sent++;
            comm->writing = comm->writing->next;
        }
    }
    while (rc >= 0 && (rc = read_on(comm, &comm->in, sizeof(comm->in), &comm->in_done)) == 1) {
        comm->in_done = 0;
        if (comm->in.magic == FRAME_HELLO) {
            comm->accepted = 1;
        } else if (comm->in.magic == FRAME_ACK && comm->head && comm->in.number == comm->received) {
            struct request *request = comm->head;
            comm->head = request->next;
            comm->received++;
            settle(request, comm->in.status ? REQ_FAILED : REQ_DONE, (int)comm->in.length);
        } else {
            rc = -1;
        }
    }
    if (rc < 0) {
        socket_break(comm);
    }
}

static int read_request(struct comm *comm, struct request *request)
{
    if (comm->in_done < sizeof(comm->in)) {
        int rc = read_on(comm, &comm->in, sizeof(comm->in), &comm->in_done);
        if (rc != 1) {
            return rc;
        }
        if (comm->in.magic != FRAME_DATA || comm->in.number != comm->received) {
            return -1;
        }
    }
    if (comm->in.length <= (uint32_t)request->size) {
        return read_on(comm, request->data, comm->in.length, &comm->body_done);
    }
    char thrown_away[65536];
    int rc = 1;
    while (rc == 1 && comm->body_done < comm->in.length) {
        size_t left = comm->in.length - comm->body_done;
        size_t part = 0;
        size_t most = left < sizeof(thrown_away) ? left : sizeof(thrown_away);
        rc = read_on(comm, thrown_away, most, &part);
        comm->body_done += part;
    }
    return rc;
}

static int flush_acks(struct comm *comm)
{
    size_t done = 0;
    int rc = write_on(comm, comm->acks, comm->acks_bytes, &done);
    memmove(comm->acks, (char *)comm->acks + done, comm->acks_bytes - done);
    comm->acks_bytes -= done;
    return rc;
}

static void pump_recv(struct comm *comm)
{
    int rc = flush_acks(comm);
    while (rc >= 0 && comm->head && comm->acks_bytes <= sizeof(struct frame) * (MAX_ROOM - 1)) {
        struct request *request = comm->head;
        rc = read_request(comm, request);
        if (rc != 1) {
            break;
        }
        int fits = comm->in.length <= (uint32_t)request->size;
        struct frame ack = {.magic = FRAME_ACK, .status = !fits, .number = comm->received,
            .length = fits ? comm->in.length : (uint32_t)request->size};
        memcpy((char *)comm->acks + comm->acks_bytes, &ack, sizeof(ack));
        comm->acks_bytes += sizeof(ack);
        comm->head = request->next;
        comm->in_done = comm->body_done = 0;
        comm->received++;
        settle(request, fits ? REQ_DONE : REQ_FAILED, (int)comm->in.length);
        rc = flush_acks(comm);
    }
    char byte;
    if (rc >= 0 && !comm->head && recv(comm->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0) {
        rc = -1;
    }
    if (rc < 0) {
        socket_break(comm);
    }
}

static void pump(struct comm *comm)
{
    if (!comm->broken && comm->fd >= 0) {
        if (comm->kind == KIND_SEND) {
            pump_send(comm);
        } else {
            pump_recv(comm);
        }
    }
}

/* Moves on what all communicators of the process have in flight, as a completion queue that they share does. */
static void pump_all(struct comm *mine)
{
    pthread_mutex_lock(&mine->lock);
    pump(mine);
    pthread_mutex_unlock(&mine->lock);
    if (pthread_mutex_trylock(&world) == 0) {
        for (struct comm *comm = open_sockets; comm; comm = comm->next_open) {
            if (comm != mine && pthread_mutex_trylock(&comm->lock) == 0) {
                pump(comm);
                pthread_mutex_unlock(&comm->lock);
            }
        }
        pthread_mutex_unlock(&world);
    }
}

static int socket_post(struct comm *comm, struct request *request)
{
    pthread_mutex_lock(&comm->lock);
    pump(comm);
    int broken = comm->broken;
    if (!broken) {
        request->next = NULL;
        if (comm->head) {
            comm->tail->next = request;
        } else {
            comm->head = request;
        }
        comm->tail = request;
        if (comm->kind == KIND_SEND && !comm->writing) {
            comm->writing = request;
        }
        pump(comm);
    }
    pthread_mutex_unlock(&comm->lock);
    return broken ? FAILURE : OK;
}

/* ---- posts and tests */

static struct request *request_take(struct comm *comm)
{
    struct request *request = comm->free_requests;
    if (request) {
        comm->free_requests = request->next;
        comm->outstanding++;
    }
    return request;
}

static void request_give(struct request *request)
{
    struct comm *comm = request->comm;
    request->state = REQ_FREE;
    request->mr = NULL;
    request->next = comm->free_requests;
    comm->free_requests = request;
    comm->outstanding--;
}

int net_post(struct comm *comm, int kind, char *data, int size, struct mr *mr, struct request **out)
{
    *out = NULL;
    if (settings.null_requests > 0 && settings.null_requests-- > 0) {
        return OK;
    }
    struct request *request = request_take(comm);
    if (!request) {
        if (comm->channel == NULL) {
            pump_all(comm);
        }
        return OK;
    }
    request->kind = kind;
    request->data = data;
    request->size = size;
    request->mr = mr;
    request->polls = 0;
    request->told = 0;
    request->state = kind == KIND_FLUSH ? REQ_DONE : REQ_PENDING;
    int rc = kind == KIND_FLUSH ? OK : comm->channel ? channel_post(comm->channel, request) : socket_post(comm, request);
    if (rc) {
        request_give(request);
        return rc;
    }
    *out = request;
    return OK;
}

int net_test(struct request *request, int *done, int *size)
{
    *done = 0;
    *size = 0;
    if (request->state == REQ_FREE) {
        return violation("neuronNetTest of request %p, which is over", (void *)request);
    }
    if (socket_comms && request->state == REQ_PENDING) {
        pump_all(request->comm);
    }
    if (request->polls < settings.slow_test) {
        request->polls++;
        return OK;
    }
    int state = atomic_load_explicit(&request->state, memory_order_acquire);
    if (state == REQ_PENDING) {
        return OK;
    }
    *size = request->told;
    *done = state == REQ_DONE;
    request_give(request);
    return state == REQ_DONE ? OK : FAILURE;
}

/* One thread at a time in a communicator's data path. */
static int begin(struct comm *comm, const char *name)
{
    return atomic_flag_test_and_set_explicit(&comm->in_call, memory_order_acquire)
        ? violation("%s while another thread is in a data call of communicator %p", name, (void *)comm) : OK;
}

static void end(struct comm *comm)
{
    atomic_flag_clear_explicit(&comm->in_call, memory_order_release);
}

static int post(const char *name, int kind, int comm_kind, void *comm, void *data, int size, void *mhandle, void **request)
{
    struct mr *mr = mhandle;
    if (!is_comm(comm, 1 << comm_kind)) {
        return violation("%s: %p is no communicator of this direction", name, comm);
    }
    if (!aligned(request, 8) || !aligned(mr, 8) || mr->magic != MAGIC_MR || mr->owner != comm) {
        return violation("%s: request out %p or registration %p", name, (void *)request, mhandle);
    }
    if (size < 0 || (char *)data < mr->data || (size_t)((char *)data - mr->data) + (size_t)size > mr->size) {
        return violation("%s: %d bytes at %p are not in the registration %p+%zu", name, size, data, (void *)mr->data, mr->size);
    }
    int rc = begin(comm, name);
    if (rc == OK) {
        struct request *made;
        rc = net_post(comm, kind, data, size, mr, &made);
        *request = made;
        end(comm);
    }
    return rc;
}

EXPORT int neuronNetIsend(void *comm, void *data, int size, void *mhandle, void **request)
{
    record("neuronNetIsend(%p,%p,%d,%p,%d)", comm, data, size, mhandle, request != NULL);
    ENTER(neuronNetIsend);
    return post("neuronNetIsend", KIND_SEND, KIND_SEND, comm, data, size, mhandle, request);
}

EXPORT int neuronNetIrecv(void *comm, void *data, int size, void *mhandle, void **request)
{
    record("neuronNetIrecv(%p,%p,%d,%p,%d)", comm, data, size, mhandle, request != NULL);
    ENTER(neuronNetIrecv);
    return post("neuronNetIrecv", KIND_RECV, KIND_RECV, comm, data, size, mhandle, request);
}

EXPORT int neuronNetIflush(void *comm, void *data, int size, void *mhandle, void **request)
{
    record("neuronNetIflush(%p,%p,%d,%p,%d)", comm, data, size, mhandle, request != NULL);
    ENTER(neuronNetIflush);
    return post("neuronNetIflush", KIND_FLUSH, KIND_RECV, comm, data, size, mhandle, request);
}

EXPORT int neuronNetTest(void *request, int *done, int *size)
{
    struct request *asked = request;
    record("neuronNetTest(%p,%d,%d)", request, done != NULL, size != NULL);
    ENTER(neuronNetTest);
    if (!aligned(request, 8) || asked->magic != MAGIC_REQUEST || asked->canary != CANARY || !aligned(done, 4) || !aligned(size, 4)) {
        return violation("neuronNetTest(%p, %p, %p)", request, (void *)done, (void *)size);
    }
    if (asked->comm->magic != MAGIC_COMM) {
        return violation("neuronNetTest(%p): its communicator was closed", request);
    }
    int rc = begin(asked->comm, "neuronNetTest");
    if (rc == OK) {
        struct comm *comm = asked->comm;
        rc = net_test(asked, done, size);
        end(comm);
    }
    return rc;
}

/* ---- registrations */

struct mr *mr_new(void *owner, void *data, size_t size)
{
    static _Atomic uint64_t keys;
    struct mr *mr = calloc(1, sizeof(*mr));
    mr->magic = MAGIC_MR;
    mr->owner = owner;
    mr->data = data;
    mr->size = size;
    mr->key = 0x1000 + keys++;
    live[LIVE_MRS]++;
    return mr;
}

/* Kept, so that a later use is seen. */
void mr_free(struct mr *mr)
{
    mr->magic = 0;
    live[LIVE_MRS]--;
}

int mr_check_type(int type)
{
    if (type != HOST_PTR && type != CUDA_PTR && type != NEURON_PTR) {
        return violation("memory type %d", type);
    }
    return type == NEURON_PTR && settings.no_device_memory ? FAILURE : OK;
}

EXPORT int neuronNetRegMrOG(void *comm, void *data, size_t size, int type, void **mhandle)
{
    record("neuronNetRegMrOG(%p,%p,%zu,%d,%d)", comm, data, size, type, mhandle != NULL);
    ENTER(neuronNetRegMrOG);
    if (!is_comm(comm, 1 << KIND_SEND | 1 << KIND_RECV) || !data || !size || !aligned(mhandle, 8)) {
        return violation("neuronNetRegMrOG(%p, %p, %zu, %d, %p)", comm, data, size, type, (void *)mhandle);
    }
    for (int ms = 0; settings.hold_reg && ms < 60000; ms++) {
        usleep(1000);
    }
    int rc = mr_check_type(type);
    *mhandle = rc ? NULL : mr_new(comm, data, size);
    return rc;
}

EXPORT int neuronNetGetMrKey(void *mhandle, uint64_t *key)
{
    struct mr *mr = mhandle;
    record("neuronNetGetMrKey(%p,%d)", mhandle, key != NULL);
    ENTER(neuronNetGetMrKey);
    if (!aligned(mr, 8) || mr->magic != MAGIC_MR || !aligned(key, 8)) {
        return violation("neuronNetGetMrKey(%p, %p)", mhandle, (void *)key);
    }
    *key = mr->key;
    return OK;
}

static void break_comm(struct comm *comm)
{
    pthread_mutex_t *lock = comm->channel ? &comm->channel->lock : &comm->lock;
    pthread_mutex_lock(lock);
    if (comm->channel) {
        channel_break(comm->channel);
    } else {
        socket_break(comm);
        shutdown(comm->fd, SHUT_RDWR);
    }
    pthread_mutex_unlock(lock);
}

EXPORT int neuronNetDeregMrOG(void *comm, void *mhandle)
{
    struct mr *mr = mhandle;
    record("neuronNetDeregMrOG(%p,%p)", comm, mhandle);
    ENTER(neuronNetDeregMrOG);
    if (!is_comm(comm, 1 << KIND_SEND | 1 << KIND_RECV) || !aligned(mr, 8) || mr->magic != MAGIC_MR || mr->owner != comm) {
        return violation("neuronNetDeregMrOG(%p, %p)", comm, mhandle);
    }
    /* Memory in flight goes away: the order of what follows could not be kept. */
    struct comm *owner = comm;
    for (int i = 0; i < MAX_ROOM; i++) {
        if (owner->requests[i].mr == mr && owner->requests[i].state == REQ_PENDING) {
            break_comm(owner);
            break;
        }
    }
    mr_free(mr);
    return OK;
}

/* ---- listen, connect, accept */

EXPORT int neuronNetListen(int nic, void *handle, void **listen_comm)
{
    record("neuronNetListen(%d,%d,%d)", nic, handle != NULL, listen_comm != NULL);
    ENTER(neuronNetListen);
    steal_signals();
    if (nic < 0 || nic >= NICS || !aligned(handle, 8) || !aligned(listen_comm, 8)) {
        return violation("neuronNetListen(%d, %p, %p)", nic, handle, (void *)listen_comm);
    }
    struct listener *listener = calloc(1, sizeof(*listener));
    listener->magic = MAGIC_LISTEN;
    pthread_mutex_lock(&world);
    listener->id = next_id++;
    snprintf(listener->name, sizeof(listener->name), "nccom-%d-%llx-%llu", (int)getpid(), (unsigned long long)nonce(),
        (unsigned long long)listener->id);
    listener->fd = net_socket_at(listener->name, 1);
    if (listener->fd < 0) {
        pthread_mutex_unlock(&world);
        free(listener);
        return FAILURE;
    }
    listener->next = listeners;
    listeners = listener;
    pthread_mutex_unlock(&world);
    live[LIVE_LISTENERS]++;
    struct handle *made = handle;
    memset(made, 0, sizeof(*made));
    made->magic = MAGIC_LISTEN;
    made->process = nonce();
    made->id = listener->id;
    memcpy(made->name, listener->name, sizeof(made->name));
    made->sum = sum_of(made);
    *listen_comm = listener;
    return OK;
}

static int connect_here(struct handle *handle, struct comm **out)
{
    int rc = CLOSED;
    pthread_mutex_lock(&world);
    for (struct listener *listener = listeners; listener; listener = listener->next) {
        if (listener->id == handle->id) {
            rc = OK;
            if (listener->backlog_n < 64) {
                struct channel *channel = calloc(1, sizeof(*channel));
                pthread_mutex_init(&channel->lock, NULL);
                struct comm *comm = comm_new(KIND_SEND);
                comm->channel = channel;
                channel->ends[KIND_SEND] = comm;
                listener->backlog[listener->backlog_n++] = channel;
                *out = comm;
            }
        }
    }
    pthread_mutex_unlock(&world);
    return rc;
}

static int connect_there(struct handle *handle, struct comm **out)
{
    int fd = net_socket_at(handle->name, 0);
    if (fd < 0) {
        return fd == -EAGAIN ? OK : fd == -ECONNREFUSED ? CLOSED : FAILURE;
    }
    *out = net_link(fd, KIND_SEND);
    return OK;
}

/* Whether a begun connect was accepted: 1, not yet: 0, never will be: -1. */
static int is_accepted(struct comm *comm)
{
    pthread_mutex_t *lock = comm->channel ? &comm->channel->lock : &comm->lock;
    pthread_mutex_lock(lock);
    if (!comm->channel) {
        pump(comm);
    }
    int accepted = comm->channel ? comm->channel->accepted : comm->accepted;
    int broken = comm->channel ? comm->channel->broken : comm->broken;
    pthread_mutex_unlock(lock);
    return accepted ? 1 : broken ? -1 : 0;
}

EXPORT int neuronNetConnect(int nic, void *handle, void **send_comm)
{
    struct handle *to = handle;
    record("neuronNetConnect(%d,%d,%d)", nic, handle != NULL, send_comm != NULL);
    ENTER(neuronNetConnect);
    steal_signals();
    if (nic < 0 || nic >= NICS || !aligned(handle, 8) || !aligned(send_comm, 8)) {
        return violation("neuronNetConnect(%d, %p, %p)", nic, handle, (void *)send_comm);
    }
    *send_comm = NULL;
    if (to->magic != MAGIC_LISTEN || to->sum != sum_of(to)) {
        return FAILURE;
    }
    if (settings.null_connects > 0 && settings.null_connects-- > 0) {
        return OK;
    }
    struct comm *comm = (struct comm *)(uintptr_t)to->connecting;
    if (!comm) {
        int rc = to->process == nonce() && !settings.sockets ? connect_here(to, &comm) : connect_there(to, &comm);
        if (rc || !comm) {
            return rc;
        }
        to->connecting = settings.connect_waits ? (uintptr_t)comm : 0;
    } else if (!is_comm(comm, 1 << KIND_SEND)) {
        return violation("neuronNetConnect: the handle has lost its state");
    }
    int accepted = settings.connect_waits ? is_accepted(comm) : 1;
    if (accepted < 0) {
        to->connecting = 0;
        net_close(comm);
        return CLOSED;
    }
    if (accepted) {
        to->connecting = 0;
        *send_comm = comm;
    }
    return OK;
}

static struct comm *accept_here(struct listener *listener)
{
    struct comm *comm = NULL;
    pthread_mutex_lock(&world);
    if (listener->backlog_n) {
        struct channel *channel = listener->backlog[0];
        memmove(listener->backlog, listener->backlog + 1, sizeof(listener->backlog[0]) * (size_t)--listener->backlog_n);
        comm = comm_new(KIND_RECV);
        comm->channel = channel;
        pthread_mutex_lock(&channel->lock);
        channel->ends[KIND_RECV] = comm;
        channel->accepted = 1;
        pthread_mutex_unlock(&channel->lock);
    }
    pthread_mutex_unlock(&world);
    return comm;
}

EXPORT int neuronNetAccept(void *listen_comm, void **recv_comm)
{
    struct listener *listener = listen_comm;
    record("neuronNetAccept(%p,%d)", listen_comm, recv_comm != NULL);
    ENTER(neuronNetAccept);
    steal_signals();
    if (!aligned(listener, 8) || listener->magic != MAGIC_LISTEN || !aligned(recv_comm, 8)) {
        return violation("neuronNetAccept(%p, %p)", listen_comm, (void *)recv_comm);
    }
    *recv_comm = NULL;
    if (settings.null_accepts > 0 && settings.null_accepts-- > 0) {
        return OK;
    }
    struct comm *comm = accept_here(listener);
    if (!comm) {
        int fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            return errno == EAGAIN || errno == EINTR || errno == ECONNABORTED ? OK : FAILURE;
        }
        comm = net_link(fd, KIND_RECV);
        pthread_mutex_lock(&comm->lock);
        pump(comm);
        pthread_mutex_unlock(&comm->lock);
    }
    *recv_comm = comm;
    return OK;
}

/* The memory is kept, so that a later use of communicator or request is seen. */
void net_close(struct comm *comm)
{
    if (comm->channel) {
        break_comm(comm);
    } else {
        pthread_mutex_lock(&world);
        for (struct comm **at = &open_sockets; *at; at = &(*at)->next_open) {
            if (*at == comm) {
                *at = comm->next_open;
                break;
            }
        }
        socket_comms--;
        pthread_mutex_unlock(&world);
        pthread_mutex_lock(&comm->lock);
        if (comm->kind == KIND_RECV && !comm->broken) {
            flush_acks(comm);
        }
        socket_break(comm);
        close(comm->fd);
        comm->fd = -1;
        pthread_mutex_unlock(&comm->lock);
    }
    comm->magic = 0;
    live[LIVE_COMMS]--;
}

static int close_comm(const char *name, int kind, void *comm)
{
    if (!is_comm(comm, 1 << kind)) {
        return violation("%s(%p)", name, comm);
    }
    int rc = begin(comm, name);
    if (rc == OK) {
        net_close(comm);
    }
    return rc;
}

EXPORT int neuronNetCloseSend(void *comm)
{
    record("neuronNetCloseSend(%p)", comm);
    ENTER(neuronNetCloseSend);
    return close_comm("neuronNetCloseSend", KIND_SEND, comm);
}

EXPORT int neuronNetCloseRecv(void *comm)
{
    record("neuronNetCloseRecv(%p)", comm);
    ENTER(neuronNetCloseRecv);
    return close_comm("neuronNetCloseRecv", KIND_RECV, comm);
}

EXPORT int neuronNetCloseListen(void *listen_comm)
{
    struct listener *listener = listen_comm;
    record("neuronNetCloseListen(%p)", listen_comm);
    ENTER(neuronNetCloseListen);
    if (!aligned(listener, 8) || listener->magic != MAGIC_LISTEN) {
        return violation("neuronNetCloseListen(%p)", listen_comm);
    }
    pthread_mutex_lock(&world);
    for (struct listener **at = &listeners; *at; at = &(*at)->next) {
        if (*at == listener) {
            *at = listener->next;
            break;
        }
    }
    pthread_mutex_unlock(&world);
    for (int i = 0; i < listener->backlog_n; i++) {
        pthread_mutex_lock(&listener->backlog[i]->lock);
        channel_break(listener->backlog[i]);
        pthread_mutex_unlock(&listener->backlog[i]->lock);
    }
    close(listener->fd);
    listener->magic = 0;
    live[LIVE_LISTENERS]--;
    return OK;
}
