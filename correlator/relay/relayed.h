/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rank operations as node stages tell them (relay.h): which are the same, which can be true, in which order they are
 * judged. Pure; any thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/record.h"

/* Two records of the same operation of the same rank are equal. */
int relayed_order(const void *a, const void *b);

/* False: no node stage would say so. */
bool relayed_is_plausible(const struct record_rank_operation *record);

struct relayed_time { /* to be sorted */
    const struct record_rank_operation *record;
    uint32_t index;
};

/* By enqueue, then by relayed_order: total among records that are not the same. */
int relayed_by_time(const void *a, const void *b);

/* The records' indices in that order. To be freed. */
uint32_t *relayed_in_time(const struct record_rank_operation *records, size_t count);
