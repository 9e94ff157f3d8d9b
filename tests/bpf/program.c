/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program that uses a collective library in every way that the probes know, and prints what it did, one JSON object a
 * line: what it passed, what it was given, which thread's queue pairs are whose. The library's file is an argument.
 *
 *   program LIBRARY full|short|hang|late|graphs|held-up|pace [COUNT...]
 *
 * After loading the library, and after each COUNT of calls, it says so and, with PROGRAM_WAIT set, waits for a line on
 * stdin. pace: RATE and SECONDS.
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/bpf/standin.h"

struct dimensions {
    unsigned x, y, z;
};

#define FUNCTIONS(each)                                                                                                \
    each(ncclCommInitRank) each(ncclCommInitRankConfig) each(ncclCommInitRankScalable) each(ncclCommInitAll)           \
        each(ncclCommSplit) each(ncclCommDestroy) each(ncclCommAbort) each(ncclGroupStart) each(ncclGroupEnd)          \
            each(ncclAllReduce) each(ncclReduceScatter) each(ncclAllGather) each(ncclAlltoAll) each(ncclBcast)         \
                each(ncclBroadcast) each(ncclGather) each(ncclScatter) each(ncclReduce) each(ncclSend) each(ncclRecv)  \
                    each(ncclPutSignal) each(ncclSignal) each(ncclWaitSignal) each(ncclCommGetAsyncError)              \
                        each(standin_fail) each(standin_wait) each(standin_connect) each(standin_queue_pairs)

static struct {
#define MEMBER(name) __typeof__(name) *name;
    FUNCTIONS(MEMBER)
} lib;

static pthread_mutex_t output = PTHREAD_MUTEX_INITIALIZER;

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#ifdef LINKED /* the library is part of this program */
static void load(const char *path)
{
    (void)path;
#define LOAD(name) lib.name = name;
    FUNCTIONS(LOAD)
}
#else
static void load(const char *path)
{
    void *handle = dlopen(path, RTLD_NOW);
    if (handle == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(3);
    }
#define LOAD(name) lib.name = (__typeof__(name) *)dlsym(handle, #name);
    FUNCTIONS(LOAD)
}
#endif

static struct unique_id make_id(unsigned seed)
{
    struct unique_id id;
    for (size_t i = 0; i < sizeof id.bytes; i++)
        id.bytes[i] = (char)(rand_r(&seed) >> 8);
    return id;
}

/* Tells of a communicator with its queue pairs. `id` NULL where there is none. */
static void tell(const char *creator, comm_t comm, const struct unique_id *id, int ranks, int rank)
{
    uint32_t qpns[STANDIN_QUEUE_PAIRS_MAX];
    const int count = lib.standin_queue_pairs(comm, qpns);
    pthread_mutex_lock(&output);
    printf("{\"communicator\":\"%p\",\"pid\":%d,\"creator\":\"%s\",\"ranks_count\":%d,\"rank\":%d,\"id\":\"",
           (void *)comm, getpid(), creator, ranks, rank);
    for (size_t i = 0; id != NULL && i < sizeof id->bytes; i++)
        printf("%02x", (unsigned char)id->bytes[i]);
    printf("\",\"qpns\":[");
    for (int i = 0; i < count; i++)
        printf("%s%u", i == 0 ? "" : ",", qpns[i]);
    printf("]}\n");
    fflush(stdout);
    pthread_mutex_unlock(&output);
}

static void tell_call(comm_t comm, int operation, size_t count, int type, int reduction, int peer, uintptr_t stream,
                      int group, uint64_t before_ns, uint64_t after_ns, int result)
{
    printf("{\"call\":%d,\"pid\":%d,\"communicator\":\"%p\",\"count\":%zu,\"datatype\":%d,\"reduction\":%d,\"peer\":%d,"
           "\"stream\":\"0x%" PRIxPTR "\",\"group\":%d,\"before_ns\":%" PRIu64 ",\"after_ns\":%" PRIu64
           ",\"result\":%d}\n",
           operation, getpid(), (void *)comm, count, type, reduction, peer, stream, group, before_ns, after_ns, result);
}

/* Makes one call and tells of it. The numbers of the operations are those of wire/operation.def. */
#define STREAM(number) ((stream_t)(uintptr_t)(0x5000 + (number)))
#define CALL(operation, count, type, reduction, peer, stream, group, call)                                             \
    do {                                                                                                               \
        const uint64_t before_ns = now_ns();                                                                           \
        const int result = lib.call;                                                                                   \
        tell_call(comm, operation, count, type, reduction, peer, 0x5000 + (stream), group, before_ns, now_ns(),        \
                  result);                                                                                             \
    } while (0)

static void call_everything(comm_t comm)
{
    char in[8], out[8];
    CALL(1, 100, 7, 0, -1, 1, 0, ncclAllReduce(in, out, 100, 7, 0, comm, STREAM(1)));
    CALL(3, 101, 6, 2, -1, 2, 0, ncclReduceScatter(in, out, 101, 6, 2, comm, STREAM(2)));
    CALL(2, 102, 0, 255, -1, 3, 0, ncclAllGather(in, out, 102, 0, comm, STREAM(3)));
    CALL(8, 103, 1, 255, -1, 4, 0, ncclAlltoAll(in, out, 103, 1, comm, STREAM(4)));
    CALL(4, 104, 2, 255, 3, 5, 0, ncclBcast(in, 104, 2, 3, comm, STREAM(5)));
    CALL(4, 105, 3, 255, 2, 6, 0, ncclBroadcast(in, out, 105, 3, 2, comm, STREAM(6)));
    CALL(4, 106, 3, 255, 2, 7, 0, ncclBroadcast(in, in, 106, 3, 2, comm, STREAM(7)));
    CALL(9, 107, 4, 255, 1, 8, 0, ncclGather(in, out, 107, 4, 1, comm, STREAM(8)));
    CALL(10, 108, 5, 255, 0, 9, 0, ncclScatter(in, out, 108, 5, 0, comm, STREAM(9)));
    CALL(5, 109, 8, 1, 2, 10, 0, ncclReduce(in, out, 109, 8, 1, 2, comm, STREAM(10)));
    CALL(1, 1ull << 40, 9, 3, -1, 11, 0, ncclAllReduce(in, out, 1ull << 40, 9, 3, comm, STREAM(11)));
    CALL(1, STANDIN_REFUSED, 7, 254, -1, 12, 0, ncclAllReduce(in, out, STANDIN_REFUSED, 7, 0x10003, comm, STREAM(12)));
    CALL(4, STANDIN_REFUSED, 2, 255, 3, 13, 0, ncclBcast(in, STANDIN_REFUSED, 2, 3, comm, STREAM(13)));
    CALL(6, 111, 7, 255, 1, 14, 0, ncclSend(in, 111, 7, 1, comm, STREAM(14)));
}

static void call_with_signals(comm_t comm)
{
    char in[8];
    struct wait_descriptor waits[2] = {{3, 2, 0, 0}, {1, 0, 0, 0}};
    CALL(11, 120, 7, 255, 2, 1, 0, ncclPutSignal(in, 120, 7, 2, in, 64, 0, 0, 0, comm, STREAM(1)));
    CALL(12, 0, 255, 255, 2, 2, 0, ncclSignal(2, 0, 0, 0, comm, STREAM(2)));
    CALL(11, 121, 7, 255, 1, 1, 0, ncclPutSignal(in, 121, 7, 1, in, 64, 0, 0, 0, comm, STREAM(1)));
    for (int i = 0; i < 2; i++) {
        const uint64_t before_ns = now_ns();
        const int result = lib.ncclWaitSignal(2, waits, comm, STREAM(3));
        const uint64_t after_ns = now_ns();
        tell_call(comm, 13, 3, 255, 255, 2, 0x5003, 0, before_ns, after_ns, result);
        tell_call(comm, 13, 1, 255, 255, 0, 0x5003, 0, before_ns, after_ns, result);
    }
}

static void call_in_groups(comm_t comm, comm_t other)
{
    char buffer[8];
    for (int group = 1; group <= 2; group++) {
        lib.ncclGroupStart();
        lib.ncclGroupStart();
        CALL(6, 10, 7, 255, 1, 1, group, ncclSend(buffer, 10, 7, 1, comm, STREAM(1)));
        CALL(7, 11, 7, 255, 1, 1, group, ncclRecv(buffer, 11, 7, 1, comm, STREAM(1)));
        lib.ncclGroupEnd();
        CALL(6, 12, 7, 255, 3, 1, group, ncclSend(buffer, 12, 7, 3, comm, STREAM(1)));
        comm_t first = comm;
        comm = other;
        CALL(1, 13, 7, 0, -1, 1, group, ncclAllReduce(buffer, buffer, 13, 7, 0, comm, STREAM(1)));
        comm = first;
        usleep(2000);
        const uint64_t before_ns = now_ns();
        lib.ncclGroupEnd();
        printf("{\"group\":%d,\"pid\":%d,\"before_ns\":%" PRIu64 ",\"after_ns\":%" PRIu64 "}\n", group, getpid(),
               before_ns, now_ns());
    }
}

/* Queue pairs that no communicator has anything to do with, one of them through the old version's entry. */
static void *make_foreign(void *argument)
{
    (void)argument;
    void *verbs = dlopen(getenv("STANDIN_VERBS"), RTLD_NOW);
    static const char *const versions[] = {"IBVERBS_1.0", "IBVERBS_1.1"};
    for (int i = 0; i < 2; i++) {
        struct ibv_qp_init_attr attributes = {.qp_type = IBV_QPT_RC};
        struct ibv_qp_attr ready = {.qp_state = IBV_QPS_RTS};
        struct ibv_qp *(*create)(struct ibv_pd *, struct ibv_qp_init_attr *) =
            (struct ibv_qp * (*)(struct ibv_pd *, struct ibv_qp_init_attr *))
                dlvsym(verbs, "ibv_create_qp", versions[i]);
        int (*modify)(struct ibv_qp *, struct ibv_qp_attr *, int) =
            (int (*)(struct ibv_qp *, struct ibv_qp_attr *, int))dlvsym(verbs, "ibv_modify_qp", versions[i]);
        struct ibv_qp *queue_pair = create(NULL, &attributes);
        modify(queue_pair, &ready, IBV_QP_STATE);
        printf("{\"foreign\":%u,\"pid\":%d}\n", queue_pair->qp_num, getpid());
    }
    return NULL;
}

/* Connected to itself, to another device's queue pair of the same number, and refused by the library. */
static void make_connections(void)
{
    void *verbs = dlopen(getenv("STANDIN_VERBS"), RTLD_NOW);
    struct ibv_qp *(*create)(struct ibv_pd *, struct ibv_qp_init_attr *) =
        (struct ibv_qp * (*)(struct ibv_pd *, struct ibv_qp_init_attr *)) dlsym(verbs, "ibv_create_qp");
    int (*modify)(struct ibv_qp *, struct ibv_qp_attr *, int) =
        (int (*)(struct ibv_qp *, struct ibv_qp_attr *, int))dlsym(verbs, "ibv_modify_qp");
    int (*destroy)(struct ibv_qp *) = (int (*)(struct ibv_qp *))dlsym(verbs, "ibv_destroy_qp");
    const int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_DEST_QPN;
    for (int i = 0; i < 2; i++) {
        struct ibv_qp_init_attr attributes = {.qp_type = IBV_QPT_RC, .send_cq = (struct ibv_cq *)0xc0};
        struct ibv_qp *queue_pair = create(NULL, &attributes);
        struct ibv_qp_attr ready = {.qp_state = IBV_QPS_RTR, .dest_qp_num = queue_pair->qp_num};
        struct ibv_qp_attr refused = {.qp_state = IBV_QPS_UNKNOWN, .dest_qp_num = 4711};
        const uint8_t gid[16] = {[10] = 0xff, 0xff, 10, 1, 2, (uint8_t)(3 + i)}; /* own: ::ffff:10.1.2.3 */
        memcpy(ready.ah_attr.grh.dgid.raw, gid, sizeof gid);
        ready.ah_attr.is_global = 1;
        ready.ah_attr.port_num = 1;
        ready.ah_attr.grh.sgid_index = 2;
        ready.ah_attr.grh.traffic_class = 104;
        modify(queue_pair, &ready, mask);
        modify(queue_pair, &refused, mask);
        printf("{\"connection\":%u,\"pid\":%d,\"flush\":%d}\n", queue_pair->qp_num, getpid(), i == 0);
        destroy(queue_pair);
    }
}

static int change(void *verbs, const char *entry, struct ibv_qp *queue_pair, struct ibv_qp_attr *attributes, int mask)
{
    int (*modify)(struct ibv_qp *, struct ibv_qp_attr *, int) =
        (int (*)(struct ibv_qp *, struct ibv_qp_attr *, int))dlsym(verbs, entry);
    return modify(queue_pair, attributes, mask);
}

/* Everything that a queue pair is told on its way, by the public entry or past it; then a failure after which nothing
 * counts. */
static void walk(void *verbs, const char *entry, struct ibv_qp *queue_pair)
{
    struct ibv_qp_attr init = {
        .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ};
    struct ibv_qp_attr route = {.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_2048, .min_rnr_timer = 12};
    struct ibv_qp_attr ready = {.qp_state = IBV_QPS_RTS, .timeout = 20, .retry_cnt = 6, .rnr_retry = 7};
    struct ibv_qp_attr refused = {.qp_state = IBV_QPS_SQE, .timeout = 1};
    route.ah_attr.sl = 3;
    route.ah_attr.port_num = 1;
    change(verbs, entry, queue_pair, &init, IBV_QP_STATE | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    change(verbs, entry, queue_pair, &route, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_MIN_RNR_TIMER);
    change(verbs, entry, queue_pair, &ready, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY);
    change(verbs, "ibv_modify_qp", queue_pair, &refused, IBV_QP_STATE | IBV_QP_TIMEOUT);
}

/* Made as ibv_create_qp_ex and mlx5dv_create_qp do, past every public entry; one goes to ERR in the end. Of a library
 * whose private entry has changed nothing is told. */
static void make_past(void)
{
    void *verbs = dlopen(getenv("STANDIN_VERBS"), RTLD_NOW);
    struct ibv_qp *(*create)(struct ibv_qp_init_attr_ex *, int) =
        (struct ibv_qp * (*)(struct ibv_qp_init_attr_ex *, int)) dlsym(verbs, "standin_create_past");
    static const struct {
        enum ibv_qp_type type;
        int second;
        const char *entry;
    } ways[] = {{IBV_QPT_RC, 0, "ibv_cmd_modify_qp"},
                {IBV_QPT_UC, 0, NULL}, /* refused */
                {IBV_QPT_UC, 1, "ibv_cmd_modify_qp_ex"},
                {IBV_QPT_UD, 1, NULL}, /* changed */
                {IBV_QPT_RC, 1, "ibv_modify_qp"}};
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        struct ibv_qp_init_attr_ex attributes = {
            .qp_type = ways[i].type, .qp_context = &lib, .cap = {.max_send_wr = 256, .max_recv_wr = 3}};
        struct ibv_qp *queue_pair = create(&attributes, ways[i].second);
        if (ways[i].entry == NULL)
            continue;
        walk(verbs, ways[i].entry, queue_pair);
        struct ibv_qp_attr failed = {.qp_state = IBV_QPS_ERR};
        if (i == 0)
            change(verbs, "ibv_modify_qp", queue_pair, &failed, IBV_QP_STATE);
        printf("{\"past\":%u,\"pid\":%d,\"type\":%d,\"state\":%d,\"queue\":\"%p\",\"context\":\"%p\"}\n",
               queue_pair->qp_num, getpid(), ways[i].type, i == 0 ? 6 : 3, (void *)attributes.send_cq, (void *)&lib);
    }
}

struct thread_rank {
    struct unique_id id;
    int rank;
};

static void *be_a_rank(void *argument)
{
    const struct thread_rank *self = argument;
    comm_t comm;
    char buffer[8];
    lib.ncclCommInitRank(&comm, 2, self->id, self->rank);
    lib.standin_connect(comm, 3);
    tell("init_rank", comm, &self->id, 2, self->rank);
    pthread_mutex_lock(&output);
    CALL(1, 7, 7, 0, -1, self->rank, 0, ncclAllReduce(buffer, buffer, 7, 7, 0, comm, STREAM(self->rank)));
    pthread_mutex_unlock(&output);
    return NULL;
}

static void make_ranks_in_threads(void)
{
    pthread_t threads[2];
    struct thread_rank ranks[2] = {{make_id(77), 0}, {make_id(77), 1}};
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, be_a_rank, &ranks[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
}

static void make_group(bool nonblocking, unsigned seed)
{
    struct configuration config = {.size = sizeof config, .blocking = nonblocking ? 0 : 1};
    struct unique_id ids[3] = {make_id(seed), make_id(seed + 1), make_id(seed + 2)};
    comm_t comms[3] = {NULL, NULL, NULL};
    comm_t refused;
    lib.ncclGroupStart();
    lib.ncclCommInitRankConfig(&comms[0], 4, ids[0], 1, &config);
    lib.ncclCommInitRank(&comms[1], 2, ids[1], 0);
    lib.ncclCommInitRank(&refused, 2, ids[1], 2);
    lib.ncclCommInitRankScalable(&comms[2], 8, 5, 1, &ids[2], &config);
    lib.ncclGroupEnd();
    const int ranks[3][2] = {{4, 1}, {2, 0}, {8, 5}};
    for (int i = 2; i >= 0; i--) {
        lib.standin_wait(comms[i]);
        lib.standin_connect(comms[i], 1 + i);
        tell("group", comms[i], &ids[i], ranks[i][0], ranks[i][1]);
    }
}

static void make_children(comm_t parent)
{
    comm_t children[3];
    static const int colors[3] = {7, 7, 9};
    for (int i = 0; i < 3; i++) {
        lib.ncclCommSplit(parent, colors[i], 3 + i, &children[i], NULL);
        printf("{\"child\":\"%p\",\"parent\":\"%p\",\"pid\":%d,\"number\":%d,\"color\":%d,\"key\":%d}\n",
               (void *)children[i], (void *)parent, getpid(), i, colors[i], 3 + i);
        tell("split", children[i], NULL, 0, -1);
    }
    comm_t none;
    lib.ncclCommSplit(parent, -1, 0, &none, NULL);
}

/* ---- the GPU's runtime ---- */

static struct {
    int (*cudaStreamBeginCapture)(void *, int);
    int (*cudaStreamEndCapture)(void *, void **);
    int (*cudaGraphInstantiate)(void **, void *, unsigned long long);
    int (*cudaGraphLaunch)(void *, void *);
    int (*cudaStreamSynchronize)(void *);
    int (*cudaDeviceSynchronize)(void);
    int (*cudaLaunchKernel)(const void *, struct dimensions, struct dimensions, void **, size_t, void *);
    int (*cudaMalloc)(void **, size_t);
} gpu;

static void load_runtime(void)
{
    void *runtime = dlopen(getenv("STANDIN_RUNTIME"), RTLD_NOW);
    if (runtime == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(3);
    }
#define FIND(name, symbol) *(void **)&gpu.name = dlsym(runtime, symbol);
    FIND(cudaStreamBeginCapture, "cudaStreamBeginCapture")
    FIND(cudaStreamEndCapture, "cudaStreamEndCapture")
    FIND(cudaGraphInstantiate, "cudaGraphInstantiate")
    FIND(cudaGraphLaunch, "cudaGraphLaunch")
    FIND(cudaStreamSynchronize, "cudaStreamSynchronize_ptsz")
    FIND(cudaDeviceSynchronize, "cudaDeviceSynchronize")
    FIND(cudaLaunchKernel, "cudaLaunchKernel")
    FIND(cudaMalloc, "cudaMalloc")
}

static void tell_marker(int marker, uint64_t before_ns, uint64_t stream, void *handle, void *made, int result,
                        int captured)
{
    printf("{\"marker\":%d,\"pid\":%d,\"before_ns\":%" PRIu64 ",\"after_ns\":%" PRIu64 ",\"stream\":\"0x%" PRIx64
           "\",\"handle\":\"0x%" PRIxPTR "\",\"made\":\"0x%" PRIxPTR "\",\"result\":%d,\"captured_calls\":%d}\n",
           marker, getpid(), before_ns, now_ns(), stream, (uintptr_t)handle, (uintptr_t)made, result, captured);
}

/* Two collectives and a group of three calls, on the captured stream and on one that would be joined to it. */
static void *capture(comm_t comm)
{
    char buffer[8];
    void *graph = NULL;
    void *executable = NULL;
    uint64_t before_ns = now_ns();
    int result = gpu.cudaStreamBeginCapture(STREAM(1), 9); /* refused */
    tell_marker(6, before_ns, 0x5001, NULL, NULL, result, 0);
    lib.ncclAllReduce(buffer, buffer, 200, 7, 0, comm, STREAM(1));
    before_ns = now_ns();
    result = gpu.cudaStreamBeginCapture(STREAM(1), 0);
    tell_marker(6, before_ns, 0x5001, NULL, NULL, result, 0);
    lib.ncclAllReduce(buffer, buffer, 201, 7, 0, comm, STREAM(1));
    lib.ncclAllGather(buffer, buffer, 202, 7, comm, STREAM(2));
    lib.ncclGroupStart();
    lib.ncclSend(buffer, 203, 7, 1, comm, STREAM(2));
    lib.ncclRecv(buffer, 204, 7, 1, comm, STREAM(2));
    lib.ncclSend(buffer, 205, 7, 3, comm, STREAM(2));
    lib.ncclGroupEnd();
    before_ns = now_ns();
    result = gpu.cudaStreamEndCapture(STREAM(1), &graph);
    tell_marker(7, before_ns, 0x5001, NULL, graph, result, 5);
    lib.ncclAllReduce(buffer, buffer, 206, 7, 0, comm, STREAM(1));
    before_ns = now_ns();
    result = gpu.cudaGraphInstantiate(&executable, graph, 0);
    tell_marker(1, before_ns, 0, graph, executable, result, 5);
    return executable;
}

static void use_graphs(comm_t comm, int launches)
{
    char buffer[8];
    void *memory = NULL;
    void *executable = capture(comm);
    const struct dimensions one = {1, 1, 1};
    for (int i = 0; i < launches; i++) {
        uint64_t before_ns = now_ns();
        int result = gpu.cudaGraphLaunch(executable, STREAM(7));
        tell_marker(2, before_ns, 0x5007, executable, NULL, result, 5);
        lib.ncclAllReduce(buffer, buffer, 210, 7, 0, comm, STREAM(1));
        before_ns = now_ns();
        result = gpu.cudaStreamSynchronize(STREAM(7));
        tell_marker(3, before_ns, 0x5007, NULL, NULL, result, 0);
    }
    uint64_t before_ns = now_ns();
    int result = gpu.cudaDeviceSynchronize();
    tell_marker(4, before_ns, 0, NULL, NULL, result, 0);
    before_ns = now_ns();
    result = gpu.cudaGraphLaunch((void *)0x1234, STREAM(7)); /* of a graph that nobody has seen */
    tell_marker(2, before_ns, 0x5007, (void *)0x1234, NULL, result, -1);
    printf("{\"launched\":1}\n");
    fflush(stdout);
    if (getenv("PROGRAM_WAIT") != NULL && getchar() == EOF)
        exit(3);
    for (int i = 0; i < 100; i++)
        gpu.cudaLaunchKernel((const void *)0x4711, one, one, NULL, 0, STREAM(3));
    gpu.cudaMalloc(&memory, 4096);
}

/* ---- what keeps threads from running ---- */

static void *burn(void *argument)
{
    const uint64_t until_ns = *(const uint64_t *)argument;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(0, &set);
    pthread_setaffinity_np(pthread_self(), sizeof set, &set);
    while (now_ns() < until_ns)
        ;
    return NULL;
}

/* Sends so many bytes to itself over TCP. */
static void send_bytes(size_t bytes)
{
    static char buffer[65536];
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    const int from = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0 || listen(listener, 1) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &length) != 0 ||
        connect(from, (struct sockaddr *)&address, sizeof address) != 0)
        exit(3);
    const int to = accept(listener, NULL, NULL);
    for (size_t left = bytes; left > 0;) {
        const ssize_t sent = send(from, buffer, left < sizeof buffer ? left : sizeof buffer, 0);
        for (ssize_t got = 0; got < sent;)
            got += recv(to, buffer, sizeof buffer, 0);
        left -= (size_t)sent;
    }
    close(from);
    close(to);
    close(listener);
}

/* Fights for a CPU with three others for a second, sleeps for half of one, and sends. */
static void be_held_up(comm_t comm)
{
    char buffer[8];
    pthread_t others[3];
    lib.ncclAllReduce(buffer, buffer, 1, 7, 0, comm, STREAM(1));
    printf("{\"made\":1}\n");
    fflush(stdout);
    if (getenv("PROGRAM_WAIT") != NULL && getchar() == EOF)
        exit(3);
    const uint64_t from_ns = now_ns();
    uint64_t until_ns = from_ns + 1000000000u;
    for (int i = 0; i < 3; i++)
        pthread_create(&others[i], NULL, burn, &until_ns);
    burn(&until_ns);
    for (int i = 0; i < 3; i++)
        pthread_join(others[i], NULL);
    const uint64_t slept_from_ns = now_ns();
    usleep(500000);
    const uint64_t sent_from_ns = now_ns();
    send_bytes(10000000);
    usleep(150000); /* so that the sums are told */
    printf("{\"held_up\":%ld,\"pid\":%d,\"from_ns\":%" PRIu64 ",\"slept_from_ns\":%" PRIu64 ",\"sent_from_ns\":%" PRIu64
           ",\"to_ns\":%" PRIu64 "}\n",
           syscall(SYS_gettid), getpid(), from_ns, slept_from_ns, sent_from_ns, now_ns());
}

/* One communicator shows that it is not done (7), then an error, more than once; another shows none. */
static void fail_all(comm_t failing, comm_t fine)
{
    static const int results[] = {0, 7, 3, 3};
    int shown;
    for (size_t i = 0; i < sizeof results / sizeof results[0]; i++) {
        if (results[i] != 0)
            lib.standin_fail(failing, results[i]);
        lib.ncclCommGetAsyncError(failing, &shown);
        lib.ncclCommGetAsyncError(fine, &shown);
    }
    printf("{\"failed\":\"%p\",\"pid\":%d,\"warnings\":3,\"aborted\":\"%p\"}\n", (void *)failing, getpid(),
           (void *)fine);
}

/* So many calls a second, for so many seconds; prints how long they took it. */
static void keep_pace(comm_t comm, long rate, long seconds)
{
    char buffer[8];
    const uint64_t from_ns = now_ns();
    for (long i = 0; i < rate * seconds; i++) {
        const uint64_t due_ns = from_ns + (uint64_t)i * 1000000000u / (uint64_t)rate;
        const uint64_t at_ns = now_ns();
        if (due_ns > at_ns)
            usleep((useconds_t)((due_ns - at_ns) / 1000));
        lib.ncclAllReduce(buffer, buffer, (size_t)i, 7, 0, comm, STREAM(1));
    }
    printf("{\"paced\":%ld,\"pid\":%d,\"spent_ns\":%" PRIu64 "}\n", rate * seconds, getpid(), now_ns() - from_ns);
}

static void do_everything(void)
{
    struct unique_id id = make_id(1), later = make_id(2);
    struct configuration config = {.size = sizeof config, .blocking = 1};
    comm_t comm, second, third, all[3];
    pthread_t foreign;
    lib.ncclCommInitRank(&comm, 4, id, 2);
    tell("init_rank", comm, &id, 4, 2);
    lib.ncclCommInitRankConfig(&second, 3, later, 0, &config);
    tell("init_rank_config", second, &later, 3, 0);
    lib.ncclCommInitRankScalable(&third, 5, 4, 1, &id, NULL);
    tell("init_rank_scalable", third, &id, 5, 4);
    pthread_create(&foreign, NULL, make_foreign, NULL);
    pthread_join(foreign, NULL);
    make_group(false, 10);
    if (getenv("STANDIN_OLD") == NULL) /* version 2.13 knows none that do not block */
        make_group(true, 20);
    lib.ncclCommInitAll(all, 3, NULL);
    for (int i = 0; i < 3; i++)
        tell("init_all", all[i], NULL, 3, i);
    make_children(comm);
    make_ranks_in_threads();
    make_connections();
    make_past();
    call_everything(comm);
    call_with_signals(comm);
    call_in_groups(comm, second);
    fail_all(second, third);
    lib.ncclCommDestroy(second);
    lib.ncclCommAbort(third);
    printf("{\"destroyed\":\"%p\",\"pid\":%d}\n{\"destroyed\":\"%p\",\"pid\":%d}\n", (void *)second, getpid(),
           (void *)third, getpid());
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    load(argv[1]);
    printf("{\"loaded\":%d}\n", getpid());
    fflush(stdout);
    if (getenv("PROGRAM_WAIT") != NULL && getchar() == EOF)
        return 3;
    if (strcmp(argv[2], "full") == 0) {
        do_everything();
        usleep(200000); /* an own address is read from the process's root: it must still be there */
        return 0;
    }
    struct unique_id id = make_id((unsigned)getpid());
    comm_t comm;
    lib.ncclCommInitRank(&comm, 2, id, 1);
    tell("init_rank", comm, &id, 2, 1);
    if (strcmp(argv[2], "graphs") == 0) {
        load_runtime();
        printf("{\"made\":1}\n");
        fflush(stdout);
        if (getenv("PROGRAM_WAIT") != NULL && getchar() == EOF)
            return 3;
        use_graphs(comm, 3);
        return 0;
    }
    if (strcmp(argv[2], "pace") == 0 && argc == 5) {
        keep_pace(comm, atol(argv[3]), atol(argv[4]));
        return 0;
    }
    if (strcmp(argv[2], "held-up") == 0) {
        be_held_up(comm);
        return 0;
    }
    if (strcmp(argv[2], "late") == 0) { /* what came before is over when the daemon starts */
        printf("{\"made\":1}\n");
        fflush(stdout);
        if (getchar() == EOF)
            return 3;
        lib.standin_connect(comm, 1);
        make_foreign(NULL);
    }
    size_t number = 0;
    for (int i = 3; i < argc; i++) {
        for (long left = atol(argv[i]); left > 0; left--)
            lib.ncclAllReduce(&id, &id, number++, 7, 0, comm, NULL);
        printf("{\"done\":%zu}\n", number);
        fflush(stdout);
        if (getenv("PROGRAM_WAIT") != NULL && getchar() == EOF)
            return 3;
    }
    if (strcmp(argv[2], "late") == 0) {
        lib.standin_connect(comm, 1);
        tell("init_rank", comm, &id, 2, 1);
    }
    if (strcmp(argv[2], "hang") == 0)
        pause();
    lib.ncclCommDestroy(comm);
    return 0;
}
