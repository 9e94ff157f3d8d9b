/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Verdicts. Invariant: one verdict at most a step and rank, and one a step and slow port; a rank at either end of a
 * slow link is not called late in that step, since its credits and data wait in the link.
 */
#include "correlator/verdict.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "correlator/verdict_private.h"

static const uint32_t needs[] = {
#define VERDICT_NEED(class, fields) [VERDICT_##class] = (fields),
#include "correlator/verdict_need.def"
#undef VERDICT_NEED
};

#define STEP_PARTS 100 /* less than this part of a step is not worth a verdict */

void judge_say(struct verdict *verdict, const char *format, ...)
{
    size_t length = strlen(verdict->evidence);
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(verdict->evidence + length, sizeof verdict->evidence - length, format, arguments);
    va_end(arguments);
}

double judge_confidence(const struct judge *judge, int64_t size_ns, int64_t limit_ns, int32_t operation)
{
    bool whole = (judge->job->operations.items[operation].flags & RANK_OPERATION_INCOMPLETE) == 0;
    double confidence = (double)size_ns / (double)(size_ns + limit_ns);

    return whole ? confidence : confidence / 2;
}

static int64_t step_share(const struct job *job)
{
    int64_t *durations = array_zeroed(job->steps.count * sizeof *durations);

    for (size_t i = 0; i < job->steps.count; i++)
        durations[i] = (int64_t)job->steps.items[i].duration_ns;
    int64_t median = array_median(durations, job->steps.count);
    free(durations);
    return median / STEP_PARTS;
}

static int by_step(const void *a, const void *b)
{
    const struct verdict *left = a;
    const struct verdict *right = b;

    return (left->step > right->step) - (left->step < right->step);
}

void verdict_find(struct job *job)
{
    struct judge judge = {.job = job};

    if (job->steps.count == 0)
        return;
    judge.blames = blame_ranks(job);
    judge.pace = blame_pairs(job, &judge.pairs);
    judge.share_ns = step_share(job);
    judge_links(&judge);
    judge_ranks(&judge);
    array_sort(&job->verdicts, by_step);
    free(judge.blames);
    array_fini(&judge.pairs);
}

void verdict_withhold(struct job *job, uint32_t fields)
{
    size_t kept = 0;

    for (size_t i = 0; i < job->verdicts.count; i++)
        if ((needs[job->verdicts.items[i].class] & ~fields) == 0)
            job->verdicts.items[kept++] = job->verdicts.items[i];
    job->verdicts.count = kept;
}

bool verdict_withheld(uint32_t fields, char *text, size_t bytes)
{
    uint32_t missing = 0;
    size_t length = 0;

    text[0] = '\0';
    for (size_t i = 0; i < sizeof needs / sizeof needs[0]; i++) {
        if ((needs[i] & ~fields) == 0 || length >= bytes)
            continue;
        missing |= needs[i] & ~fields;
        length += (size_t)snprintf(text + length, bytes - length, "%s%s", length == 0 ? "" : ", ",
                                   verdict_class_name((enum verdict_class)i));
    }
    for (unsigned bit = 0; bit < 32; bit++)
        if ((missing >> bit & 1) != 0 && length < bytes)
            length += (size_t)snprintf(text + length, bytes - length, ": no source of %s", source_field_name(bit));
    return missing != 0;
}
