/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Four-time-stamp exchanges as in NTP (RFC 5905, section 8): replied - returned <= offset <= received - sent.
 * Invariant: the true offset lies within each sample's limits, whatever the delays, for clocks that drift by less than
 * BAND_RATE.
 */
#include "correlator/intake/sample.h"

#include <stdlib.h>

#define WHILE_NS 1000000000ULL /* one sample is kept of each, or of a band's */

bool sample_of(const struct record_clock_sample *record, struct sample *sample)
{
    if (record->returned_ns < record->sent_ns || record->replied_ns < record->received_ns)
        return false;
    uint64_t away = record->returned_ns - record->sent_ns;
    uint64_t held = record->replied_ns - record->received_ns;
    bool damaged = record->returned_ns > SAMPLE_TIME_MAX || record->replied_ns > SAMPLE_TIME_MAX;
    if (held > away || damaged)
        return false;
    int64_t drifted = (int64_t)((double)away / 2 * BAND_RATE) + 1;
    sample->boot = record->reference_boot;
    sample->limit.at_ns = record->sent_ns + away / 2;
    sample->limit.low_ns = (int64_t)(record->replied_ns - record->returned_ns) - drifted;
    sample->limit.high_ns = (int64_t)(record->received_ns - record->sent_ns) + drifted;
    return true;
}

struct tally { /* exchanges a reference boot answered */
    uint64_t boot;
    uint64_t count;
};
typedef ARRAY(struct tally) tally_list;

static void tally_boots(tally_list *tallies, const sample_list *samples)
{
    for (size_t i = 0; i < samples->count; i++) {
        size_t at = 0;
        while (at < tallies->count && tallies->items[at].boot != samples->items[i].boot)
            at++;
        if (at == tallies->count)
            ((struct tally *)array_add(tallies))->boot = samples->items[i].boot;
        tallies->items[at].count++;
    }
}

uint64_t sample_reference(const sample_list *samples)
{
    tally_list tallies = {0};
    uint64_t best = 0;
    uint64_t most = 0;

    tally_boots(&tallies, samples);
    for (size_t i = 0; i < tallies.count; i++) {
        const struct tally *tally = &tallies.items[i];
        if (tally->count > most || (tally->count == most && tally->boot < best)) {
            most = tally->count;
            best = tally->boot;
        }
    }
    array_fini(&tallies);
    return best;
}

static int by_place(const struct sample *left, uint64_t boot, size_t clock)
{
    if (left->boot != boot)
        return left->boot < boot ? -1 : 1;
    return (left->clock > clock) - (left->clock < clock);
}

static int by_place_and_time(const void *a, const void *b)
{
    const struct sample *left = a;
    const struct sample *right = b;
    int order = by_place(left, right->boot, right->clock);

    if (order != 0)
        return order;
    return (left->limit.at_ns > right->limit.at_ns) - (left->limit.at_ns < right->limit.at_ns);
}

static size_t find_first(const sample_list *samples, uint64_t boot, size_t clock)
{
    size_t low = 0;
    size_t high = samples->count;

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (by_place(&samples->items[middle], boot, clock) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static uint64_t half_of(const struct band_limit *limit)
{
    return limit->high_ns < limit->low_ns ? 0 : (uint64_t)(limit->high_ns - limit->low_ns) / 2;
}

uint64_t sample_limits(band_limit_list *limits, const sample_list *samples, uint64_t boot, size_t clock)
{
    size_t first = find_first(samples, boot, clock);
    size_t end = first;
    uint64_t smallest = UINT64_MAX;

    while (end < samples->count && by_place(&samples->items[end], boot, clock) == 0)
        end++;
    if (end == first)
        return smallest;
    uint64_t while_ns =
        band_while_ns(samples->items[end - 1].limit.at_ns - samples->items[first].limit.at_ns, WHILE_NS);
    for (size_t i = first; i < end; i++) {
        const struct band_limit *limit = &samples->items[i].limit;
        struct band_limit *last = limits->count == 0 ? NULL : &limits->items[limits->count - 1];
        if (last == NULL || last->at_ns / while_ns != limit->at_ns / while_ns)
            *(struct band_limit *)array_add(limits) = *limit;
        else if (half_of(limit) < half_of(last))
            *last = *limit;
        smallest = half_of(limit) < smallest ? half_of(limit) : smallest;
    }
    return smallest;
}

static bool build(struct band *band, const sample_list *samples, uint64_t boot, size_t clock)
{
    band_limit_list limits = {0};
    uint64_t floor_ns = sample_limits(&limits, samples, boot, clock);
    bool any = limits.count > 0;

    if (any)
        band_build(band, &limits, floor_ns);
    array_fini(&limits);
    return any;
}

static void narrow(struct band_limit *shift, const struct band *known, const struct band *other, uint64_t at_ns)
{
    struct band_offset mine = band_at(known, at_ns);
    struct band_offset theirs = band_at(other, at_ns);
    int64_t low = mine.offset_ns - theirs.offset_ns - (int64_t)(mine.half_ns + theirs.half_ns);
    int64_t high = mine.offset_ns - theirs.offset_ns + (int64_t)(mine.half_ns + theirs.half_ns);

    if (high - low < shift->high_ns - shift->low_ns)
        *shift = (struct band_limit){at_ns, low, high};
}

/* How far `boot`'s clock is behind the reference's, as one clock that knows both has it, if that is narrower. */
static void compare_boots(struct band_limit *shift, const sample_list *samples, uint64_t reference, uint64_t boot,
                          size_t clock)
{
    struct band known = {.cuts_count = 0};
    struct band other = {.cuts_count = 0};

    if (build(&known, samples, reference, clock) && build(&other, samples, boot, clock)) {
        narrow(shift, &known, &other, known.knots.items[0].at_ns);
        narrow(shift, &known, &other, known.knots.items[known.knots.count - 1].at_ns);
        narrow(shift, &known, &other, other.knots.items[0].at_ns);
        narrow(shift, &known, &other, other.knots.items[other.knots.count - 1].at_ns);
    }
    band_fini(&known);
    band_fini(&other);
}

/* True when `boot` was laid onto the reference's clock. */
static bool bridge(sample_list *samples, uint64_t reference, uint64_t boot)
{
    struct band_limit shift = {0, INT64_MIN / 4, INT64_MAX / 4};
    size_t last = SIZE_MAX;

    for (size_t i = 0; i < samples->count; i++) {
        const struct sample *sample = &samples->items[i];
        if (sample->boot == boot && sample->clock != last)
            compare_boots(&shift, samples, reference, boot, last = sample->clock);
    }
    if (shift.high_ns == INT64_MAX / 4)
        return false;
    for (size_t i = 0; i < samples->count; i++) {
        struct sample *sample = &samples->items[i];
        if (sample->boot != boot)
            continue;
        sample->boot = reference;
        sample->limit.low_ns += shift.low_ns;
        sample->limit.high_ns += shift.high_ns;
    }
    array_sort(samples, by_place_and_time);
    return true;
}

void sample_bridge(sample_list *samples, uint64_t reference)
{
    tally_list tallies = {0};
    bool more = true;

    tally_boots(&tallies, samples);
    array_sort(samples, by_place_and_time);
    while (more) {
        more = false;
        for (size_t i = 0; i < tallies.count; i++) {
            uint64_t boot = tallies.items[i].boot;
            if (boot == reference || !bridge(samples, reference, boot))
                continue;
            tallies.items[i].boot = reference;
            more = true;
        }
    }
    array_fini(&tallies);
}
