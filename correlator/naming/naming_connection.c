/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Holds what set-up messages said of a connection's two ends against each other, and against whose queue pairs they
 * are: a probe that the kernel skipped can leave an end with another connection's channel. Invariant: after it no two
 * ends of one connection say different things; where they did, neither says anything.
 */
#include "correlator/naming/naming_join.h"

static bool is_told(const struct queue_pair *pair)
{
    return pair->record.channel >= 0;
}

static bool ends_agree(const struct queue_pair *pair, const struct queue_pair *peer)
{
    if (!is_told(peer))
        return true;
    return pair->record.channel == peer->record.channel && pair->record.side != peer->record.side;
}

/* The receiver's process is never another rank's; a sender may send for another rank of its node. */
static bool ranks_agree(const struct naming *naming, const struct queue_pair *pair, const struct queue_pair *peer)
{
    if (pair->record.side != QUEUE_PAIR_SIDE_SENDER || peer->member < 0)
        return true;
    const struct record_communicator *of_peer = &naming->members.items[peer->member].record;
    return of_peer->rank < 0 || of_peer->rank == pair->record.far_rank;
}

static void forget(struct queue_pair *pair)
{
    pair->record.side = QUEUE_PAIR_SIDE_UNKNOWN;
    pair->record.origin_rank = -1;
    pair->record.far_rank = -1;
    pair->record.channel = -1;
    pair->record.flags &= ~(uint32_t)(QUEUE_PAIR_PXN | QUEUE_PAIR_SHARED);
}

void naming_check_connections(struct naming *naming)
{
    for (size_t i = 0; i < naming->queue_pairs.count; i++) {
        struct queue_pair *pair = &naming->queue_pairs.items[i];
        if (!is_told(pair) || pair->peer < 0)
            continue;
        struct queue_pair *peer = &naming->queue_pairs.items[pair->peer];
        if (ends_agree(pair, peer) && ranks_agree(naming, pair, peer))
            continue;
        naming->contradicted_count++;
        forget(pair);
        forget(peer);
    }
}

bool naming_has_neighbour(const struct naming *naming, int32_t member)
{
    const struct member *own = &naming->members.items[member];

    for (size_t i = 0; i < naming->members.count; i++) {
        const struct member *other = &naming->members.items[i];
        if (other != own && other->communicator == own->communicator && other->stream == own->stream)
            return true;
    }
    return false;
}
