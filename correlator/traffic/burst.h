/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The bursts of one job's data: what lies between two pauses in which none of it is under way. Pauses within bursts,
 * where one rank waits for another, are told from those in which all compute by their lengths. Where a rank is late a
 * burst stands still in its middle, and what comes behind may run into it; what belongs together is then told by
 * volume: jobs send the same again and again. Where bursts overtake each other, as a pipeline's do, all of a repeat are
 * one. Pure, any thread. Times in nanoseconds of one clock.
 */
#pragma once

#include <stdbool.h>

#include "correlator/array.h"

struct span { /* one data message */
    uint64_t first_ns;
    uint64_t last_ns;
    uint64_t bytes;
    size_t from; /* places: who sends, who receives */
    size_t to;
    int32_t message;
};
typedef ARRAY(struct span) span_list;

struct burst { /* spans [begin, end) */
    size_t begin;
    size_t end;
    uint64_t bytes;
    uint64_t first_ns;
    uint64_t last_ns;
    bool begins;    /* the first of a repeat of volumes */
    bool is_astray; /* it fits into no repeat, and no burst is a repeat by itself */
    bool is_head;   /* of bursts of one volume that are no repeat each: the longest pause of a repeat is before it */
};
typedef ARRAY(struct burst) burst_list;

/* Finds the bursts of spans in order of their start, which are put in order of bursts. `places`: how many there are. */
void burst_find(burst_list *bursts, span_list *spans, size_t places);
