/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What makes communicators. CommInitRank runs in its caller outside groups; all others open a group of their own, so
 * their jobs run where group.h says. The handle is there before the job, but for split and shrink, which set it when
 * the job is done.
 */
#include "api/api.h"

#include "communicator/group.h"
#include "cuda.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct init {
    struct job job;
    ncclUniqueId id;
    struct ncclComm *grown_from; /* or NULL */
};

struct split {
    struct job job;
    struct ncclComm *parent, **child;
    int color, key, child_number;
    bool shares;
    int *members, members_count; /* of a shrink: known from the start */
};

struct membership {
    int color, key, rank;
};

/* The rank that asked for the id of a growing communicator tells it to the others. */
static int grow_id_share(struct init *init)
{
    struct ncclComm *parent = init->grown_from;
    static const ncclUniqueId none;
    ncclUniqueId *all;
    int error;

    if (!parent)
        return 0;
    all = calloc((size_t)parent->ranks, sizeof *all);
    all[parent->rank] = init->id;
    error = bootstrap_all_gather(parent->bootstrap, all, sizeof *all);
    for (int i = 0; !error && i < parent->ranks; i++)
        if (memcmp(&all[i], &none, sizeof none))
            init->id = all[i];
    free(all);
    return error;
}

static int init_run(struct job *job)
{
    struct init *init = (struct init *)job;
    struct ncclComm *comm = job->comm;
    int error = grow_id_share(init);

    comm->id = init->id;
    comm->comm_hash = communicator_hash(&init->id, sizeof init->id, 0);
    if (!error)
        error = bootstrap_create(&comm->bootstrap, &init->id, comm->rank, comm->ranks, &comm->abort_flag);
    return error ? error : communicator_start(comm, NULL, NULL);
}

static ncclResult_t init_add(struct ncclComm **comm, int ranks, const ncclUniqueId *id, int rank,
                             const ncclConfig_t *config, struct ncclComm *grown_from)
{
    if (!comm || ranks < 1 || rank < 0 || rank >= ranks || net_open())
        return group_fail(ncclInvalidArgument);
    struct init *init = calloc(1, sizeof *init);
    *comm = communicator_new(config);
    communicator_set_size(*comm, rank, ranks);
    init->job = (struct job){.run = init_run, .comm = *comm};
    init->grown_from = grown_from;
    if (id)
        init->id = *id;
    group_add_job(&init->job);
    return ncclSuccess;
}

static ncclResult_t init_in_group(struct ncclComm **comm, int ranks, const ncclUniqueId *id, int rank,
                                  const ncclConfig_t *config)
{
    group_open();
    ncclResult_t result = init_add(comm, ranks, id, rank, config, NULL), ended = group_close();
    return result ? result : ended;
}

NCCL_API(ncclResult_t, CommInitRank, ncclComm_t *comm, int ranks, ncclUniqueId id, int rank)
{
    return init_in_group(comm, ranks, &id, rank, NULL);
}

NCCL_API(ncclResult_t, CommInitRankConfig, ncclComm_t *comm, int ranks, ncclUniqueId id, int rank, ncclConfig_t *config)
{
    return init_in_group(comm, ranks, &id, rank, config);
}

NCCL_API(ncclResult_t, CommInitRankScalable, ncclComm_t *comm, int ranks, int rank, int ids_count, ncclUniqueId *ids,
         ncclConfig_t *config)
{
    return ids_count < 1 || !ids ? ncclInvalidArgument : init_in_group(comm, ranks, &ids[0], rank, config);
}

NCCL_API(ncclResult_t, CommInitAll, ncclComm_t *comms, int devices_count, const int *devices)
{
    ncclResult_t result = ncclSuccess;
    ncclUniqueId id;
    int before;

    if (!comms || devices_count < 1 || bootstrap_root_start(&id))
        return ncclInvalidArgument;
    cudaGetDevice(&before);
    group_open();
    for (int i = 0; i < devices_count && !result; i++) {
        cudaSetDevice(devices ? devices[i] : i);
        result = init_add(&comms[i], devices_count, &id, i, NULL, NULL);
    }
    cudaSetDevice(before);
    ncclResult_t ended = group_close();
    return result ? result : ended;
}

static int membership_compare(const void *one, const void *other)
{
    const struct membership *a = one, *b = other;

    return a->key != b->key ? (a->key > b->key) - (a->key < b->key) : a->rank - b->rank;
}

/* Who has this color, in the order of keys and then of ranks. */
static int members_find(struct split *split)
{
    struct ncclComm *parent = split->parent;
    struct membership *all = calloc((size_t)parent->ranks, sizeof *all);

    all[parent->rank] = (struct membership){split->color, split->key, parent->rank};
    int error = bootstrap_all_gather(parent->bootstrap, all, sizeof *all);
    split->members = calloc((size_t)parent->ranks, sizeof(int));
    qsort(all, (size_t)parent->ranks, sizeof *all, membership_compare);
    for (int i = 0; !error && i < parent->ranks; i++)
        if (all[i].color == split->color)
            split->members[split->members_count++] = all[i].rank;
    free(all);
    return error;
}

static int child_make(struct split *split)
{
    struct ncclComm *parent = split->parent, *child = split->job.comm;
    int rank = 0;
    struct {
        int number, color;
    } derivation = {split->child_number, split->color};

    while (split->members[rank] != parent->rank)
        rank++;
    communicator_set_size(child, rank, split->members_count);
    child->comm_hash = communicator_hash(&derivation, sizeof derivation, parent->comm_hash);
    int error = bootstrap_create_child(&child->bootstrap, parent->bootstrap, split->members, split->members_count, rank,
                                       &child->abort_flag);
    return error ? error : communicator_start(child, split->shares ? parent : NULL, split->members);
}

static int split_run(struct job *job)
{
    struct split *split = (struct split *)job;
    int error = split->members ? 0 : members_find(split);

    if (error || split->color == NCCL_SPLIT_NOCOLOR)
        return error;
    return child_make(split);
}

static void split_finish(struct job *job, ncclResult_t result)
{
    struct split *split = (struct split *)job;

    if (result == ncclSuccess && split->color != NCCL_SPLIT_NOCOLOR)
        *split->child = job->comm;
    else
        communicator_free(job->comm);
    split->parent->async_result =
        split->parent->async_result == ncclInProgress ? (int)result : split->parent->async_result;
    free(split->members);
}

/* A child takes over what its configuration does not say. */
static struct split *split_new(struct ncclComm *parent, struct ncclComm **child, const ncclConfig_t *config)
{
    struct split *split = calloc(1, sizeof *split);
    struct ncclComm *fresh = communicator_new_child(parent, config);

    *child = NULL;
    split->parent = parent;
    split->child = child;
    split->child_number = ++parent->children_count;
    split->job = (struct job){.run = split_run, .finish = split_finish, .comm = fresh};
    if (!parent->blocking)
        parent->async_result = ncclInProgress;
    return split;
}

NCCL_API(ncclResult_t, CommSplit, ncclComm_t comm, int color, int key, ncclComm_t *child, ncclConfig_t *config)
{
    if (!communicator_is_valid(comm) || !child)
        return ncclInvalidArgument;
    struct split *split = split_new(comm, child, config);
    split->color = color;
    split->key = key;
    split->shares = comm->split_share;
    group_open();
    group_add_job(&split->job);
    return group_close();
}

static void members_except(struct split *split, const int *excluded, int excluded_count)
{
    split->members = calloc((size_t)split->parent->ranks, sizeof(int));
    for (int rank = 0; rank < split->parent->ranks; rank++) {
        bool stays = true;
        for (int i = 0; i < excluded_count; i++)
            stays = stays && excluded[i] != rank;
        if (stays)
            split->members[split->members_count++] = rank;
    }
}

NCCL_API(ncclResult_t, CommShrink, ncclComm_t comm, int *excluded, int excluded_count, ncclComm_t *child,
         ncclConfig_t *config, int flags)
{
    if (!communicator_is_valid(comm) || !child || !excluded || excluded_count < 1)
        return ncclInvalidArgument;
    struct split *split = split_new(comm, child, config);
    split->shares = comm->shrink_share && !(flags & NCCL_SHRINK_ABORT);
    members_except(split, excluded, excluded_count);
    if (flags & NCCL_SHRINK_ABORT)
        comm->kernel_abort_flag = 1;
    group_open();
    group_add_job(&split->job);
    return group_close();
}

NCCL_API(ncclResult_t, CommGetUniqueId, ncclComm_t comm, ncclUniqueId *id)
{
    return communicator_is_valid(comm) ? ncclGetUniqueId(id) : ncclInvalidArgument;
}

NCCL_API(ncclResult_t, CommGrow, ncclComm_t comm, int ranks, const ncclUniqueId *id, int rank, ncclComm_t *grown,
         ncclConfig_t *config)
{
    if (!grown || (comm && !communicator_is_valid(comm)) || (!comm && !id))
        return ncclInvalidArgument;
    group_open();
    ncclResult_t result = init_add(grown, ranks, id, comm ? comm->rank : rank, config, comm), ended = group_close();
    return result ? result : ended;
}
