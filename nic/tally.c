/* SPDX-License-Identifier: BSD-2-Clause */
/* Names for the counters. Invariant: the order of `specs` is the order of enum tally; both come from counter.def. */
#include "nic/tally.h"

static const struct counter_spec specs[] = {
#define COUNTER(name, text, help) {text, help},
#include "nic/counter.def"
#undef COUNTER
};

struct counter_table tally_table(struct tallies *tallies)
{
    return (struct counter_table){.specs = specs, .values = tallies->values, .count = TALLY_COUNT};
}
