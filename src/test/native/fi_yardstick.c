/*
 * The yardstick: raw libfabric calls without any engine, so the least that a transfer can cost on this machine.
 *
 *   fi_yardstick server|client <provider> <address> <port> <size> <iterations> <warm-up> <window>
 *
 * window 0: tagged ping-pong; prints {"mode":"pingpong","size":..,"median_us":..,"p99_us":..} (half round trips).
 * window n: the client keeps n messages in flight, the server answers the last of each round of n;
 *           prints {"mode":"bandwidth","size":..,"window":..,"mb_per_s":..}.
 * The address is the source address of the fabric ("" for providers without IP addresses); endpoint names are exchanged over
 * a TCP connection through 127.0.0.1:<port>. The client prints; both exit with 0 when all went well.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_tagged.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define CHECK(call) \
    do { \
        int rc_ = (int)(call); \
        if (rc_) { \
            fprintf(stderr, "%s: %d (%s)\n", #call, rc_, fi_strerror(-rc_)); \
            exit(1); \
        } \
    } while (0)
#define MAX_WINDOW 256

static struct fid_ep *ep;
static struct fid_cq *cq;
static fi_addr_t peer;
static size_t inject_size;
static struct fi_context2 contexts[2 * MAX_WINDOW];
static int sends_done;
static int recvs_done;

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e6 + t.tv_nsec / 1e3;
}

static void poll_cq(void)
{
    struct fi_cq_tagged_entry entries[16];
    ssize_t n = fi_cq_read(cq, entries, 16);
    if (n == -FI_EAVAIL) {
        struct fi_cq_err_entry error = {0};
        fi_cq_readerr(cq, &error, 0);
        fprintf(stderr, "completion error %d (%s)\n", error.err, fi_strerror(error.err));
        exit(1);
    }
    for (ssize_t i = 0; i < n; i++) {
        struct fi_context2 *context = entries[i].op_context;
        if (context >= contexts + MAX_WINDOW) {
            recvs_done++;
        } else {
            sends_done++;
        }
    }
}

static void post_send(void *buffer, size_t size, int slot)
{
    ssize_t rc;
    while (1) {
        if (size <= inject_size) {
            rc = fi_tinject(ep, buffer, size, peer, 1);
            sends_done += rc == 0;
        } else {
            rc = fi_tsend(ep, buffer, size, NULL, peer, 1, &contexts[slot]);
        }
        if (rc != -FI_EAGAIN) {
            CHECK(rc);
            return;
        }
        poll_cq();
    }
}

static void post_recv(void *buffer, size_t size, int slot)
{
    ssize_t rc;
    while ((rc = fi_trecv(ep, buffer, size, NULL, FI_ADDR_UNSPEC, 1, 0, &contexts[MAX_WINDOW + slot])) == -FI_EAGAIN) {
        poll_cq();
    }
    CHECK(rc);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void pingpong(int client, char *out, char *in, size_t size, int iterations, int warm_up)
{
    double *half = malloc(sizeof(double) * iterations);
    recvs_done = 0;
    post_recv(in, size, 0);
    for (int i = 0; i < warm_up + iterations; i++) {
        double start = now_us();
        sends_done = 0;
        if (client) {
            post_send(out, size, 0);
        }
        while (!recvs_done) {
            poll_cq();
        }
        recvs_done = 0;
        post_recv(in, size, 0); /* the next one, before the answer goes */
        if (!client) {
            post_send(out, size, 0);
        }
        while (!sends_done) {
            poll_cq();
        }
        if (i >= warm_up) {
            half[i - warm_up] = (now_us() - start) / 2;
        }
    }
    if (client) {
        qsort(half, iterations, sizeof(double), compare);
        printf("{\"mode\":\"pingpong\",\"size\":%zu,\"median_us\":%.3f,\"p99_us\":%.3f}\n", size, half[iterations / 2],
            half[(int)(iterations * 0.99)]);
    }
}

static void bandwidth(int client, char *out, char *in, size_t size, int iterations, int warm_up, int window)
{
    double start = 0;
    long total = (long)(warm_up + iterations) * window;
    long posted = 0;
    sends_done = 0;
    recvs_done = 0;
    char token[8] = {0};
    for (int i = 0; i < window && !client; i++, posted++) {
        post_recv(in + i * size, size, i);
    }
    if (client) {
        long begun = (long)warm_up * window;
        while (sends_done < total) {
            while (posted < total && posted - sends_done < window) {
                if (posted == begun) {
                    start = now_us();
                }
                post_send(out + (posted % window) * size, size, posted % window);
                posted++;
            }
            poll_cq();
        }
        recvs_done = 0;
        post_recv(token, sizeof(token), 0);
        while (!recvs_done) {
            poll_cq();
        }
        double us = now_us() - start;
        printf("{\"mode\":\"bandwidth\",\"size\":%zu,\"window\":%d,\"mb_per_s\":%.1f}\n", size, window,
            (double)iterations * window * size / us);
    } else {
        while (recvs_done < total) {
            int before = recvs_done;
            poll_cq();
            for (int i = before; i < recvs_done && posted < total; i++, posted++) {
                post_recv(in + (i % window) * size, size, i % window);
            }
        }
        sends_done = 0;
        post_send(token, sizeof(token), 0);
        while (!sends_done) {
            poll_cq();
        }
        for (double end = now_us() + 2e4; now_us() < end;) {
            poll_cq();
        }
    }
}

static int rendezvous(int client, int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    int on = 1;
    if (client) {
        for (int i = 0; connect(fd, (struct sockaddr *)&address, sizeof(address)); i++) {
            if (i == 1000) {
                perror("connect");
                exit(1);
            }
            close(fd);
            usleep(10000);
            fd = socket(AF_INET, SOCK_STREAM, 0);
        }
        return fd;
    }
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, 1)) {
        perror("listen");
        exit(1);
    }
    return accept(fd, NULL, NULL);
}

int main(int argc, char **argv)
{
    if (argc != 9) {
        fprintf(stderr, "usage: fi_yardstick server|client provider address port size iterations warm-up window\n");
        return 2;
    }
    int client = !strcmp(argv[1], "client");
    size_t size = strtoul(argv[5], NULL, 10);
    int iterations = atoi(argv[6]);
    int warm_up = atoi(argv[7]);
    int window = atoi(argv[8]);
    struct fi_info *hints = fi_allocinfo();
    struct fi_info *info;
    struct fid_fabric *fabric;
    struct fid_domain *domain;
    struct fid_av *av;
    hints->caps = FI_TAGGED;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->ep_attr->type = FI_EP_RDM;
    hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    hints->domain_attr->threading = FI_THREAD_DOMAIN;
    hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
    hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
    hints->fabric_attr->prov_name = strdup(argv[2]);
    CHECK(fi_getinfo(FI_VERSION(1, 17), *argv[3] ? argv[3] : NULL, NULL, *argv[3] ? FI_SOURCE : 0, hints, &info));
    struct fi_av_attr av_attr = {.type = FI_AV_TABLE};
    struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_TAGGED, .wait_obj = FI_WAIT_NONE, .size = 4096};
    CHECK(fi_fabric(info->fabric_attr, &fabric, NULL));
    CHECK(fi_domain(fabric, info, &domain, NULL));
    CHECK(fi_av_open(domain, &av_attr, &av, NULL));
    CHECK(fi_cq_open(domain, &cq_attr, &cq, NULL));
    CHECK(fi_endpoint(domain, info, &ep, NULL));
    CHECK(fi_ep_bind(ep, &av->fid, 0));
    CHECK(fi_ep_bind(ep, &cq->fid, FI_SEND | FI_RECV));
    CHECK(fi_enable(ep));
    inject_size = info->tx_attr->inject_size;

    char name[128] = {0};
    char other[128] = {0};
    size_t length = sizeof(name);
    CHECK(fi_getname(&ep->fid, name, &length));
    int fd = rendezvous(client, atoi(argv[4]));
    if (write(fd, name, sizeof(name)) != sizeof(name) || recv(fd, other, sizeof(other), MSG_WAITALL) != sizeof(other)) {
        perror("rendezvous");
        return 1;
    }
    CHECK(fi_av_insert(av, other, 1, &peer, 0, NULL) != 1);
    size_t bytes = size * (window ? window : 1) + 64;
    char *out = malloc(bytes);
    char *in = malloc(bytes);
    memset(out, 1, bytes);
    memset(in, 0, bytes);
    if (window) {
        bandwidth(client, out, in, size, iterations, warm_up, window);
    } else {
        pingpong(client, out, in, size, iterations, warm_up);
    }
    CHECK(fi_close(&ep->fid));
    CHECK(fi_close(&cq->fid));
    CHECK(fi_close(&av->fid));
    CHECK(fi_close(&domain->fid));
    CHECK(fi_close(&fabric->fid));
    return 0;
}
