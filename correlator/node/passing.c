/* SPDX-License-Identifier: BSD-2-Clause */
/* Passing on. Invariant: a slot is a leaf's when nothing that its channel received for the operation was there before.
 */
#include "correlator/node/passing.h"

uint64_t passing_ns(const struct operation_cut *cut, const lane_list *receive, int32_t channel, uint64_t until_ns)
{
    uint64_t latest = 0;

    for (size_t i = 0; i < cut->parts[LANE_RECEIVE].shares.count; i++) {
        const struct share *share = &cut->parts[LANE_RECEIVE].shares.items[i];
        const struct lane *from = &receive->items[share->lane];
        if (share->from == share->to || (channel >= 0 && from->channel != channel))
            continue;
        uint64_t last_ns = from->slots.items[share->from].last_ns;
        if (last_ns > latest && last_ns <= until_ns)
            latest = last_ns;
    }
    return latest;
}

bool passing_leaf(const struct operation_cut *cut, const lane_list *send, const lane_list *receive,
                  struct leaf_slot *leaf)
{
    bool found = false;

    for (size_t i = 0; i < cut->parts[LANE_SEND].shares.count; i++) {
        const struct share *share = &cut->parts[LANE_SEND].shares.items[i];
        const struct lane *lane = &send->items[share->lane];
        if (share->from == share->to)
            continue;
        uint64_t first_ns = lane->slots.items[share->from].first_ns;
        if ((found && first_ns >= leaf->first_ns) || passing_ns(cut, receive, lane->channel, first_ns) != 0)
            continue;
        *leaf = (struct leaf_slot){first_ns, share->lane, share->from};
        found = true;
    }
    return found;
}
