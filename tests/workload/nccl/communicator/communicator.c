/* SPDX-License-Identifier: BSD-2-Clause */
/* Rings go over the ranks in their order, the same on every channel, as RCCL's do in the lab. */
#include "communicator/communicator.h"

#include "communicator/tree.h"
#include "communicator/wiring.h"
#include "net/net.h"

#include "setting.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BUFFER_BYTES = 4 << 20, CHANNELS_DEFAULT = 2, DRAIN_NAP_NS = 500000 };

int cudaGetDevice(int *device);

uint64_t communicator_hash(const void *bytes, size_t length_bytes, uint64_t seed)
{
    const unsigned char *from = bytes;
    uint64_t hash = seed ^ 0xcbf29ce484222325u;

    for (size_t i = 0; i < length_bytes; i++)
        hash = (hash ^ from[i]) * 0x100000001b3u;
    return hash ^ hash >> 29;
}

ncclResult_t communicator_result(int error)
{
    switch (error) {
    case 0:
        return ncclSuccess;
    case -EREMOTEIO:
    case -ECONNRESET:
    case -EPIPE:
        return ncclRemoteError;
    case -EINVAL:
        return ncclInvalidArgument;
    case -ECANCELED:
        return ncclInternalError;
    default:
        return ncclSystemError;
    }
}

bool communicator_is_valid(const struct ncclComm *comm)
{
    return comm && comm->start_magic == COMM_MAGIC && comm->end_magic == COMM_MAGIC;
}

struct wire *communicator_wire(const struct ncclComm *comm, int channel, int peer, int connection, bool sends)
{
    return &comm->wires[((channel * comm->ranks + peer) * LANE_CONNS + connection) * 2 + sends];
}

static int wish(int value, const char *name, int otherwise)
{
    return setting_read(name, value == NCCL_UNDEFINED ? otherwise : value);
}

static int channels_wanted(void)
{
    int least = setting_read("NCCL_MIN_NCHANNELS", CHANNELS_DEFAULT);
    int most = setting_read("NCCL_MAX_NCHANNELS", least > CHANNELS_DEFAULT ? least : CHANNELS_DEFAULT);
    int count = least < most ? least : most;

    return count < 1 ? 1 : count > CHANNELS_MAX ? CHANNELS_MAX : count;
}

static void channels_init(struct ncclComm *comm)
{
    int rank = comm->rank, ranks = comm->ranks;

    for (int i = 0; i < comm->channels_count; i++) {
        struct channel *channel = &comm->channels[i];
        channel->peers = calloc((size_t)ranks, sizeof *channel->peers);
        channel->ring.prev = (rank + ranks - 1) % ranks;
        channel->ring.next = (rank + 1) % ranks;
        channel->ring.index = rank;
        channel->ring.user_ranks = calloc((size_t)ranks, sizeof(int));
        for (int step = 0; step < ranks; step++)
            channel->ring.user_ranks[step] = (rank + step) % ranks;
        channel->tree = tree_of(rank, ranks, i >= (comm->channels_count + 1) / 2);
    }
}

struct ncclComm *communicator_new(const ncclConfig_t *config)
{
    static const ncclConfig_t none = NCCL_CONFIG_INITIALIZER;
    struct ncclComm *comm = calloc(1, sizeof *comm);

    config = config ? config : &none;
    comm->start_magic = comm->end_magic = COMM_MAGIC;
    cudaGetDevice(&comm->cuda_device);
    comm->blocking = wish(config->blocking, "NCCL_COMM_BLOCKING", 1);
    comm->split_share = wish(config->splitShare, "NCCL_COMM_SPLIT_SHARE_RESOURCES", 0);
    comm->shrink_share = wish(config->shrinkShare, "NCCL_COMM_SHRINK_SHARE_RESOURCES", 0);
    comm->channels_count = channels_wanted();
    comm->devcomm.buff_sizes[SIMPLE] = setting_read("NCCL_BUFFSIZE", BUFFER_BYTES);
    comm->devcomm.abort_flag = &comm->kernel_abort_flag;
    comm->devcomm.channels = comm->channels;
    return comm;
}

struct ncclComm *communicator_new_child(const struct ncclComm *parent, const ncclConfig_t *config)
{
    ncclConfig_t wishes = NCCL_CONFIG_INITIALIZER;

    wishes = config ? *config : wishes;
    wishes.blocking = wishes.blocking == NCCL_UNDEFINED ? parent->blocking : wishes.blocking;
    wishes.splitShare = wishes.splitShare == NCCL_UNDEFINED ? parent->split_share : wishes.splitShare;
    wishes.shrinkShare = wishes.shrinkShare == NCCL_UNDEFINED ? parent->shrink_share : wishes.shrinkShare;
    struct ncclComm *child = communicator_new(&wishes);
    child->cuda_device = parent->cuda_device;
    return child;
}

void communicator_set_size(struct ncclComm *comm, int rank, int ranks)
{
    size_t wires = (size_t)comm->channels_count * (size_t)ranks * LANE_CONNS * 2;

    comm->rank = comm->devcomm.rank = rank;
    comm->ranks = comm->devcomm.nranks = ranks;
    comm->peers = calloc((size_t)ranks, sizeof *comm->peers);
    comm->top_ranks = calloc((size_t)ranks, sizeof *comm->top_ranks);
    comm->clients = calloc((size_t)ranks, sizeof *comm->clients);
    comm->signals = calloc((size_t)ranks * SIGNALS_MAX, sizeof *comm->signals);
    comm->wires = calloc(wires, sizeof *comm->wires);
    channels_init(comm);
}

static uint64_t host_hash(void)
{
    const char *id = getenv("NCCL_HOSTID");
    char name[256] = "";

    if (!id || !*id)
        gethostname(name, sizeof name - 1);
    return id && *id ? communicator_hash(id, strlen(id), 0) : communicator_hash(name, strlen(name), 0);
}

static int service_make(struct ncclComm *comm)
{
    struct service first = {.comm = comm,
                            .comm_hash = comm->comm_hash,
                            .tp_rank = comm->rank,
                            .tp_ranks = comm->ranks,
                            .cuda_device = comm->cuda_device};

    first.step_bytes = comm->devcomm.buff_sizes[SIMPLE] / STEPS;
    for (int i = 0; i < comm->ranks; i++)
        comm->top_ranks[i] = i;
    return service_create(&comm->service, &first);
}

static int service_take(struct ncclComm *comm, const struct ncclComm *sharing, const int *members)
{
    if (!sharing)
        return service_make(comm);
    comm->service = sharing->service;
    __atomic_add_fetch(&comm->service->references, 1, __ATOMIC_SEQ_CST);
    for (int i = 0; i < comm->ranks; i++)
        comm->top_ranks[i] = sharing->top_ranks[members[i]];
    return 0;
}

static int peers_exchange(struct ncclComm *comm)
{
    struct peer_info *mine = &comm->peers[comm->rank];

    *mine = (struct peer_info){.host = host_hash(), .pid = getpid(), .device = comm->cuda_device};
    mine->net_device = comm->cuda_device % net_devices();
    mine->service = comm->service->address;
    int error = bootstrap_all_gather(comm->bootstrap, comm->peers, sizeof *comm->peers);
    for (int i = 0; !error && i < comm->ranks; i++)
        for (int before = 0; before < i; before++)
            comm->peers[i].local_rank += comm->peers[before].host == comm->peers[i].host;
    return error;
}

int communicator_start(struct ncclComm *comm, const struct ncclComm *sharing, const int *members)
{
    int error = net_open();

    if (!error)
        error = service_take(comm, sharing, members);
    if (!error)
        error = peers_exchange(comm);
    if (!error && !setting_read("NCCL_RUNTIME_CONNECT", 1))
        error = wiring_connect_rings(comm);
    return error ? error : bootstrap_barrier(comm->bootstrap);
}

static bool is_idle(const struct ncclComm *comm)
{
    int count = comm->channels_count * comm->ranks * LANE_CONNS * 2;

    for (int i = 0; i < count; i++)
        if (comm->wires[i].connection && lane_peek(&comm->wires[i].lane))
            return false;
    return true;
}

void communicator_drain(struct ncclComm *comm)
{
    while (!comm->kernel_abort_flag && comm->service && !comm->service->progress.error && !is_idle(comm))
        nanosleep(&(struct timespec){.tv_nsec = DRAIN_NAP_NS}, NULL);
}

static void service_leave(struct ncclComm *comm)
{
    enum message_type type = comm->abort_flag ? MESSAGE_ABORT : MESSAGE_STOP;
    bool is_last = false;

    if (comm->service && !__atomic_sub_fetch(&comm->service->references, 1, __ATOMIC_SEQ_CST)) {
        struct client *mine = &comm->clients[comm->rank];
        if (mine->fd || !client_open(mine, &comm->service->address, NULL))
            client_ask(mine, type, NULL, "", 0, 0, NULL);
        is_last = true;
    }
    for (int i = 0; i < comm->ranks; i++) /* before the wait, since neighbours wait for this one in the same way */
        client_close(&comm->clients[i]);
    if (is_last)
        service_join(comm->service);
}

/* Kernels still use the communicator; those of an aborted one end soon. */
static void plans_await(struct ncclComm *comm)
{
    if (comm->service && comm->service->progress.error)
        comm->kernel_abort_flag = 1;
    while (comm->plans_running)
        nanosleep(&(struct timespec){.tv_nsec = DRAIN_NAP_NS}, NULL);
}

void communicator_free(struct ncclComm *comm)
{
    plans_await(comm);
    wiring_close(comm);
    service_leave(comm);
    bootstrap_destroy(comm->bootstrap);
    for (int i = 0; i < comm->channels_count; i++) {
        free(comm->channels[i].peers);
        free(comm->channels[i].ring.user_ranks);
    }
    free(comm->peers);
    free(comm->top_ranks);
    free(comm->clients);
    free(comm->wires);
    free(comm->signals);
    comm->start_magic = comm->end_magic = 0;
    free(comm);
}
