/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a store of bounded size leaves out. Invariant: bounds only rise, and stay before the last steps and before every
 * operation that hangs, so that a verdict that is held has its operation and its rows.
 */
#include "correlator/store/limit.h"

#define LAST_STEPS 4 /* are never left out */
#define LAST_NS    1000000000ULL

uint64_t limit_file_bytes(const struct limit *limit)
{
    return limit->size_bytes / 8 * 3;
}

static size_t first_step_from(const struct job *job, uint64_t from_ns)
{
    size_t at = 0;

    while (at < job->steps.count && job->steps.items[at].start_ns < from_ns)
        at++;
    return at;
}

/* No bound rises above it. */
static uint64_t highest_ns(const struct job *job, struct limit_span span)
{
    uint64_t highest = span.last_ns > LAST_NS ? span.last_ns - LAST_NS : 0;

    if (job->steps.count > LAST_STEPS)
        highest = job->steps.items[job->steps.count - LAST_STEPS].start_ns;
    for (size_t i = 0; i < job->verdicts.count; i++) {
        const struct verdict *verdict = &job->verdicts.items[i];
        if (verdict->step >= 0 || verdict->operation < 0)
            continue;
        uint64_t start_ns = job->operations.items[verdict->operation].start_ns;
        if (start_ns < highest)
            highest = start_ns;
    }
    return highest;
}

/* In the middle of the steps behind a bound, or of the time. */
static uint64_t middle_ns(const struct job *job, uint64_t from_ns, struct limit_span span)
{
    size_t first = first_step_from(job, from_ns);
    size_t to = first + (job->steps.count - first + 1) / 2;
    uint64_t begin_ns = from_ns > span.first_ns ? from_ns : span.first_ns;

    if (job->steps.count <= LAST_STEPS)
        return span.last_ns > begin_ns ? begin_ns + (span.last_ns - begin_ns + 1) / 2 : begin_ns;
    return to < job->steps.count ? job->steps.items[to].start_ns : UINT64_MAX;
}

static bool move(uint64_t *from_ns, uint64_t to_ns, uint64_t highest)
{
    uint64_t moved = to_ns < highest ? to_ns : highest;

    if (moved <= *from_ns)
        return false;
    *from_ns = moved;
    return true;
}

bool limit_tighten(struct limit *limit, const struct job *job, struct limit_span span)
{
    uint64_t highest = highest_ns(job, span);

    if (move(&limit->traffic_from_ns, middle_ns(job, limit->traffic_from_ns, span), highest))
        return true;
    if (!move(&limit->steps_from_ns, middle_ns(job, limit->steps_from_ns, span), highest))
        return false;
    size_t first = first_step_from(job, limit->steps_from_ns);
    limit->detail_from_ns = first == 0 ? limit->steps_from_ns : job->steps.items[first - 1].start_ns;
    return true;
}

bool limit_has_traffic(const struct limit *limit, uint64_t end_ns)
{
    return end_ns >= limit->traffic_from_ns;
}

bool limit_has_detail(const struct limit *limit, uint64_t end_ns)
{
    return end_ns >= limit->detail_from_ns;
}

bool limit_has_step(const struct limit *limit, const struct job *job, int32_t step)
{
    return step < 0 || job->steps.items[step].start_ns >= limit->steps_from_ns;
}

bool limit_has_operation(const struct limit *limit, const struct job *job, int32_t operation)
{
    const struct operation *of = &job->operations.items[operation];

    return of->step >= 0 ? limit_has_step(limit, job, of->step) : of->start_ns >= limit->steps_from_ns;
}

struct limit_span limit_span_of(const struct naming *naming)
{
    struct limit_span span = {.first_ns = UINT64_MAX};

    for (size_t i = 0; i < naming->messages.count; i++) {
        const struct message *message = &naming->messages.items[i];
        span.first_ns = message->first_ns < span.first_ns ? message->first_ns : span.first_ns;
        span.last_ns = message->last_ns > span.last_ns ? message->last_ns : span.last_ns;
    }
    return span;
}
