/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The public interface of the collective library, as far as the probes' tests call it, and what the stand-in adds to
 * look inside. Types as NCCL's ABI has them.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct unique_id {
    char bytes[128];
};
struct configuration { /* ncclConfig_t's beginning */
    size_t size;
    unsigned magic;
    unsigned version;
    int blocking;
};
typedef struct standin_communicator *comm_t;
typedef void *stream_t;

int ncclCommInitRank(comm_t *comm, int ranks, struct unique_id id, int rank);
int ncclCommInitRankConfig(comm_t *comm, int ranks, struct unique_id id, int rank, struct configuration *config);
int ncclCommInitRankScalable(comm_t *comm, int ranks, int rank, int ids_count, struct unique_id *ids,
                             struct configuration *config);
int ncclCommInitAll(comm_t *comms, int count, const int *devices);
int ncclCommSplit(comm_t comm, int color, int key, comm_t *child, struct configuration *config);
int ncclCommShrink(comm_t comm, int *excluded, int excluded_count, comm_t *child, struct configuration *config,
                   int flags);
int ncclCommGrow(comm_t comm, int ranks, const struct unique_id *id, int rank, comm_t *grown,
                 struct configuration *config);
int ncclCommDestroy(comm_t comm);
int ncclCommAbort(comm_t comm);
int ncclCommFinalize(comm_t comm);
int ncclCommRevoke(comm_t comm, int flags);
int ncclCommCount(const comm_t comm, int *count);
int ncclCommCuDevice(const comm_t comm, int *device);
int ncclCommUserRank(const comm_t comm, int *rank);
int ncclGetVersion(int *version);
int ncclCommGetAsyncError(comm_t comm, int *error);
int ncclGroupStart(void);
int ncclGroupEnd(void);
int ncclAllReduce(const void *in, void *out, size_t count, int type, int reduction, comm_t comm, stream_t stream);
int ncclReduceScatter(const void *in, void *out, size_t count, int type, int reduction, comm_t comm, stream_t stream);
int ncclAllGather(const void *in, void *out, size_t count, int type, comm_t comm, stream_t stream);
int ncclAlltoAll(const void *in, void *out, size_t count, int type, comm_t comm, stream_t stream);
int ncclBcast(void *buffer, size_t count, int type, int root, comm_t comm, stream_t stream);
int ncclBroadcast(const void *in, void *out, size_t count, int type, int root, comm_t comm, stream_t stream);
int ncclGather(const void *in, void *out, size_t count, int type, int root, comm_t comm, stream_t stream);
int ncclScatter(const void *in, void *out, size_t count, int type, int root, comm_t comm, stream_t stream);
int ncclReduce(const void *in, void *out, size_t count, int type, int reduction, int root, comm_t comm,
               stream_t stream);
int ncclSend(const void *buffer, size_t count, int type, int peer, comm_t comm, stream_t stream);
int ncclRecv(void *buffer, size_t count, int type, int peer, comm_t comm, stream_t stream);
int ncclPutSignal(const void *buffer, size_t count, int type, int peer, void *window, size_t offset, int signal,
                  int context, unsigned flags, comm_t comm, stream_t stream);
int ncclSignal(int peer, int signal, int context, unsigned flags, comm_t comm, stream_t stream);
struct wait_descriptor { /* ncclWaitSignalDesc_t */
    int count;
    int peer;
    int signal;
    int context;
};
int ncclWaitSignal(int count, struct wait_descriptor *descriptors, comm_t comm, stream_t stream);

#define STANDIN_QUEUE_PAIRS_MAX 16
#define STANDIN_REFUSED         110 /* a count that every data call refuses */

/* From now on it shows this error, and the library has written a message and a warning of it. */
void standin_fail(comm_t comm, int result);
/* Waits until the communicator's creation is done (for those that do not block). */
void standin_wait(comm_t comm);
/* Has the service thread make `count` more queue pairs, the progress thread take them to RTS; waits. */
void standin_connect(comm_t comm, int count);
/* The QPNs that its service thread has made; returns how many. */
int standin_queue_pairs(comm_t comm, uint32_t qpns[STANDIN_QUEUE_PAIRS_MAX]);
/* What its structure notes as commHash. */
uint64_t standin_hash(comm_t comm);
