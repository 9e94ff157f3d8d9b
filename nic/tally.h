/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The program's named counters, one a line of counter.def. Written by the measuring thread only.
 */
#pragma once

#include "wire/counter.h"

enum tally {
#define COUNTER(name, text, help) TALLY_##name,
#include "nic/counter.def"
#undef COUNTER
    TALLY_COUNT,
};

struct tallies {
    uint64_t values[TALLY_COUNT];
};

static inline void tally_add(struct tallies *tallies, enum tally which, uint64_t amount)
{
    counter_add(tallies->values, which, amount);
}

/* For the few that say what is so at present, and may fall. */
static inline void tally_set(struct tallies *tallies, enum tally which, uint64_t value)
{
    counter_set(tallies->values, which, value);
}

/* The table that the emitter and the report read; it points at `tallies`. */
struct counter_table tally_table(struct tallies *tallies);
