/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Invariant: a kind that was begun is ended, and told once: that its time was over, that its hits were spent, that
 * another request took its place, or that it could not begin.
 */
#include "host/follow/follow.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "wire/log.h"

#define KINDS_MAX 32

struct run {
    bool runs;
    bool settles; /* its probes are being set: nothing is told yet */
    uint64_t from_ns;
    struct record_follow request; /* bounded */
};

struct follow {
    struct follow_options options;
    struct run runs[KINDS_MAX]; /* by bit of enum follow_what */
};

int follow_create(struct follow **follow, const struct follow_options *options)
{
    struct follow *fresh = calloc(1, sizeof *fresh);
    if (fresh == NULL)
        return log_error_return(-ENOMEM, "no memory for requests");
    fresh->options = *options;
    *follow = fresh;
    return 0;
}

void follow_destroy(struct follow **follow)
{
    if (*follow == NULL)
        return;
    for (unsigned bit = 0; bit < KINDS_MAX; bit++)
        if ((*follow)->runs[bit].runs)
            (*follow)->options.end((*follow)->options.context, (enum follow_what)(1u << bit));
    free(*follow);
    *follow = NULL;
}

static void tell(struct follow *follow, unsigned bit, uint64_t hits, uint64_t to_ns, enum followed_end end)
{
    const struct run *run = &follow->runs[bit];
    const struct record_followed record = {
        .header.source = run->request.header.source,
        .from_ns = run->from_ns,
        .to_ns = to_ns,
        .hits = hits,
        .what = 1u << bit,
        .end = end,
    };
    follow->options.publish(follow->options.context, &record);
}

static uint64_t hits_of(const struct follow *follow, unsigned bit)
{
    const uint64_t hits_max = follow->runs[bit].request.hits_max;
    if (follow->runs[bit].settles)
        return 0;
    const int64_t left = follow->options.left(follow->options.context, (enum follow_what)(1u << bit));
    return left < 1 ? hits_max : hits_max - (uint64_t)left;
}

static uint64_t now(const struct follow *follow)
{
    return follow->options.now_ns(follow->options.context);
}

static void end(struct follow *follow, unsigned bit, enum followed_end why)
{
    struct run *run = &follow->runs[bit];
    const uint64_t hits = hits_of(follow, bit);
    const uint64_t now_ns = now(follow);
    run->runs = false;
    follow->options.end(follow->options.context, (enum follow_what)(1u << bit));
    tell(follow, bit, hits, now_ns, why);
}

static uint64_t within(uint64_t asked, uint64_t most)
{
    return asked == 0 || asked > most ? most : asked;
}

static void settle(struct follow *follow, unsigned bit)
{
    struct run *run = &follow->runs[bit];
    const int result = follow->options.settling(follow->options.context, (enum follow_what)(1u << bit));
    if (result > 0)
        return;
    run->from_ns = now(follow);
    if (result < 0) {
        end(follow, bit, FOLLOWED_REFUSED);
        return;
    }
    run->settles = false;
    follow->options.start(follow->options.context, (enum follow_what)(1u << bit), &run->request);
}

static void begin(struct follow *follow, unsigned bit, const struct record_follow *request)
{
    struct run *run = &follow->runs[bit];
    *run = (struct run){.settles = true, .request = *request};
    run->request.duration_ns = within(request->duration_ns, FOLLOW_DURATION_MAX_NS);
    run->request.hits_max = within(request->hits_max, FOLLOW_HITS_MAX);
    run->runs = follow->options.begin(follow->options.context, (enum follow_what)(1u << bit), &run->request) == 0;
    run->from_ns = now(follow);
    if (run->runs)
        settle(follow, bit);
    else
        tell(follow, bit, 0, run->from_ns, FOLLOWED_REFUSED);
}

void follow_request(struct follow *follow, const struct record_follow *request)
{
    for (unsigned bit = 0; bit < KINDS_MAX; bit++) {
        if ((request->what >> bit & 1) == 0)
            continue;
        if (follow->runs[bit].runs)
            end(follow, bit, FOLLOWED_REPLACED);
        begin(follow, bit, request);
    }
}

static void tick(struct follow *follow, unsigned bit)
{
    const struct run *run = &follow->runs[bit];
    if (run->runs && run->settles)
        settle(follow, bit);
    if (!run->runs || run->settles)
        return;
    if (follow->options.left(follow->options.context, (enum follow_what)(1u << bit)) < 1)
        end(follow, bit, FOLLOWED_SPENT);
    else if (now(follow) - run->from_ns >= run->request.duration_ns)
        end(follow, bit, FOLLOWED_IN_TIME);
}

void follow_tick(struct follow *follow)
{
    for (unsigned bit = 0; bit < KINDS_MAX; bit++)
        tick(follow, bit);
}
