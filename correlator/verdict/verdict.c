/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Verdicts. Invariant: one verdict at most a step and rank, and one a step and slow port; a rank at either end of a
 * slow link is not called late in that step, since its credits and data wait in the link.
 */
#include "correlator/verdict/verdict.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "correlator/verdict/evidence.h"
#include "correlator/verdict/verdict_private.h"

static const uint32_t needs[] = {
#define VERDICT_CLASS(name, text, fields, meaning, more) (fields),
#include "correlator/verdict/verdict_class.def"
#undef VERDICT_CLASS
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

const struct rank_operation *judge_rank_in(const struct job *job, int32_t operation, int32_t rank)
{
    const struct operation *of = &job->operations.items[operation];

    for (size_t i = of->first_rank; i < of->first_rank + of->ranks; i++)
        if (job->rank_operations.items[i].rank == rank)
            return &job->rank_operations.items[i];
    return NULL;
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

/* What belongs to no step comes last. */
static int by_step(const void *a, const void *b)
{
    uint32_t left = (uint32_t)((const struct verdict *)a)->step;
    uint32_t right = (uint32_t)((const struct verdict *)b)->step;

    return (left > right) - (left < right);
}

/* Takes away the verdicts that rest on what nobody sees of the rank. */
static void withhold(struct job *job)
{
    size_t kept = 0;

    for (size_t i = 0; job->evidence != NULL && i < job->verdicts.count; i++) {
        struct verdict *verdict = &job->verdicts.items[i];
        if ((needs[verdict->class] & ~evidence_sight(job->evidence, verdict->rank)) == 0)
            job->verdicts.items[kept++] = *verdict;
        else
            array_fini(&verdict->numbers);
    }
    if (job->evidence != NULL)
        job->verdicts.count = kept;
}

static void judge_steps(struct judge *judge)
{
    judge->blames = blame_ranks(judge->job);
    judge->pace = blame_pairs(judge->job, &judge->pairs);
    judge->share_ns = step_share(judge->job);
    judge_links(judge);
    judge_gaps(judge);
    judge_ranks(judge);
    judge_causes(judge);
    judge_hosts(judge);
    judge_sockets(judge);
    withhold(judge->job);
    free(judge->blames);
    judge->blames = NULL;
    array_fini(&judge->pairs);
}

void verdict_find(struct job *job)
{
    struct judge judge = {.job = job};

    if (job->steps.count != 0)
        judge_steps(&judge);
    judge_hangs(&judge);
    array_sort(&job->verdicts, by_step);
}

/* "messages, marks" */
static size_t say_fields(uint32_t fields, char *text, size_t bytes)
{
    size_t length = 0;

    for (unsigned bit = 0; bit < 32; bit++)
        if ((fields >> bit & 1) != 0 && length < bytes)
            length += (size_t)snprintf(text + length, bytes - length, "%s%s", length == 0 ? "" : ", ",
                                       source_field_name(bit));
    return length;
}

bool verdict_withheld(uint32_t fields, char *text, size_t bytes)
{
    uint32_t missing = 0;
    size_t length = 0;

    text[0] = '\0';
    for (size_t i = 0; i < VERDICT_CLASSES; i++) {
        if ((needs[i] & ~fields) == 0 || length >= bytes)
            continue;
        missing |= needs[i] & ~fields;
        length += (size_t)snprintf(text + length, bytes - length, "%s%s", length == 0 ? "" : ", ",
                                   verdict_class_name((enum verdict_class)i));
    }
    if (missing != 0 && length < bytes)
        length += (size_t)snprintf(text + length, bytes - length, ": no source of ");
    if (length < bytes)
        say_fields(missing, text + length, bytes - length);
    return missing != 0;
}

/* What of flows the evidence for a class needs, all of it together. */
static uint32_t evidence_fields(enum verdict_class class)
{
    uint32_t fields = 0;

    for (size_t kind = 0; kind < evidence_kinds_count; kind++)
        if (evidence_kinds[kind].class == class)
            fields |= evidence_needs(&evidence_kinds[kind]);
    return fields;
}

enum verdict_sight verdict_sight(enum verdict_class class, uint32_t fields, uint32_t port_flags, char *missing,
                                 size_t bytes)
{
    uint32_t of_flows = evidence_fields(class);
    bool is_of_messages = (needs[class] & SOURCE_MESSAGES) != 0;
    size_t length = 0;

    missing[0] = '\0';
    if ((needs[class] & ~fields) != 0) {
        say_fields(needs[class] & ~fields, missing, bytes);
        return VERDICT_SIGHT_NONE;
    }
    length = say_fields(of_flows & ~fields, missing, bytes);
    if ((port_flags & PORT_PART_OF_FLOWS) != 0 && is_of_messages && length < bytes)
        length += (size_t)snprintf(missing + length, bytes - length, "%ssome of the flows", length == 0 ? "" : ", ");
    if ((port_flags & PORT_ONE_QUEUE) != 0 && (of_flows & SOURCE_ANSWERS) != 0 && length < bytes)
        length += (size_t)snprintf(missing + length, bytes - length, "%sanswers that come to other queues",
                                   length == 0 ? "" : ", ");
    return length == 0 ? VERDICT_SIGHT_WHOLE : VERDICT_SIGHT_PART;
}
