/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A hash of what steps and verdicts say. Times are left out: as clocks are known better, all of them move by
 * nanoseconds with each run. How long something hangs counts in whole seconds.
 */
#include "correlator/exposition/news.h"

#include "correlator/hash.h"
#include "correlator/job/job.h"

#define NS_PER_S 1000000000

static uint64_t mix_step(uint64_t hash, const struct step *step)
{
    hash = hash_number(hash, step->kind);
    hash = hash_number(hash, step->operations);
    hash = hash_number(hash, step->incomplete);
    return hash_number(hash, (uint64_t)step->slowest_rank);
}

static uint64_t mix_verdict(uint64_t hash, const struct verdict *verdict)
{
    hash = hash_number(hash, (uint64_t)verdict->step);
    hash = hash_number(hash, verdict->class);
    hash = hash_number(hash, (uint64_t)verdict->rank);
    hash = hash_number(hash, (uint64_t)verdict->peer_rank);
    return hash_number(hash, verdict->step < 0 ? verdict->size_ns / NS_PER_S : 0);
}

bool news_take(struct news *news, const struct job *job)
{
    uint64_t hash = hash_number(HASH_START, job->steps.count);

    for (size_t i = 0; i < job->steps.count; i++)
        hash = mix_step(hash, &job->steps.items[i]);
    for (size_t i = 0; i < job->verdicts.count; i++)
        hash = mix_verdict(hash, &job->verdicts.items[i]);
    bool changed = hash != news->seen;
    news->seen = hash;
    return changed;
}
