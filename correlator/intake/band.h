/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The offset between two clocks over time, out of limits on it: at each limit's time the true offset lies within
 * [low, high]. Clocks whose rates differ by no more than BAND_RATE and wander by no more than BAND_WANDER within a
 * window of limits stay within the band; where they cannot have done so (a clock was set, or stood still while its
 * machine slept) the band is cut, and wide across the cut. All times in nanoseconds; owns its knots. One thread.
 */
#pragma once

#include <stdbool.h>

#include "correlator/array.h"

#define BAND_RATE   2e-4 /* of two clocks that nobody set: 100 ppm each */
#define BAND_WANDER 5e-7 /* of a crystal within seconds */

#define BAND_NO_LOW  (INT64_MIN / 4)
#define BAND_NO_HIGH (INT64_MAX / 4)

struct band_limit { /* at `at_ns` of the first clock; one of the two may be none */
    uint64_t at_ns;
    int64_t low_ns;
    int64_t high_ns;
};
typedef ARRAY(struct band_limit) band_limit_list;

struct band_knot {
    uint64_t at_ns;
    int64_t offset_ns;
    uint64_t half_ns; /* the true offset is no farther away */
    double rate;      /* ns of offset a ns */
    double rate_half;
    bool cut; /* no steady clock leads from the knot before to this one */
};

struct band {
    ARRAY(struct band_knot) knots;
    size_t cuts_count;
    size_t unruly_count; /* knots whose limits fit no clock that keeps to the terms: each has only its own there */
};

struct band_offset {
    int64_t offset_ns;
    uint64_t half_ns;
};

/* Of how long a while one limit should be kept, when there are limits of `span_ns`: `usual_ns`, of a short time less.
 */
uint64_t band_while_ns(uint64_t span_ns, uint64_t usual_ns);

/* `limits` are in order of time, no two at the same, and at least one; no bound is made smaller than `floor_ns`. */
void band_build(struct band *band, const band_limit_list *limits, uint64_t floor_ns);
void band_fini(struct band *band);

/* At any time of the first clock; beyond the first and last limit the bound grows. The band has a knot. */
struct band_offset band_at(const struct band *band, uint64_t at_ns);

/* The rate over all of the band without its cuts, and the largest bound at a knot. */
double band_rate(const struct band *band);
uint64_t band_worst_ns(const struct band *band);
