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

#include "correlator/job/cost.h"
#include "correlator/verdict/evidence.h"
#include "correlator/verdict/verdict_private.h"

static const uint32_t needs[] = {
#define VERDICT_CLASS(name, text, fields, meaning, more) (fields),
#include "correlator/verdict/verdict_class.def"
#undef VERDICT_CLASS
};

#define QUIET_STEPS 5 /* fewer do not tell how long a step is that nothing holds back */

void judge_say(struct verdict *verdict, const char *format, ...)
{
    size_t length = strlen(verdict->evidence);
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(verdict->evidence + length, sizeof verdict->evidence - length, format, arguments);
    va_end(arguments);
}

void judge_add_candidate(struct verdict *verdict, int32_t rank)
{
    if (verdict->candidates.count == 0)
        *(int32_t *)array_add(&verdict->candidates) = verdict->rank;
    *(int32_t *)array_add(&verdict->candidates) = rank;
}

static int by_rank(const void *a, const void *b)
{
    int32_t left = *(const int32_t *)a, right = *(const int32_t *)b;

    return (left > right) - (left < right);
}

void judge_sort_candidates(struct verdict *verdict)
{
    array_sort(&verdict->candidates, by_rank);
    verdict->rank = verdict->candidates.items[0];
}

void judge_say_candidates(struct verdict *verdict, const char *alike)
{
    if (verdict->candidates.count == 0)
        return;
    judge_sort_candidates(verdict);
    judge_say(verdict, "; ranks");
    for (size_t i = 0; i < verdict->candidates.count; i++)
        judge_say(verdict, "%s %d",
                  i == 0                              ? ""
                  : i + 1 < verdict->candidates.count ? ","
                                                      : " and",
                  verdict->candidates.items[i]);
    judge_say(verdict, " had waited for each other in operations that no NIC sees (NVLink), and %s: it is one of them",
              alike);
}

double judge_confidence(const struct judge *judge, int64_t size_ns, int64_t limit_ns, int32_t operation)
{
    uint16_t doubts = RANK_OPERATION_INCOMPLETE | RANK_OPERATION_UNKNOWN_ALGORITHM;
    bool whole = (judge->job->operations.items[operation].flags & doubts) == 0;
    double confidence = (double)size_ns / (double)(size_ns + limit_ns);

    return whole ? confidence : confidence / 2;
}

int64_t judge_late_ns(const struct judge *judge, int32_t step, int32_t rank)
{
    const struct job *job = judge->job;
    const struct judge_span *span = &judge->spans[step];
    int64_t most_ns = 0;

    for (int32_t i = span->first; i < span->end; i++) {
        const struct rank_operation *of = job->operations.items[i].step == step ? judge_rank_in(job, i, rank) : NULL;
        const struct blame *blame = of == NULL ? NULL : &judge->blames[of - job->rank_operations.items];
        if (blame == NULL || !blame->known)
            continue;
        int64_t own_ns =
            blame->own_ns[BLAME_GPU] < blame->late_ns[BLAME_GPU] ? blame->own_ns[BLAME_GPU] : blame->late_ns[BLAME_GPU];
        most_ns = own_ns > most_ns ? own_ns : most_ns;
    }
    return most_ns;
}

const struct rank_operation *judge_rank_in(const struct job *job, int32_t operation, int32_t rank)
{
    const struct operation *of = &job->operations.items[operation];

    for (size_t i = of->first_rank; i < of->first_rank + of->ranks; i++)
        if (job->rank_operations.items[i].rank == rank)
            return &job->rank_operations.items[i];
    return NULL;
}

static struct verdict_limits limits_of(const struct job *job)
{
    struct verdict_limits limits = {0};

    if (job->evidence != NULL)
        limits = job->evidence->limits;
    limits.least_permille = limits.least_permille != 0 ? limits.least_permille : VERDICT_LEAST_PERMILLE;
    limits.spreads = limits.spreads != 0 ? limits.spreads : VERDICT_SPREADS;
    return limits;
}

static int64_t step_share(const struct job *job, uint64_t permille)
{
    int64_t *durations = array_zeroed(job->steps.count * sizeof *durations);

    for (size_t i = 0; i < job->steps.count; i++)
        durations[i] = (int64_t)job->steps.items[i].duration_ns;
    int64_t median = array_median(durations, job->steps.count);
    free(durations);
    return array_multiple(median, (int64_t)permille) / 1000;
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
            verdict_fini(verdict);
    }
    if (job->evidence != NULL)
        job->verdicts.count = kept;
}

/* Of the steps without a verdict; 0: there are too few. */
static int64_t quiet_duration(const struct job *job)
{
    int64_t *durations = array_zeroed((job->steps.count + 1) * sizeof *durations);
    bool *taken = judge_taken(job);
    size_t count = 0;

    for (size_t i = 1; i < job->steps.count; i++)
        if (!taken[i])
            durations[count++] = (int64_t)job->steps.items[i].duration_ns;
    int64_t median = count < QUIET_STEPS ? 0 : array_median(durations, count);
    free(durations);
    free(taken);
    return median;
}

/*
 * Causes are looked for at one operation; what a rank costs the step is the sum, of which no more can count than the
 * step is longer than quiet ones: operations overlap.
 */
static void add_more(struct job *job)
{
    int64_t quiet_ns = quiet_duration(job);

    for (size_t i = 0; i < job->verdicts.count; i++) {
        struct verdict *verdict = &job->verdicts.items[i];
        if (verdict->more_ns == 0 || quiet_ns == 0)
            continue;
        int64_t longer_ns = (int64_t)job->steps.items[verdict->step].duration_ns - quiet_ns;
        int64_t sum_ns = (int64_t)(verdict->size_ns + verdict->more_ns);
        sum_ns = sum_ns < longer_ns ? sum_ns : longer_ns;
        if (sum_ns <= (int64_t)verdict->size_ns)
            continue;
        verdict->size_ns = (uint64_t)sum_ns;
        judge_say(verdict, "; with other operations of the step it is %.1f ms", judge_ms(sum_ns));
    }
}

/* Between which operations those of each step are. */
static struct judge_span *find_spans(const struct job *job)
{
    struct judge_span *spans = array_zeroed(job->steps.count * sizeof *spans);

    for (size_t i = 0; i < job->operations.count; i++) {
        int32_t step = job->operations.items[i].step;
        if (step < 0)
            continue;
        if (spans[step].end == 0)
            spans[step].first = (int32_t)i;
        spans[step].end = (int32_t)i + 1;
    }
    return spans;
}

/* What comes from the lengths of steps is as uncertain as these. */
static void bound_sizes(struct job *job)
{
    for (size_t i = 0; i < job->verdicts.count; i++) {
        struct verdict *verdict = &job->verdicts.items[i];
        if (verdict->bound_ns == 0 && verdict->step >= 0)
            verdict->bound_ns = job->steps.items[verdict->step].bound_ns;
    }
}

static void judge_steps(struct judge *judge)
{
    judge->spans = find_spans(judge->job);
    judge->blames = blame_ranks(judge->job);
    judge->pace = pair_time_find(judge->job, &judge->pairs);
    cost_find(judge->job, judge->blames);
    struct verdict_limits limits = limits_of(judge->job);
    judge->share_ns = step_share(judge->job, limits.least_permille);
    judge->spreads = (int64_t)limits.spreads;
    judge_links(judge);
    judge_gaps(judge);
    judge_ranks(judge);
    judge_counted(judge);
    judge_causes(judge);
    judge_hosts(judge);
    judge_shared(judge);
    add_more(judge->job);
    judge_sockets(judge);
    judge_rails(judge);
    withhold(judge->job);
    judge_unseen(judge);
    bound_sizes(judge->job);
    free(judge->blames);
    judge->blames = NULL;
    free(judge->spans);
    array_fini(&judge->pairs);
}

/* What was asked for is not told: whether an operation should have gone on is not known. */
static bool is_traffic(const struct job *job)
{
    return job->operations.count != 0 && job->operations.items[0].kind == OPERATION_TRAFFIC;
}

void verdict_find(struct job *job)
{
    struct judge judge = {.job = job};

    if (job->steps.count != 0)
        judge_steps(&judge);
    if (!is_traffic(job))
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
