/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How each queue pair was set up: what it was told on its way to RTS, and what is known of its connection. Invariant:
 * an attribute that was never set is NULL, and so is a rank that no message named.
 */
#include <stdio.h>

#include "correlator/store/store_private.h"

typedef int64_t i64; /* what the formats take */

/* enum ibv_qp_attr_mask */
#define SET_ACCESS        0x8u
#define SET_ADDRESS       0x80u
#define SET_PATH_MTU      0x100u
#define SET_TIMEOUT       0x200u
#define SET_RETRY_COUNT   0x400u
#define SET_RNR_RETRY     0x800u
#define SET_MIN_RNR_TIMER 0x8000u

static const char *side_name(uint8_t side)
{
    static const char *const names[] = {NULL, "sender", "receiver"};
    return names[side < sizeof names / sizeof names[0] ? side : 0];
}

/* The job's rank of a rank of the owner's communicator; -1 = not known. */
static i64 job_rank(const struct naming *naming, int32_t owner, int32_t rank)
{
    if (owner < 0 || rank < 0)
        return -1;
    const int32_t member = naming_member(naming, naming->members.items[owner].record.identity, rank);
    return member < 0 ? -1 : naming->members.items[member].rank;
}

static void put_setting(struct store *store, const struct naming *naming, size_t i)
{
    const struct queue_pair *pair = &naming->queue_pairs.items[i];
    const struct record_queue_pair *record = &pair->record;
    const uint32_t set = record->attributes;
    const int named = record->channel >= 0; /* a set-up message told of it */
    char context[20];

    snprintf(context, sizeof context, "0x%llx", (unsigned long long)record->context);
    store_put(store, STORE_queue_pair_setting, "isknkkkkkkkkiisrrrkk", (i64)i + 1, context, record->generation != 0,
              (i64)record->generation, (uint64_t)pair->error_ns, (set & SET_ACCESS) != 0, (i64)record->access_flags,
              (set & SET_PATH_MTU) != 0, (i64)record->path_mtu_bytes, (set & SET_ADDRESS) != 0,
              (i64)record->traffic_class, (set & SET_ADDRESS) != 0, (i64)record->service_level,
              (set & SET_TIMEOUT) != 0, (i64)record->timeout, (set & SET_RETRY_COUNT) != 0, (i64)record->retry_count,
              (set & SET_RNR_RETRY) != 0, (i64)record->rnr_retry, (set & SET_MIN_RNR_TIMER) != 0,
              (i64)record->min_rnr_timer, (i64)record->max_send_requests, (i64)record->max_receive_requests,
              side_name(record->side), job_rank(naming, pair->member, record->origin_rank),
              job_rank(naming, pair->member, record->far_rank), (i64)record->channel, named,
              (i64)((record->flags & QUEUE_PAIR_PXN) != 0), named, (i64)((record->flags & QUEUE_PAIR_SHARED) != 0));
}

void store_setting_rows(struct store *store, const struct naming *naming)
{
    for (size_t i = 0; i < naming->queue_pairs.count; i++)
        put_setting(store, naming, i);
}
