/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What was not heard or not seen, and when: holes in the batches' numbers, losses that emitters report, emitters that
 * fell silent or came back as a new boot, detail that was given up for memory. Times in the reference clock.
 */
#pragma once

#include "correlator/intake/timeline.h"

enum gap_cause { /* the first five are enum loss_cause */
                 GAP_BATCHES_LOST = 16,
                 GAP_SILENT = 17,
                 GAP_RESTARTED = 18,
                 GAP_FORGOTTEN = 19,
};

struct gap {
    size_t stream;
    uint64_t from_ns;
    uint64_t to_ns;
    uint32_t cause; /* enum loss_cause or enum gap_cause */
    uint64_t lost;
    uint32_t port; /* 0 = none */
};
typedef ARRAY(struct gap) gap_list;

/* Adds the gaps of all streams to `gaps`, in order of stream and time. */
void gap_find(gap_list *gaps, const struct intake *intake, const struct timeline *timeline);

/* True when a gap of an emitter of `kind` touches [from_ns, to_ns]. */
bool gap_touches(const gap_list *gaps, const struct intake *intake, uint16_t kind, uint64_t from_ns, uint64_t to_ns);

const char *gap_cause_name(uint32_t cause);
