/* What the parts of the stand-in share. See nccom_standin.c. */
#ifndef NCCOM_STANDIN_H
#define NCCOM_STANDIN_H

#include "nccom_records.h"
#include <pthread.h>
#include <stdatomic.h>

#define EXPORT __attribute__((visibility("default")))
#define HANDLE_BYTES 128
#define NICS 4
#define MAX_STREAMS 4

enum { OK = 0, FAILURE = 1, INVALID = 2, RESOURCE = 4, CLOSED = 14, NETWORK_PROXY_FAILURE = 1206 };
enum { HOST_PTR = 1, CUDA_PTR = 2, NEURON_PTR = 4 };

#define FUNCTIONS(X) \
    X(neuronGetVersionInfo) X(neuronGetUniqueId) X(neuronInitGlobalComm) X(neuronInitComm) X(neuronBuildGraphComm) \
    X(neuronGetCommInfo) X(neuronFreeComm) X(neuronExpandConnectivity) X(neuronStartNetworkProxy) X(neuronStopNetworkProxy) \
    X(neuronNetworkProxyProgress) X(neuronBootstrapSend) X(neuronBootstrapRecv) X(neuronBootstrapAllGather) X(neuronNetRegMr) \
    X(neuronNetDeregMr) X(neuronGetPeerDeviceId) X(neuronSetAffinity) X(neuronGetNetConnector) X(neuronPreferredNcRidNic) \
    X(neuronPreferredNcRidNicBdf) X(neuronInitNet) X(neuronFiniPlugin) X(neuronGetOFIHandle) X(neuronNetListen) \
    X(neuronNetConnect) X(neuronNetAccept) X(neuronNetRegMrOG) X(neuronNetGetMrKey) X(neuronNetDeregMrOG) X(neuronNetIsend) \
    X(neuronNetIrecv) X(neuronNetIflush) X(neuronNetTest) X(neuronNetCloseSend) X(neuronNetCloseRecv) X(neuronNetCloseListen)

#define NUMBER(name) FN_##name,
enum { FUNCTIONS(NUMBER) FUNCTION_COUNT };

enum { MAGIC_COMM = 0x4d4d4f43, MAGIC_LISTEN = 0x4e54534c, MAGIC_MR = 0x4e47524d, MAGIC_REQUEST = 0x54535152, MAGIC_GLOBAL = 0x424f4c47 };
enum { KIND_SEND = 1, KIND_RECV = 2, KIND_FLUSH = 3 };
enum { REQ_FREE = 0, REQ_PENDING = 1, REQ_DONE = 2, REQ_FAILED = 3 };

struct comm;

struct mr {
    uint64_t magic;
    void *owner;
    char *data;
    size_t size;
    uint64_t key;
    struct mr *next;
};

struct request {
    uint64_t magic;
    struct comm *comm;
    struct request *next;
    struct mr *mr;
    char *data;
    int kind;
    int size;
    int told;
    int polls;
    _Atomic int state;
    uint64_t canary;
};

/* Live objects, for tests of leaks. */
enum { LIVE_COMMS = 0, LIVE_LISTENERS = 1, LIVE_MRS = 2, LIVE_GLOBALS = 3, LIVE_NETS = 4, LIVE_COUNT };
extern _Atomic long live[LIVE_COUNT];

/* Counts the call; an answer other than 0 is the planned error. */
int enter(int function);
/* Says what is wrong with a call, counts it, and answers INVALID. */
int violation(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Notes the call's arguments for standin_last_call. */
void record(const char *format, ...) __attribute__((format(printf, 1, 2)));
int aligned(const void *pointer, size_t alignment);
/* Replaces the signal handlers, if it is told to. */
void steal_signals(void);

#define ENTER(name) \
    do { \
        int planned_ = enter(FN_##name); \
        if (planned_) { \
            return planned_; \
        } \
    } while (0)

/* Of nccom_standin_net.c. */
struct comm *net_link(int fd, int kind);
int net_post(struct comm *comm, int kind, char *data, int size, struct mr *mr, struct request **out);
int net_test(struct request *request, int *done, int *size);
void net_close(struct comm *comm);
int net_socket_at(const char *name, int listening);
struct mr *mr_new(void *owner, void *data, size_t size);
int mr_check_type(int type);
void mr_free(struct mr *mr);

#endif
