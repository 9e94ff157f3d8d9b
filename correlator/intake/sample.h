/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Clock exchanges as limits: reference minus emitter, at the emitter's time half way between question and answer.
 * Pure, but for the arrays. One thread.
 */
#pragma once

#include "correlator/intake/band.h"
#include "wire/record.h"

struct sample {
    size_t clock;  /* whose times these are: the caller's number */
    uint64_t boot; /* of the reference that answered */
    struct band_limit limit;
};
typedef ARRAY(struct sample) sample_list;

/* No machine runs for 70 years: a time beyond is damage, and unknown. */
#define SAMPLE_TIME_MAX (1ULL << 61)

/* False when the times of the record cannot be those of an exchange. Leaves `clock` as it is. */
bool sample_of(const struct record_clock_sample *record, struct sample *sample);

/* The boot that answered the most, of equals the smallest number; 0 of none. */
uint64_t sample_reference(const sample_list *samples);

/*
 * Sorts the samples by boot, clock and time, having laid those of other boots than the reference's onto its clock,
 * through clocks that have exchanges with both: of a correlator that was started again on the same machine.
 */
void sample_bridge(sample_list *samples, uint64_t reference);

/*
 * The samples of one clock with one boot, of sorted ones: the shortest round trip of each while. Returns half the
 * shortest of all.
 */
uint64_t sample_limits(band_limit_list *limits, const sample_list *samples, uint64_t boot, size_t clock);
