/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One time line: maps every emitter's clock onto the reference clock, with a bound on the error of each mapped time.
 *
 * Emitters of one kernel have one clock, whose differences their pairs with CLOCK_REALTIME tell (machine.h); so one
 * without exchanges borrows the others'. The reference is the clock that answered the most exchanges (the smallest boot
 * id where two did equally often); other boots of the correlator are laid onto it through clocks that have exchanges
 * with both. Where no stream has any exchange, the first stream's own clock is the reference. A stream that none of
 * this reaches has source TIMELINE_NONE: its times stay its own and are never compared with others'.
 *
 * Where frames of flows are seen at both ends, clocks are closer to each other than exchanges tell (causality.h): such
 * clocks are a cluster, laid onto that of one of them, and have a second, narrower bound that holds among them.
 *
 * The bounds hold whatever the delays, for clocks that keep to the terms of band.h. All times in nanoseconds. One
 * thread.
 */
#pragma once

#include "correlator/intake/cluster.h"
#include "correlator/intake/intake.h"
#include "correlator/intake/machine.h"
#include "correlator/intake/sample.h"

enum timeline_source {
    TIMELINE_NONE,
    TIMELINE_REFERENCE, /* it is the reference itself */
    TIMELINE_EXCHANGE,
    TIMELINE_REALTIME,
};

struct timeline_clock {
    enum timeline_source source;
    uint64_t samples_count;
    clock_pair_list pairs;
    struct clock_kin kin;
    uint64_t worst_bound_ns; /* against the reference */
    uint64_t worst_among_ns; /* against its cluster's clock; of a clock in no cluster the same */
};

struct timeline {
    uint64_t reference_boot;             /* 0: no exchanges at all */
    ARRAY(struct timeline_clock) clocks; /* as intake->streams */
    struct cluster cluster;              /* its machines, each with its band against the reference */
    int64_t realtime_minus_reference_ns;
    int64_t tai_minus_reference_ns;
    bool realtime_known;
    bool tai_known; /* where the kernel knows how many leap seconds there were */
};

void timeline_build(struct timeline *timeline, const struct intake *intake);
void timeline_fini(struct timeline *timeline);

#define TIMELINE_TIME_MAX SAMPLE_TIME_MAX

struct timeline_time {
    uint64_t ns; /* reference clock; 0 stays 0 (unknown) */
    uint64_t bound_ns;
    uint64_t among_ns; /* its bound among times of the same cluster */
};

/* Maps a time of stream `stream`. The bound also covers times outside of the exchanges' span, where it grows. */
struct timeline_time timeline_map(const struct timeline *timeline, size_t stream, uint64_t emitter_ns);

/* The other way, for asking an emitter about an interval. */
uint64_t timeline_unmap(const struct timeline *timeline, size_t stream, uint64_t reference_ns);

/* How far the difference of two times may be off, one of each of two streams, at worst. */
uint64_t timeline_between(const struct timeline *timeline, size_t stream, size_t other);

/* True when frames tie the stream's clock to others. */
bool timeline_is_framed(const struct timeline *timeline, size_t stream);

/* What is known of the clock beside its offset: its rate against the reference's, how often it was set or stood still.
 */
double timeline_rate(const struct timeline *timeline, size_t stream);
size_t timeline_cuts(const struct timeline *timeline, size_t stream);

/* "exchange", "realtime" or "none"; the reference itself counts as exchange. */
const char *timeline_source_name(enum timeline_source source);
