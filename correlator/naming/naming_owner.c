/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Owners of queue pairs that were made before anybody looked. Invariant: a queue pair is given to a communicator only
 * when the processes at its two ends have exactly one in common.
 */
#include "correlator/naming/naming_join.h"

#include <stdlib.h>

static bool lived_together(const struct member *member, const struct queue_pair *pair)
{
    bool before = member->destroyed_ns != 0 && member->destroyed_ns < pair->created_ns;
    bool after = pair->destroyed_ns != 0 && member->created_ns > pair->destroyed_ns;
    return !before && !after;
}

static bool has_member(const struct naming *naming, const struct queue_pair *pair, int32_t communicator)
{
    if (pair->member >= 0)
        return naming->members.items[pair->member].communicator == communicator;
    for (size_t i = 0; i < naming->members.count; i++) {
        const struct member *member = &naming->members.items[i];
        if (member->process == pair->process && member->communicator == communicator && lived_together(member, pair))
            return true;
    }
    return false;
}

/* The only member of the queue pair's process whose communicator the other end's process has too; -1: none or several.
 */
static int32_t only_member(const struct naming *naming, const struct queue_pair *pair)
{
    const struct queue_pair *peer = &naming->queue_pairs.items[pair->peer];
    int32_t found = -1;

    for (size_t i = 0; i < naming->members.count; i++) {
        const struct member *member = &naming->members.items[i];
        if (member->process != pair->process || !lived_together(member, pair) ||
            !has_member(naming, peer, member->communicator))
            continue;
        if (found >= 0)
            return -1;
        found = (int32_t)i;
    }
    return found;
}

static bool needs_owner(const struct queue_pair *pair)
{
    return pair->member < 0 && pair->peer >= 0 && (pair->record.flags & (QUEUE_PAIR_FOREIGN | QUEUE_PAIR_FLUSH)) == 0;
}

void naming_own(struct naming *naming)
{
    int32_t *owners = array_zeroed(naming->queue_pairs.count * sizeof *owners);

    for (size_t i = 0; i < naming->queue_pairs.count; i++) {
        const struct queue_pair *pair = &naming->queue_pairs.items[i];
        owners[i] = needs_owner(pair) ? only_member(naming, pair) : -1;
    }
    for (size_t i = 0; i < naming->queue_pairs.count; i++) {
        if (owners[i] < 0)
            continue;
        naming->queue_pairs.items[i].member = owners[i];
        *(int32_t *)array_add(&naming->members.items[owners[i]].queue_pairs) = (int32_t)i;
    }
    free(owners);
}
