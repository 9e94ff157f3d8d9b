/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stand-in for the collective library that lives as NCCL does where it matters to the probes: a service thread a
 * communicator, made where NCCL makes it (in the caller; in one thread a job of a group; behind one thread for a
 * non-blocking group), which makes the queue pairs, and a progress thread, made by the service thread, which takes them
 * to RTS. It moves no data. STANDIN_OLD=1: as NCCL 2.13 (the ncclComm_t is stored at the end, jobs always have a
 * thread); else as 2.28.3 and later (stored at once, a single job runs in the caller).
 */
#include "tests/bpf/seat.h"
#include "tests/bpf/standin.h"

#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT      __attribute__((visibility("default"), noinline))
#define JOBS_MAX    64
#define IN_PROGRESS 7
#define VERSION     23004

struct standin_communicator {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    pthread_t service;
    bool ready;
    bool stop;
    int error;
    int wanted;
    int connected;
    int made;
    struct ibv_qp *queue_pairs[STANDIN_QUEUE_PAIRS_MAX];
    uint32_t qpns[STANDIN_QUEUE_PAIRS_MAX];
    int children;
    char much_else[1 << 20];
    uint64_t hash; /* from here on as in NCCL: side by side */
    int rank;
    int ranks;
    int device;
};

/* What a child's job has to find out with the other ranks. */
struct birth {
    struct seat seat;
    int expected; /* 0 = nothing: the rank is known, or none is noted */
};

struct job {
    comm_t comm;
    comm_t *place;
    int delay_us;
    struct birth birth;
};

static __thread int depth;
static __thread int jobs_count;
static __thread bool nonblocking;
static __thread struct job jobs[JOBS_MAX];

static struct ibv_qp *(*create_qp)(struct ibv_pd *, struct ibv_qp_init_attr *);
static int (*modify_qp)(struct ibv_qp *, struct ibv_qp_attr *, int);
static int (*destroy_qp)(struct ibv_qp *);

static bool is_old(void)
{
    return getenv("STANDIN_OLD") != NULL;
}

/* All ranks are threads of this process, so that those of a child can meet. */
static bool meets(void)
{
    return getenv("STANDIN_MEET") != NULL;
}

__attribute__((constructor)) static void start(void)
{
    void *library = dlopen(getenv("STANDIN_VERBS"), RTLD_NOW);
    if (library == NULL)
        _exit(3);
    create_qp = (struct ibv_qp * (*)(struct ibv_pd *, struct ibv_qp_init_attr *))
        dlvsym(library, "ibv_create_qp", "IBVERBS_1.1");
    modify_qp = (int (*)(struct ibv_qp *, struct ibv_qp_attr *, int))dlvsym(library, "ibv_modify_qp", "IBVERBS_1.1");
    destroy_qp = (int (*)(struct ibv_qp *))dlvsym(library, "ibv_destroy_qp", "IBVERBS_1.1");
}

static void *progress(void *argument)
{
    comm_t comm = argument;
    pthread_mutex_lock(&comm->mutex);
    while (!comm->stop) {
        while (comm->connected < comm->made) {
            struct ibv_qp_attr ready = {.qp_state = IBV_QPS_RTS};
            modify_qp(comm->queue_pairs[comm->connected++], &ready, IBV_QP_STATE);
            pthread_cond_broadcast(&comm->changed);
        }
        pthread_cond_wait(&comm->changed, &comm->mutex);
    }
    pthread_mutex_unlock(&comm->mutex);
    return NULL;
}

static void make_queue_pair(comm_t comm)
{
    struct ibv_qp_init_attr attributes = {.send_cq = (struct ibv_cq *)comm, .qp_type = IBV_QPT_RC};
    struct ibv_qp_attr fresh = {.qp_state = IBV_QPS_INIT, .port_num = 1};
    struct ibv_qp *queue_pair = create_qp(NULL, &attributes);
    modify_qp(queue_pair, &fresh, IBV_QP_STATE | IBV_QP_PORT);
    comm->qpns[comm->made] = queue_pair->qp_num;
    comm->queue_pairs[comm->made++] = queue_pair;
}

static void *service(void *argument)
{
    comm_t comm = argument;
    pthread_t helper;
    pthread_create(&helper, NULL, progress, comm);
    pthread_mutex_lock(&comm->mutex);
    while (!comm->stop) {
        while (comm->made < comm->wanted) {
            make_queue_pair(comm);
            pthread_cond_broadcast(&comm->changed);
        }
        pthread_cond_wait(&comm->changed, &comm->mutex);
    }
    for (int i = 0; i < comm->made; i++)
        destroy_qp(comm->queue_pairs[i]);
    pthread_mutex_unlock(&comm->mutex);
    pthread_join(helper, NULL);
    return NULL;
}

EXPORT void standin_connect(comm_t comm, int count)
{
    pthread_mutex_lock(&comm->mutex);
    comm->wanted += count;
    pthread_cond_broadcast(&comm->changed);
    while (comm->connected < comm->wanted)
        pthread_cond_wait(&comm->changed, &comm->mutex);
    pthread_mutex_unlock(&comm->mutex);
}

EXPORT int standin_queue_pairs(comm_t comm, uint32_t qpns[STANDIN_QUEUE_PAIRS_MAX])
{
    memcpy(qpns, comm->qpns, sizeof comm->qpns);
    return comm->made;
}

EXPORT void standin_wait(comm_t comm)
{
    pthread_mutex_lock(&comm->mutex);
    while (!comm->ready)
        pthread_cond_wait(&comm->changed, &comm->mutex);
    pthread_mutex_unlock(&comm->mutex);
}

static uint64_t hash_of(const void *bytes, size_t length)
{
    uint64_t hash = 5381;
    for (size_t i = 0; i < length; i++)
        hash = hash * 33 ^ ((const unsigned char *)bytes)[i];
    return hash;
}

static void be_born(const struct job *job)
{
    int ranks, rank;
    if (job->birth.expected == 0)
        return;
    const struct seat *seat = &job->birth.seat;
    seat_take(seat, job->birth.expected, &ranks, &rank);
    if (job->comm == NULL)
        return;
    const uint64_t name[3] = {seat->parent, (uint64_t)seat->child, (uint64_t)seat->color};
    job->comm->hash = hash_of(name, sizeof name);
    job->comm->ranks = ranks;
    job->comm->rank = rank;
}

static void *run_job(void *argument)
{
    const struct job *job = argument;
    usleep((useconds_t)job->delay_us);
    be_born(job);
    if (job->comm == NULL) /* a split in which this rank takes no part: its job runs all the same */
        return NULL;
    pthread_create(&job->comm->service, NULL, service, job->comm);
    standin_connect(job->comm, 2);
    *job->place = job->comm;
    pthread_mutex_lock(&job->comm->mutex);
    job->comm->ready = true;
    pthread_cond_broadcast(&job->comm->changed);
    pthread_mutex_unlock(&job->comm->mutex);
    return NULL;
}

static comm_t new_communicator(const struct unique_id *id, int ranks, int rank)
{
    comm_t comm = calloc(1, sizeof *comm);
    comm->hash = id == NULL ? 0 : hash_of(id, sizeof *id);
    comm->ranks = ranks;
    comm->rank = rank;
    comm->device = 3;
    pthread_mutex_init(&comm->mutex, NULL);
    pthread_cond_init(&comm->changed, NULL);
    return comm;
}

static struct job *add_job(comm_t *place, comm_t comm, const struct configuration *config, bool store_late)
{
    if (!store_late && !is_old())
        *place = comm;
    if (config != NULL && config->blocking == 0)
        nonblocking = true;
    jobs[jobs_count] = (struct job){.comm = comm, .place = place};
    return &jobs[jobs_count++];
}

/* The later a job was asked for, the earlier it gets to its queue pairs: only lineage tells whose they are. */
static void run_jobs(struct job *all, int count)
{
    pthread_t threads[JOBS_MAX];
    if (count == 1 && !is_old()) {
        run_job(&all[0]);
        return;
    }
    for (int i = 0; i < count; i++) {
        all[i].delay_us = (count - i) * 3000;
        pthread_create(&threads[i], NULL, run_job, &all[i]);
    }
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

struct handed_over {
    int count;
    struct job jobs[JOBS_MAX];
};

static void *run_group(void *argument)
{
    struct handed_over *group = argument;
    run_jobs(group->jobs, group->count);
    free(group);
    return NULL;
}

static int finish_group(void)
{
    const int count = jobs_count;
    const bool hand_over = nonblocking;
    jobs_count = 0;
    nonblocking = false;
    if (count == 0)
        return 0;
    if (!hand_over) {
        run_jobs(jobs, count);
        return 0;
    }
    pthread_t thread;
    struct handed_over *group = calloc(1, sizeof *group);
    group->count = count;
    memcpy(group->jobs, jobs, sizeof jobs);
    pthread_create(&thread, NULL, run_group, group);
    pthread_detach(thread);
    return IN_PROGRESS;
}

static int leave(void)
{
    return --depth == 0 ? finish_group() : 0;
}

EXPORT int ncclGroupStart(void)
{
    depth++;
    return 0;
}

EXPORT int ncclGroupEnd(void)
{
    return leave();
}

EXPORT int ncclCommInitRank(comm_t *comm, int ranks, struct unique_id id, int rank)
{
    if (rank >= ranks)
        return 4; /* ncclInvalidArgument */
    add_job(comm, new_communicator(&id, ranks, rank), NULL, false);
    if (depth != 0)
        return 0;
    struct job job = jobs[--jobs_count];
    run_job(&job);
    return 0;
}

EXPORT int ncclCommInitRankConfig(comm_t *comm, int ranks, struct unique_id id, int rank, struct configuration *config)
{
    depth++;
    add_job(comm, new_communicator(&id, ranks, rank), config, false);
    return leave();
}

EXPORT int ncclCommInitRankScalable(comm_t *comm, int ranks, int rank, int ids_count, struct unique_id *ids,
                                    struct configuration *config)
{
    (void)ids_count;
    depth++;
    add_job(comm, new_communicator(&ids[0], ranks, rank), config, false);
    return leave();
}

/* The root of the id that ncclCommInitAll makes for itself: the first thread of the call, which serves nobody. */
static void *be_root(void *argument)
{
    return argument;
}

EXPORT int ncclCommInitAll(comm_t *comms, int count, const int *devices)
{
    (void)devices;
    const struct unique_id id = {"of a call"};
    pthread_t root;
    pthread_create(&root, NULL, be_root, NULL);
    pthread_join(root, NULL);
    depth++;
    for (int i = 0; i < count; i++)
        add_job(&comms[i], new_communicator(&id, count, i), NULL, false);
    return leave();
}

EXPORT int ncclCommSplit(comm_t comm, int color, int key, comm_t *child, struct configuration *config)
{
    *child = NULL;
    depth++;
    struct job *job = add_job(child, color < 0 ? NULL : new_communicator(NULL, 0, 0), config, true);
    job->birth = (struct birth){{comm->hash, comm->children++, color, key, comm->rank}, meets() ? comm->ranks : 0};
    return leave();
}

EXPORT int ncclCommShrink(comm_t comm, int *excluded, int excluded_count, comm_t *child, struct configuration *config,
                          int flags)
{
    (void)excluded, (void)flags;
    *child = NULL;
    depth++;
    struct job *job = add_job(child, new_communicator(NULL, 0, 0), config, true);
    job->birth = (struct birth){{comm->hash, comm->children++, 0, 0, comm->rank}, comm->ranks - excluded_count};
    return leave();
}

/* Ranks that were there keep theirs and need no id; NCCL's hash is of the parent and the number of ranks. */
EXPORT int ncclCommGrow(comm_t comm, int ranks, const struct unique_id *id, int rank, comm_t *grown,
                        struct configuration *config)
{
    depth++;
    comm_t fresh = new_communicator(id, ranks, comm == NULL ? rank : comm->rank);
    fresh->hash = 0x9000000 + (uint64_t)ranks;
    if (comm != NULL)
        comm->children++;
    add_job(grown, fresh, config, false);
    return leave();
}

EXPORT int ncclCommDestroy(comm_t comm)
{
    pthread_mutex_lock(&comm->mutex);
    comm->stop = true;
    pthread_cond_broadcast(&comm->changed);
    pthread_mutex_unlock(&comm->mutex);
    pthread_join(comm->service, NULL);
    free(comm);
    return 0;
}

/* The name that C++ gives to NCCL's ncclDebugLog(ncclDebugLogLevel, unsigned long, const char *, int, const char *,
 * ...). */
EXPORT void _Z12ncclDebugLog17ncclDebugLogLevelmPKciS1_z(int level, unsigned long flags, const char *file, int line,
                                                         const char *format, ...)
{
    __asm__ volatile("" ::"r"(level), "r"(flags), "r"(file), "r"(line), "r"(format));
}

EXPORT int ncclCommGetAsyncError(comm_t comm, int *error)
{
    *error = comm->error;
    return 0;
}

EXPORT void standin_fail(comm_t comm, int result)
{
    _Z12ncclDebugLog17ncclDebugLogLevelmPKciS1_z(3, ~0ul, "net.cc", 7, "Channel %02d is of no interest", 1);
    _Z12ncclDebugLog17ncclDebugLogLevelmPKciS1_z(2, ~0ul, "net_ib.cc", 8, "NET/IB: Got completion with status=%d", 12);
    comm->error = result;
}

EXPORT int ncclCommAbort(comm_t comm)
{
    return ncclCommDestroy(comm);
}

/* A data call takes as long as STANDIN_CALL_US says, and refuses a count of STANDIN_REFUSED. */
static int run_call(size_t count)
{
    const char *time_us = getenv("STANDIN_CALL_US");
    if (time_us != NULL)
        usleep((useconds_t)atol(time_us));
    return count == STANDIN_REFUSED ? 4 : 0; /* ncclInvalidArgument */
}

EXPORT int ncclCommFinalize(comm_t comm)
{
    return comm->hash == 1; /* never */
}

EXPORT int ncclCommRevoke(comm_t comm, int flags)
{
    return comm->hash == 1 && flags != 0;
}

EXPORT int ncclCommUserRank(const comm_t comm, int *rank)
{
    if (comm == NULL)
        return 4;
    *rank = comm->rank;
    return 0;
}

EXPORT int ncclCommCount(const comm_t comm, int *count)
{
    if (comm == NULL)
        return 4;
    *count = comm->ranks;
    return 0;
}

EXPORT int ncclCommCuDevice(const comm_t comm, int *device)
{
    if (comm == NULL)
        return 4;
    *device = comm->device;
    return 0;
}

EXPORT int ncclGetVersion(int *version)
{
    *version = VERSION;
    return 0;
}

EXPORT uint64_t standin_hash(comm_t comm)
{
    return comm->hash;
}

#define DATA_CALL(...)                                                                                                 \
    (__VA_ARGS__)                                                                                                      \
    {                                                                                                                  \
        __asm__ volatile("");                                                                                          \
        return 0;                                                                                                      \
    }

#pragma GCC diagnostic ignored "-Wunused-parameter"
EXPORT int ncclAllReduce(const void *in, void *out, size_t count, int type, int reduction, comm_t comm, stream_t stream)
{
    return run_call(count);
}

EXPORT int ncclReduceScatter(const void *in, void *out, size_t count, int type, int reduction, comm_t comm,
                             stream_t stream)
{
    return run_call(count);
}

EXPORT int ncclAllGather(const void *in, void *out, size_t count, int type, comm_t comm, stream_t stream)
{
    return run_call(count);
}

EXPORT int ncclAlltoAll(const void *in, void *out, size_t count, int type, comm_t comm, stream_t stream)
{
    return run_call(count);
}

EXPORT int ncclBroadcast(const void *in, void *out, size_t count, int type, int root, comm_t comm, stream_t stream)
{
    return run_call(count);
}

EXPORT int ncclGather(const void *in, void *out, size_t count, int type, int root, comm_t comm, stream_t stream)
{
    return run_call(count);
}

EXPORT int ncclScatter(const void *in, void *out, size_t count, int type, int root, comm_t comm, stream_t stream)
{
    return run_call(count);
}

EXPORT int ncclReduce(const void *in, void *out, size_t count, int type, int reduction, int root, comm_t comm,
                      stream_t stream)
{
    return run_call(count);
}

EXPORT int ncclSend(const void *buffer, size_t count, int type, int peer, comm_t comm, stream_t stream)
{
    return run_call(count);
}

EXPORT int ncclRecv(void *buffer, size_t count, int type, int peer, comm_t comm, stream_t stream)
{
    return run_call(count);
}

EXPORT int ncclPutSignal(const void *buffer, size_t count, int type, int peer, void *window, size_t offset, int signal,
                         int context, unsigned flags, comm_t comm, stream_t stream)
{
    return run_call(count);
}

EXPORT int ncclSignal(int peer, int signal, int context, unsigned flags, comm_t comm, stream_t stream)
{
    return run_call(0);
}

EXPORT int ncclWaitSignal(int count, struct wait_descriptor *descriptors, comm_t comm, stream_t stream)
{
    return run_call(0);
}

EXPORT int ncclBcast(void *buffer, size_t count, int type, int root, comm_t comm, stream_t stream)
{
    return ncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}
