/* SPDX-License-Identifier: BSD-2-Clause */
/* NCCL makes sends and receives of all-to-all, gather and scatter: of each rank's part one, between it and each peer.
 */
#include "correlator/node/work.h"

#define LITTLE_THREADS 640u /* of a channel at most; with 64 bytes each, LL 8 for each rank, another one is taken */

void work_of_call(struct work *work, const struct call *call, int32_t ranks_count)
{
    const struct record_call *record = &call->record;

    work->kind = record->operation;
    work->peer = record->peer;
    work->bytes = record->count * datatype_bytes(record->datatype);
    work->enqueued_ns = call->enqueued_ns;
    work->ring = shape_collective(&work->collective, record->operation, record->count, record->datatype, ranks_count);
}

bool work_passes(const struct work *work, int32_t sender, int32_t receiver)
{
    if (work->kind == OPERATION_BROADCAST)
        return receiver != work->peer;
    if (work->kind == OPERATION_REDUCE)
        return sender != work->peer;
    return true;
}

bool work_may_leave(const struct work *work, unsigned channel)
{
    uint64_t share = LITTLE_THREADS * (work->collective.ranks > 8 ? 8 * (uint64_t)work->collective.ranks : 64);

    return channel > 0 && work->bytes < (channel + 1) * share;
}

bool work_is_between_pairs(uint8_t operation)
{
    switch (operation) {
    case OPERATION_SEND:
    case OPERATION_RECV:
    case OPERATION_ALL_TO_ALL:
    case OPERATION_GATHER:
    case OPERATION_SCATTER:
        return true;
    default:
        return false;
    }
}

/* Whether `from` has something for `to` in this call of rank `own`, which is one of them. */
static bool has_for(const struct work *work, int32_t own, int32_t from, int32_t to)
{
    switch (work->kind) {
    case OPERATION_SEND:
        return own == from && to == work->peer;
    case OPERATION_RECV:
        return own == to && from == work->peer;
    case OPERATION_ALL_TO_ALL:
        return true;
    case OPERATION_GATHER:
        return to == work->peer;
    case OPERATION_SCATTER:
        return from == work->peer;
    default:
        return false;
    }
}

bool work_towards(struct work *towards, const struct work *work, int32_t own, enum lane_direction direction,
                  int32_t peer)
{
    bool sends = direction == LANE_SEND;

    if (work->ring || !has_for(work, own, sends ? own : peer, sends ? peer : own))
        return false;
    *towards = *work;
    towards->kind = sends ? OPERATION_SEND : OPERATION_RECV;
    towards->peer = peer;
    return true;
}
