/* SPDX-License-Identifier: BSD-2-Clause */
/* Invariant: orders are total, so that what follows does not depend on who told first. */
#include "correlator/relay/relayed.h"

#include <stdlib.h>
#include <string.h>

#include "correlator/array.h"
#include "correlator/intake/timeline.h"

static int compare(uint64_t left, uint64_t right)
{
    return (left > right) - (left < right);
}

int relayed_order(const void *a, const void *b)
{
    const struct record_rank_operation *left = a;
    const struct record_rank_operation *right = b;
    int order = memcmp(left->communicator, right->communicator, IDENTITY_BYTES);

    if (order == 0)
        order = (left->rank > right->rank) - (left->rank < right->rank);
    if (order == 0)
        order = (left->group != 0) - (right->group != 0);
    if (order == 0 && left->group != 0)
        order = (left->operation > right->operation) - (left->operation < right->operation);
    if (order == 0 && left->group != 0)
        order = (left->peer > right->peer) - (left->peer < right->peer);
    return order != 0 ? order : compare(left->sequence, right->sequence);
}

#define RANKS_MAX (1 << 24)
#define BYTES_MAX (1ULL << 56) /* so that sums over all ranks fit */

bool relayed_is_plausible(const struct record_rank_operation *record)
{
    bool good = record->rank >= 0 && record->rank < record->ranks_count && record->ranks_count <= RANKS_MAX &&
                record->bound_ns <= TIMELINE_TIME_MAX && record->frames_bound_ns <= TIMELINE_TIME_MAX &&
                record->active_ns <= TIMELINE_TIME_MAX && record->receive_active_ns <= TIMELINE_TIME_MAX &&
                record->peer >= -1 && record->peer < RANKS_MAX && record->next >= -2 && record->previous >= -2 &&
                record->buffer_bytes <= BYTES_MAX && record->expected_bytes <= BYTES_MAX &&
                record->observed_bytes <= BYTES_MAX && record->received_bytes <= BYTES_MAX;

#define FIELD(type, name, expected)
#define TIME(name, expected) good &= record->name <= TIMELINE_TIME_MAX;
#include "wire/operation_field.def"
#undef TIME
#undef FIELD
    return good;
}

int relayed_by_time(const void *a, const void *b)
{
    const struct record_rank_operation *left = ((const struct relayed_time *)a)->record;
    const struct record_rank_operation *right = ((const struct relayed_time *)b)->record;

    return left->enqueued_ns != right->enqueued_ns ? compare(left->enqueued_ns, right->enqueued_ns)
                                                   : relayed_order(left, right);
}

uint32_t *relayed_in_time(const struct record_rank_operation *records, size_t count)
{
    struct relayed_time *times = array_zeroed((count + 1) * sizeof *times);
    uint32_t *order = array_zeroed((count + 1) * sizeof *order);

    for (size_t i = 0; i < count; i++)
        times[i] = (struct relayed_time){&records[i], (uint32_t)i};
    array_order(times, count, sizeof *times, relayed_by_time);
    for (size_t i = 0; i < count; i++)
        order[i] = times[i].index;
    free(times);
    return order;
}
