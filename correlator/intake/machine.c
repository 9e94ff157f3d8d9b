/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Clocks of one kernel. Linux disciplines CLOCK_REALTIME and CLOCK_MONOTONIC alike, so that they differ by a constant
 * until somebody sets the former. Invariant: emitters share a clock only when most of their pairs agree on it; then the
 * difference is that of the pair which was read the fastest.
 */
#include "correlator/intake/machine.h"

#include <stdlib.h>
#include <string.h>

#define PAIRS_ASKED 65 /* of one emitter, spread over its life */

struct difference {
    int64_t delta_ns;
    uint64_t bound_ns;
};

static bool same_kernel(const struct intake_stream *a, const struct intake_stream *b)
{
    static const uint8_t none[16];
    return a->greeted && b->greeted && memcmp(a->hello.kernel_boot, none, sizeof none) != 0 &&
           memcmp(a->hello.kernel_boot, b->hello.kernel_boot, sizeof none) == 0;
}

static const struct clock_pair *nearest(const clock_pair_list *pairs, uint64_t realtime_ns)
{
    const struct clock_pair *best = NULL;
    uint64_t least = UINT64_MAX;

    for (size_t i = 0; i < pairs->count; i++) {
        const struct clock_pair *pair = &pairs->items[i];
        uint64_t away =
            pair->realtime_ns > realtime_ns ? pair->realtime_ns - realtime_ns : realtime_ns - pair->realtime_ns;
        if (away < least) {
            least = away;
            best = pair;
        }
    }
    return best;
}

static size_t list_differences(struct difference *differences, const clock_pair_list *lead, const clock_pair_list *own)
{
    size_t count = own->count < PAIRS_ASKED ? own->count : PAIRS_ASKED;

    for (size_t i = 0; i < count; i++) {
        const struct clock_pair *pair = &own->items[count == own->count ? i : i * (own->count - 1) / (count - 1)];
        const struct clock_pair *theirs = nearest(lead, pair->realtime_ns);
        uint64_t then_ns = theirs->monotonic_ns + (pair->realtime_ns - theirs->realtime_ns);
        differences[i].delta_ns = (int64_t)(then_ns - pair->monotonic_ns);
        differences[i].bound_ns = pair->bound_ns + theirs->bound_ns;
    }
    return count;
}

/* False when the two do not keep the same distance most of the time. */
static bool compare(struct clock_kin *kin, const clock_pair_list *lead, const clock_pair_list *own)
{
    struct difference differences[PAIRS_ASKED];
    int64_t deltas[PAIRS_ASKED];
    size_t agreeing = 0;
    uint64_t narrowest = UINT64_MAX;

    if (lead->count == 0 || own->count == 0)
        return false;
    size_t count = list_differences(differences, lead, own);
    for (size_t i = 0; i < count; i++)
        deltas[i] = differences[i].delta_ns;
    int64_t middle = array_median(deltas, count);
    for (size_t i = 0; i < count; i++) {
        if ((uint64_t)llabs(differences[i].delta_ns - middle) > differences[i].bound_ns)
            continue;
        agreeing++;
        if (differences[i].bound_ns >= narrowest)
            continue;
        narrowest = differences[i].bound_ns;
        kin->delta_ns = differences[i].delta_ns;
        kin->bound_ns = differences[i].bound_ns;
    }
    return 4 * agreeing >= 3 * count;
}

size_t machine_group(struct clock_kin *kin, const struct intake *intake, const clock_pair_list *pairs)
{
    ARRAY(size_t) leads = {0};

    for (size_t i = 0; i < intake->streams.count; i++) {
        size_t machine = 0;
        while (machine < leads.count &&
               !(same_kernel(&intake->streams.items[leads.items[machine]], &intake->streams.items[i]) &&
                 compare(&kin[i], &pairs[leads.items[machine]], &pairs[i])))
            machine++;
        if (machine == leads.count) {
            *(size_t *)array_add(&leads) = i;
            kin[i] = (struct clock_kin){.machine = machine};
        }
        kin[i].machine = machine;
    }
    size_t count = leads.count;
    array_fini(&leads);
    return count;
}
