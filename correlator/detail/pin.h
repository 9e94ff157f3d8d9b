/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What NIC sides keep by themselves: intervals in which a flow broke its pattern, whose windows can still be asked for.
 * Times in the reference clock. One thread.
 */
#pragma once

#include "correlator/naming/naming.h"

struct pin {
    size_t stream;
    int32_t flow;
    uint64_t from_ns;
    uint64_t to_ns;
    struct record_pin record;
};
typedef ARRAY(struct pin) pin_list;

/* In the order in which each stream told of them. */
void pin_find(pin_list *pins, const struct naming *naming, const struct intake *intake,
              const struct timeline *timeline);

/* "stalled within a message"; "unknown" of a cause that this version does not know. */
const char *pin_cause_name(uint32_t cause);
