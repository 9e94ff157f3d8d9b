/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ncclComm: the fields that tools look for lie as in NCCL 2.30.7 built with a vendor's change: the hash, rank, ranks
 * and device consecutively, VENDOR_SHIFT bytes behind where the real one has them. Used by the thread that calls for
 * it.
 */
#pragma once

#include "nccl.h"

#include "communicator/bootstrap.h"
#include "communicator/task.h"
#include "proxy/client.h"
#include "proxy/lane.h"
#include "proxy/service.h"

#include "rccl_layout.h"

#include <stdatomic.h>
#include <stdbool.h>

enum { COMM_HASH_OFFSET_REAL = 1181416, VENDOR_SHIFT = 64 };
enum { P2P_CONN = 1, ONE_SIDED_CONN = 2, LANE_CONNS = 3, WINDOWS_MAX = 64, SIGNALS_MAX = 8 };

#define COMM_MAGIC 0x0280028002800280u

struct peer_info { /* what the ranks tell each other at first */
    uint64_t host;
    int pid, device, net_device, local_rank;
    struct sockaddr_in service;
};

/* One direction to one peer on one channel. */
struct wire {
    struct lane lane;
    void *connection; /* the service's object; NULL: not connected */
    int proxy_rank;   /* whose service has it */
};

struct ncclWindow {
    void *memory;
    size_t size_bytes;
    int number;
};

struct ncclComm {
    uint64_t start_magic;
    char reserved[COMM_HASH_OFFSET_REAL + VENDOR_SHIFT - 8];
    uint64_t comm_hash;
    int rank, ranks, cuda_device;

    int blocking, split_share, shrink_share, is_revoked, is_finalized;
    volatile uint32_t abort_flag;        /* of waits for other ranks */
    volatile uint32_t kernel_abort_flag; /* of operations */
    atomic_int async_result, plans_running;
    ncclUniqueId id; /* zeroes for children */
    int children_count;
    struct bootstrap *bootstrap;
    struct peer_info *peers;
    int *top_ranks; /* this communicator's ranks in the one that owns the service */
    struct service *service;
    struct client *clients; /* to the services of peers on this host; fd 0: not open */
    int channels_count;
    struct channel channels[CHANNELS_MAX];
    struct devcomm devcomm;
    struct wire *wires; /* [channel][peer][connection][sends] */
    bool rings_connected;
    struct ncclWindow windows[WINDOWS_MAX];
    int windows_count, *signals; /* [peer][signal]: puts that nobody has waited for */
    uint64_t operations_count;
    struct tasks tasks; /* of the group that is open */
    struct ncclComm *next_in_group;
    bool is_in_group;
    uint64_t end_magic;
};

_Static_assert(offsetof(struct ncclComm, comm_hash) == COMM_HASH_OFFSET_REAL + VENDOR_SHIFT, "where the hash is");
_Static_assert(offsetof(struct ncclComm, rank) == offsetof(struct ncclComm, comm_hash) + 8, "rank follows the hash");
_Static_assert(offsetof(struct ncclComm, cuda_device) == offsetof(struct ncclComm, comm_hash) + 16, "then the device");

/* Memory only, with the configuration's wishes (NULL: none, or the parent's); the size is set apart. Never fails. */
struct ncclComm *communicator_new(const ncclConfig_t *config);
struct ncclComm *communicator_new_child(const struct ncclComm *parent, const ncclConfig_t *config);
void communicator_set_size(struct ncclComm *comm, int rank, int ranks);

/* After the bootstrap: exchanges what the ranks know, makes or shares the service, connects if that is not left for
 * later. `sharing`: the communicator whose service is taken, its members in the order of the new ranks; or NULL. */
int communicator_start(struct ncclComm *comm, const struct ncclComm *sharing, const int *members);

/* Waits until all operations are carried, or one of them cannot be. */
void communicator_drain(struct ncclComm *comm);
void communicator_free(struct ncclComm *comm);

/* Whether it is a communicator at all; what a caller hands in may be anything. */
bool communicator_is_valid(const struct ncclComm *comm);
struct wire *communicator_wire(const struct ncclComm *comm, int channel, int peer, int connection, bool sends);
uint64_t communicator_hash(const void *bytes, size_t length_bytes, uint64_t seed);

/* What an error of this library's inside is in the public API. */
ncclResult_t communicator_result(int error);
