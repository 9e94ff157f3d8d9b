/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whose data a queue pair sends. With PXN a rank sends through a neighbour's process, whose queue pair it is; who asked
 * for it is known from the set-up message. Where that is no member that is known, the owner's data it is not either.
 */
#include "correlator/naming/naming_join.h"

static int32_t asked_by(const struct naming *naming, const struct queue_pair *pair)
{
    const struct member *owner = &naming->members.items[pair->member];

    for (size_t i = 0; i < naming->members.count; i++) {
        const struct member *member = &naming->members.items[i];
        if (member->communicator == owner->communicator && member->record.rank == pair->record.origin_rank)
            return (int32_t)i;
    }
    return -1;
}

void naming_originate(struct naming *naming)
{
    for (size_t i = 0; i < naming->queue_pairs.count; i++) {
        struct queue_pair *pair = &naming->queue_pairs.items[i];
        pair->origin = pair->member;
        if (pair->member < 0 || (pair->record.flags & QUEUE_PAIR_PXN) == 0 || pair->record.origin_rank < 0)
            continue;
        pair->origin = asked_by(naming, pair);
        if (pair->origin >= 0 && pair->origin != pair->member)
            *(int32_t *)array_add(&naming->members.items[pair->origin].borrowed) = (int32_t)i;
    }
}
