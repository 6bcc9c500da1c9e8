/*
 * What a caller in C pays for an isend and a test of the stand-in: nccom_caller <library> <rounds>.
 * A round is one irecv, one isend of 8 bytes, and one test of each. Prints nanoseconds of a round,
 * and half of that as what one post and its test cost; the median of 15 passes.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return x < y ? -1 : x > y;
}

#define CHECK(call) \
    do { \
        if (call) { \
            fprintf(stderr, "%s failed\n", #call); \
            return 1; \
        } \
    } while (0)
#define PASSES 15

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: nccom_caller library rounds\n");
        return 2;
    }
    void *library = dlopen(argv[1], RTLD_NOW);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    long rounds = atol(argv[2]);
    int (*listen)(int, void *, void **) = (int (*)(int, void *, void **))dlsym(library, "neuronNetListen");
    int (*connect)(int, void *, void **) = (int (*)(int, void *, void **))dlsym(library, "neuronNetConnect");
    int (*accept)(void *, void **) = (int (*)(void *, void **))dlsym(library, "neuronNetAccept");
    int (*reg)(void *, void *, size_t, int, void **) = (int (*)(void *, void *, size_t, int, void **))dlsym(library, "neuronNetRegMrOG");
    int (*isend)(void *, void *, int, void *, void **) = (int (*)(void *, void *, int, void *, void **))dlsym(library, "neuronNetIsend");
    int (*irecv)(void *, void *, int, void *, void **) = (int (*)(void *, void *, int, void *, void **))dlsym(library, "neuronNetIrecv");
    int (*test)(void *, int *, int *) = (int (*)(void *, int *, int *))dlsym(library, "neuronNetTest");
    static uint64_t handle[16];
    static char out[64];
    static char in[64];
    void *listener;
    void *send;
    void *recv;
    void *out_mr;
    void *in_mr;
    CHECK(listen(0, handle, &listener));
    CHECK(connect(0, handle, &send));
    CHECK(accept(listener, &recv));
    CHECK(reg(send, out, sizeof(out), 4, &out_mr));
    CHECK(reg(recv, in, sizeof(in), 4, &in_mr));
    double took[PASSES];
    for (int pass = 0; pass < PASSES; pass++) {
        double start = now_ns();
        for (long i = 0; i < rounds; i++) {
            void *received;
            void *sent;
            int done;
            int size;
            CHECK(irecv(recv, in, 8, in_mr, &received));
            CHECK(isend(send, out, 8, out_mr, &sent));
            CHECK(test(received, &done, &size) || !done);
            CHECK(test(sent, &done, &size) || !done);
        }
        took[pass] = (now_ns() - start) / (double)rounds;
    }
    qsort(took, PASSES, sizeof(double), compare);
    printf("{\"round_ns\":%.1f,\"post_and_test_ns\":%.1f}\n", took[PASSES / 2], took[PASSES / 2] / 2);
    return 0;
}
