/* SPDX-License-Identifier: BSD-2-Clause */
/* NCCL makes sends and receives of all-to-all, gather and scatter: of each rank's part one, between it and each peer.
 */
#include "correlator/node/work.h"

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
