/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a rank passes on in a chain or tree: there its first data may wait for others', and says nothing of its own GPU
 * then. Pure functions, any thread.
 */
#pragma once

#include "correlator/node/operation.h"

/*
 * When the latest of what came first over the receiving lanes of a channel (-1: of any) was there, up to `until_ns`;
 * 0 = none.
 */
uint64_t passing_ns(const struct operation_cut *cut, const lane_list *receive, int32_t channel, uint64_t until_ns);

struct leaf_slot {
    uint64_t first_ns;
    size_t lane; /* of those that send */
    size_t slot;
};

/* In a tree a rank is a leaf on some channels: what it sends there first waits for nobody. False when it is on none. */
bool passing_leaf(const struct operation_cut *cut, const lane_list *send, const lane_list *receive,
                  struct leaf_slot *leaf);
