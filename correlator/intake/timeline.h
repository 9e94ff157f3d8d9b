/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One time line: maps every emitter's clock onto the reference clock, with a bound on the error of each mapped time.
 *
 * The reference is the clock that answered the most exchanges (the smallest boot id where two did equally often). Other
 * correlator boots' clocks are laid onto it through emitters that have exchanges with both. A stream without exchanges
 * borrows the mapping of one on the same machine (equal kernel boot) by way of CLOCK_REALTIME. Where no stream has any
 * exchange, the first stream's own clock is the reference. A stream that none of this reaches has source TIMELINE_NONE:
 * its times stay its own and are never compared with others'.
 *
 * The bound holds for clocks whose rate is constant between two kept samples, whatever the delays: each kept sample
 * confines the true offset to half its round trip. All times in nanoseconds. One thread.
 */
#pragma once

#include "correlator/intake/intake.h"

enum timeline_source {
    TIMELINE_NONE,
    TIMELINE_REFERENCE, /* it is the reference itself */
    TIMELINE_EXCHANGE,
    TIMELINE_REALTIME,
};

struct timeline_point { /* the best sample of a while */
    uint64_t at_ns;     /* emitter's clock */
    int64_t offset_ns;  /* reference minus emitter */
    uint64_t half_ns;   /* half the round trip */
    uint64_t bound_ns;  /* of the line here */
};

struct timeline_pair {
    uint64_t monotonic_ns;
    uint64_t realtime_ns;
    uint64_t bound_ns;
};

struct timeline_clock {
    enum timeline_source source;
    uint64_t samples_count;
    ARRAY(struct timeline_point) points;
    ARRAY(struct timeline_pair) pairs;
    uint64_t middle_ns; /* the line: offset at middle_ns, and its slope */
    int64_t offset_ns;
    double slope;     /* ns of offset a ns */
    int64_t shift_ns; /* added for a stream whose exchanges are with another boot than the reference's */
    uint64_t shift_bound_ns;
    size_t lender; /* TIMELINE_REALTIME: the stream whose mapping it borrows */
    uint64_t worst_bound_ns;
};

struct timeline {
    uint64_t reference_boot;             /* 0: no exchanges at all */
    ARRAY(struct timeline_clock) clocks; /* as intake->streams */
    int64_t realtime_minus_reference_ns;
    bool realtime_known;
};

void timeline_build(struct timeline *timeline, const struct intake *intake);
void timeline_fini(struct timeline *timeline);

/* No machine runs for 70 years: a time beyond is damage, and unknown. */
#define TIMELINE_TIME_MAX (1ULL << 61)

struct timeline_time {
    uint64_t ns; /* reference clock; 0 stays 0 (unknown) */
    uint64_t bound_ns;
};

/* Maps a time of stream `stream`. The bound also covers times outside of the exchanges' span, where it grows. */
struct timeline_time timeline_map(const struct timeline *timeline, size_t stream, uint64_t emitter_ns);

/* The other way, for asking an emitter about an interval. */
uint64_t timeline_unmap(const struct timeline *timeline, size_t stream, uint64_t reference_ns);

/* "exchange", "realtime" or "none"; the reference itself counts as exchange. */
const char *timeline_source_name(enum timeline_source source);
