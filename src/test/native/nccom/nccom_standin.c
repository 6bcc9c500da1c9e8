/*
 * A stand-in for libnccom: the 37 functions of the boundary with their signatures, in three files (this one, nccom_standin_net.c,
 * nccom_standin_proxy.c). It moves bytes between communicators of one process by copying, and between processes over Unix sockets,
 * and it checks every argument. What it is handed wrongly it reports on standard error, counts (standin_violations), and answers
 * with INVALID.
 *
 * It misbehaves by environment variables, read when it is loaded, by neuronInitNet and by standin_configure():
 *
 *   NCCOM_STANDIN_COMPAT=88              compatibility id (89)
 *   NCCOM_STANDIN_FAIL=f:2,g:1+:14       the 2nd call of f answers 1; the 1st and all later calls of g answer 14
 *   NCCOM_STANDIN_NULL_COMMS=n           the first n connects and the first n accepts answer no communicator
 *   NCCOM_STANDIN_NULL_REQUESTS=n        the first n posts answer no request
 *   NCCOM_STANDIN_SLOW_TEST=n            each request is tested n times in vain
 *   NCCOM_STANDIN_ROOM=n                 requests of a communicator (256)
 *   NCCOM_STANDIN_NO_DEVICE_MEMORY=1     memory of type 4 cannot be registered
 *   NCCOM_STANDIN_SOCKETS=1              over sockets within the process, too
 *   NCCOM_STANDIN_CONNECT_WAITS=1        a connect answers only when it was accepted
 *   NCCOM_STANDIN_INIT_WAITS=1           neuronInitGlobalComm and neuronBuildGraphComm return when all ranks have come, or fail after 10 s
 *   NCCOM_STANDIN_HOLD_REG=1             neuronNetRegMrOG does not return while this is set, for a minute at most
 *   NCCOM_STANDIN_RECORD=1               standin_last_call() tells function and arguments
 *   NCCOM_STANDIN_STEAL_SIGNALS=1        loading, listen, connect and accept replace the handlers of SIGSEGV and SIGTERM
 */
#define _GNU_SOURCE
#include "nccom_standin.h"
#include "nccom_settings.h"
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct settings settings;
_Atomic long live[LIVE_COUNT];

static _Atomic long violations;
static _Atomic long calls[FUNCTION_COUNT];
static long fail_at[FUNCTION_COUNT];
static int fail_on[FUNCTION_COUNT];
static int fail_status[FUNCTION_COUNT];
static char last_call[512];
static pthread_mutex_t last_call_lock = PTHREAD_MUTEX_INITIALIZER;

#define NAME(name) #name,
static const char *const names[] = {FUNCTIONS(NAME)};

static long number(const char *variable, long otherwise)
{
    const char *text = getenv(variable);
    return text && *text ? atol(text) : otherwise;
}

static void read_failures(void)
{
    memset(fail_at, 0, sizeof(fail_at));
    settings.any_failure = 0;
    const char *text = getenv("NCCOM_STANDIN_FAIL");
    char copy[512];
    snprintf(copy, sizeof(copy), "%s", text ? text : "");
    char *rest;
    for (char *item = strtok_r(copy, ",", &rest); item; item = strtok_r(NULL, ",", &rest)) {
        char *colon = strchr(item, ':');
        long at = colon ? strtol(colon + 1, &colon, 10) : 1;
        for (int f = 0; f < FUNCTION_COUNT; f++) {
            size_t length = strlen(names[f]);
            if (!strncmp(item, names[f], length) && (!item[length] || item[length] == ':')) {
                fail_at[f] = at;
                fail_on[f] = colon && *colon == '+';
                char *status = colon ? strchr(colon, ':') : NULL;
                fail_status[f] = status ? atoi(status + 1) : FAILURE;
                settings.any_failure = 1;
            }
        }
    }
}

EXPORT void standin_configure(void)
{
    settings.null_connects = settings.null_accepts = number("NCCOM_STANDIN_NULL_COMMS", 0);
    settings.null_requests = number("NCCOM_STANDIN_NULL_REQUESTS", 0);
    settings.slow_test = number("NCCOM_STANDIN_SLOW_TEST", 0);
    settings.room = number("NCCOM_STANDIN_ROOM", 256);
    settings.no_device_memory = number("NCCOM_STANDIN_NO_DEVICE_MEMORY", 0);
    settings.sockets = number("NCCOM_STANDIN_SOCKETS", 0);
    settings.connect_waits = number("NCCOM_STANDIN_CONNECT_WAITS", 0);
    settings.init_waits = number("NCCOM_STANDIN_INIT_WAITS", 0);
    settings.hold_reg = number("NCCOM_STANDIN_HOLD_REG", 0);
    settings.steal_signals = number("NCCOM_STANDIN_STEAL_SIGNALS", 0);
    settings.recording = number("NCCOM_STANDIN_RECORD", 0);
    read_failures();
}

static void stolen(int signal_number)
{
    static const char text[] = "nccom stand-in: its own signal handler was called\n";
    (void)!write(2, text, sizeof(text) - 1);
    _exit(128 + signal_number);
}

void steal_signals(void)
{
    if (settings.steal_signals) {
        signal(SIGSEGV, stolen);
        signal(SIGTERM, stolen);
    }
}

__attribute__((constructor)) static void loaded(void)
{
    standin_configure();
    steal_signals();
}

EXPORT long standin_violations(void)
{
    return violations;
}

/* what: one of LIVE_*. */
EXPORT long standin_live(int what)
{
    return what >= 0 && what < LIVE_COUNT ? live[what] : -1;
}

EXPORT long standin_calls(const char *name)
{
    for (int f = 0; f < FUNCTION_COUNT; f++) {
        if (!strcmp(name, names[f])) {
            return calls[f];
        }
    }
    return -1;
}

EXPORT void standin_reset_calls(void)
{
    for (int f = 0; f < FUNCTION_COUNT; f++) {
        calls[f] = 0;
    }
}

EXPORT const char *standin_last_call(void)
{
    return last_call;
}

int enter(int function)
{
    if (!settings.any_failure) {
        atomic_fetch_add_explicit(&calls[function], 1, memory_order_relaxed);
        return OK;
    }
    long call = ++calls[function];
    return fail_at[function] && (call == fail_at[function] || (fail_on[function] && call > fail_at[function]))
        ? fail_status[function] : OK;
}

int violation(const char *format, ...)
{
    char text[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    fprintf(stderr, "nccom stand-in: VIOLATION: %s\n", text);
    violations++;
    return INVALID;
}

void record(const char *format, ...)
{
    if (settings.recording) {
        va_list arguments;
        va_start(arguments, format);
        pthread_mutex_lock(&last_call_lock);
        vsnprintf(last_call, sizeof(last_call), format, arguments);
        pthread_mutex_unlock(&last_call_lock);
        va_end(arguments);
    }
}

int aligned(const void *pointer, size_t alignment)
{
    return pointer && (uintptr_t)pointer % alignment == 0;
}

/* ---- version, plug-in, host */

EXPORT void neuronGetVersionInfo(void *info, uint32_t size)
{
    enter(FN_neuronGetVersionInfo);
    record("neuronGetVersionInfo(%d,%u)", info != NULL, size);
    if (!aligned(info, 8) || size != sizeof(nccom_version_info_t)) {
        violation("neuronGetVersionInfo(%p, %u)", info, size);
        return;
    }
    for (uint32_t i = 0; i < size; i++) {
        if (((char *)info)[i]) {
            violation("neuronGetVersionInfo: byte %u of the record is not 0", i);
            return;
        }
    }
    nccom_version_info_t *version = info;
    version->major = 2;
    version->minor = 31;
    version->patch = 24;
    version->maintenance = 0;
    memcpy(version->git_hash, "57a4d1n00", 10);
    version->compatibility_id = (uint64_t)number("NCCOM_STANDIN_COMPAT", 89);
}

EXPORT int neuronInitNet(char *root_comm_id)
{
    standin_configure();
    record("neuronInitNet(%s)", root_comm_id ? root_comm_id : "NULL");
    ENTER(neuronInitNet);
    if (root_comm_id && !strchr(root_comm_id, ':')) {
        return violation("neuronInitNet(%s)", root_comm_id);
    }
    live[LIVE_NETS]++;
    return OK;
}

EXPORT int neuronFiniPlugin(void)
{
    record("neuronFiniPlugin()");
    ENTER(neuronFiniPlugin);
    if (live[LIVE_COMMS] || live[LIVE_LISTENERS] || live[LIVE_MRS]) {
        return violation("neuronFiniPlugin with %ld communicators, %ld listeners, %ld registrations", live[LIVE_COMMS],
            live[LIVE_LISTENERS], live[LIVE_MRS]);
    }
    if (live[LIVE_NETS]-- <= 0) {
        live[LIVE_NETS] = 0;
        return violation("neuronFiniPlugin without neuronInitNet");
    }
    return OK;
}

EXPORT int neuronGetOFIHandle(void **out)
{
    record("neuronGetOFIHandle(%d)", out != NULL);
    ENTER(neuronGetOFIHandle);
    if (!aligned(out, 8)) {
        return violation("neuronGetOFIHandle(%p)", (void *)out);
    }
    *out = &settings;
    return OK;
}

EXPORT int neuronPreferredNcRidNic(uint32_t a, uint32_t b, int *nic)
{
    record("neuronPreferredNcRidNic(%u,%u,%d)", a, b, nic != NULL);
    ENTER(neuronPreferredNcRidNic);
    if (a >= 128 || b >= 128 || !aligned(nic, 4)) {
        return violation("neuronPreferredNcRidNic(%u, %u, %p)", a, b, (void *)nic);
    }
    *nic = (int)(a % NICS);
    return OK;
}

EXPORT int neuronPreferredNcRidNicBdf(uint32_t a, uint32_t b, char *bdf, size_t size)
{
    record("neuronPreferredNcRidNicBdf(%u,%u,%d,%zu)", a, b, bdf != NULL, size);
    ENTER(neuronPreferredNcRidNicBdf);
    if (a >= 128 || b >= 128 || !bdf || size < 13) {
        return violation("neuronPreferredNcRidNicBdf(%u, %u, %p, %zu)", a, b, (void *)bdf, size);
    }
    snprintf(bdf, size, "0000:%02x:00.0", a % NICS);
    return OK;
}

EXPORT int neuronSetAffinity(void *comm, cpu_set_t *override, cpu_set_t *save, int core)
{
    record("neuronSetAffinity(%d,%d,%d,%d)", comm != NULL, override != NULL, save != NULL, core);
    ENTER(neuronSetAffinity);
    if (!comm || core < 0 || (save && !aligned(save, 8))) {
        return violation("neuronSetAffinity(%p, %p, %p, %d)", comm, (void *)override, (void *)save, core);
    }
    if (save) {
        CPU_ZERO(save);
        CPU_SET(core, save);
    }
    return OK;
}
