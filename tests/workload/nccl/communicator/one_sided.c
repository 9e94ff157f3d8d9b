/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who waits does not know what comes: it takes message after message from the peer, lays each where it belongs, and
 * counts it, until enough have come with the signal that it waits for.
 */
#include "communicator/one_sided.h"

#include "communicator/wiring.h"
#include "cuda.h"
#include "kernel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK_BYTES = 128 << 10 };

struct header { /* the first message of a put */
    uint64_t window, offset, size_bytes;
    int signal, reserved[9];
};

_Static_assert(sizeof(struct header) == 64, "one message");

struct put {
    struct ncclComm *comm;
    int peer;
    const void *from;
    struct header header;
};

struct wait {
    struct ncclComm *comm;
    ncclWaitSignalDesc_t wanted;
};

int one_sided_register(struct ncclComm *comm, void *memory, size_t size_bytes, struct ncclWindow **window)
{
    if (comm->windows_count == WINDOWS_MAX)
        return -ENOSPC;
    int error = comm->windows_count ? 0 : wiring_connect_mesh(comm);
    if (error)
        return error;
    *window = &comm->windows[comm->windows_count];
    **window = (struct ncclWindow){memory, size_bytes, comm->windows_count};
    comm->windows_count++;
    return 0;
}

/* Moves bytes over the connection with the peer, in either direction, on the calling thread. */
static void bytes_move(struct ncclComm *comm, int peer, bool sends, const void *at, size_t size_bytes)
{
    struct work work = {.type = WORK_P2P, .func = FUNC_P2P, .is_last = 1};
    struct launch launch = {.devcomm = &comm->devcomm, .channels = 1, .works = &work};
    uint64_t steps = size_bytes ? (size_bytes + CHUNK_BYTES - 1) / CHUNK_BYTES : 1;

    lane_push(&communicator_wire(comm, 0, peer, ONE_SIDED_CONN, sends)->lane, 1, steps, 1);
    work.p2p[!sends].peer = -1;
    work.p2p[sends] = (struct p2p_elem){.peer = peer,
                                        .conn_index = ONE_SIDED_CONN,
                                        .type = sends ? P2P_SEND : P2P_RECV,
                                        .buff_hi = (uint32_t)((uintptr_t)at >> 32),
                                        .buff_lo = (uint32_t)(uintptr_t)at,
                                        .count_hi = (uint32_t)((uint64_t)size_bytes >> 32),
                                        .count_lo = (uint32_t)size_bytes,
                                        .chunk_size = CHUNK_BYTES};
    kernel_run(&launch);
}

static void put_run(void *argument)
{
    struct put *put = argument;

    bytes_move(put->comm, put->peer, true, &put->header, sizeof put->header);
    if (put->header.size_bytes)
        bytes_move(put->comm, put->peer, true, put->from, put->header.size_bytes);
    put->comm->plans_running--;
    free(put);
}

int one_sided_put(struct ncclComm *comm, int peer, const void *from, size_t size_bytes, const struct ncclWindow *window,
                  size_t offset, int signal, cudaStream_t stream)
{
    struct put *put;

    if (peer == comm->rank || !comm->windows_count || (size_bytes && !window))
        return -EINVAL;
    put = calloc(1, sizeof *put);
    *put = (struct put){.comm = comm, .peer = peer, .from = from};
    put->header = (struct header){.offset = offset, .size_bytes = size_bytes, .signal = signal};
    put->header.window = window ? (uint64_t)window->number : 0;
    comm->plans_running++;
    return cudaLaunchHostFunc(stream, put_run, put) ? -EIO : 0;
}

static void message_take(struct ncclComm *comm, int peer)
{
    struct header header = {0};

    bytes_move(comm, peer, false, &header, sizeof header);
    if (comm->kernel_abort_flag || header.window >= (uint64_t)comm->windows_count || header.signal >= SIGNALS_MAX)
        return;
    const struct ncclWindow *window = &comm->windows[header.window];
    if (header.size_bytes)
        bytes_move(comm, peer, false, (char *)window->memory + header.offset, header.size_bytes);
    comm->signals[peer * SIGNALS_MAX + header.signal]++;
}

static void wait_run(void *argument)
{
    struct wait *wait = argument;
    struct ncclComm *comm = wait->comm;
    int *count = &comm->signals[wait->wanted.peer * SIGNALS_MAX + wait->wanted.sigIdx];

    while (*count < wait->wanted.opCnt && !comm->kernel_abort_flag)
        message_take(comm, wait->wanted.peer);
    *count -= wait->wanted.opCnt;
    comm->plans_running--;
    free(wait);
}

int one_sided_wait(struct ncclComm *comm, const ncclWaitSignalDesc_t *wanted, cudaStream_t stream)
{
    struct wait *wait;

    if (wanted->peer < 0 || wanted->peer >= comm->ranks || wanted->peer == comm->rank || wanted->sigIdx < 0 ||
        wanted->sigIdx >= SIGNALS_MAX || !comm->windows_count)
        return -EINVAL;
    wait = calloc(1, sizeof *wait);
    *wait = (struct wait){comm, *wanted};
    comm->plans_running++;
    return cudaLaunchHostFunc(stream, wait_run, wait) ? -EIO : 0;
}
