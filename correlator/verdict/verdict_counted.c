/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Steps that are longer while something was counted at a link. A few messages that had to come again, or waited for a
 * buffer, change no link's median pace; but where a flow or port counted what quiet links do not, and the step is
 * longer than those in which nothing was counted, that link is the best candidate. Invariant: one verdict at most a
 * step, and none where another one says already what the step waited for.
 */
#include <stdlib.h>

#include "correlator/verdict/evidence.h"
#include "correlator/verdict/verdict_private.h"

#define STANDS_OUT     2 /* times what nine of ten steps of the other links have */
#define SPREADS        4 /* times the spread of the steps in which nothing was counted */
#define FEW_LINKS      16
#define COMPARED_STEPS 5 /* fewer do not tell what is usual */

struct counted { /* of one kind at one link in one step */
    int32_t step;
    int32_t from;
    int32_t to;
    size_t kind;
    unsigned weight; /* of all kinds that stand out there */
    uint64_t amount;
};
typedef ARRAY(struct counted) counted_list;

struct census {
    struct judge *judge;
    const struct evidence *evidence;
    counted_list all; /* of one kind: each link and step, in this order */
    counted_list standing_out;
};

static int by_step_and_link(const void *a, const void *b)
{
    const struct counted *left = a;
    const struct counted *right = b;

    if (left->step != right->step)
        return left->step < right->step ? -1 : 1;
    if (left->from != right->from)
        return left->from < right->from ? -1 : 1;
    if (left->to != right->to)
        return left->to < right->to ? -1 : 1;
    return (left->weight < right->weight) - (left->weight > right->weight);
}

/* The heaviest link of each step first. */
static int by_step_and_weight(const void *a, const void *b)
{
    const struct counted *left = a;
    const struct counted *right = b;

    if (left->step != right->step)
        return left->step < right->step ? -1 : 1;
    return (left->weight < right->weight) - (left->weight > right->weight);
}

/* What lost frames cost is measured: by the time that was waited for them, and by the pace of the link. */
static bool is_counted(const struct evidence *evidence, size_t kind)
{
    if (evidence_is_duration(&evidence_kinds[kind]) || evidence_kinds[kind].class == VERDICT_NETWORK_LOSSY)
        return false;
    for (size_t i = 0; i < evidence->series.count; i++)
        if (evidence->series.items[i].kind == kind)
            return true;
    return false;
}

static void count_link(struct census *census, size_t kind, int32_t from, int32_t to)
{
    const struct job *job = census->judge->job;

    for (size_t i = 0; i < job->steps.count; i++) {
        struct evidence_span span = {from, to, job->steps.items[i].start_ns, job->steps.items[i].end_ns};
        struct counted *counted = array_add(&census->all);
        *counted = (struct counted){(int32_t)i, from, to, kind, evidence_kinds[kind].weight, 0};
        if (span.to_ns > span.from_ns)
            counted->amount = evidence_count(census->evidence, kind, &span, NULL);
    }
}

static int by_link(const void *a, const void *b)
{
    const struct pair_time *left = a;
    const struct pair_time *right = b;

    if (left->from != right->from)
        return left->from < right->from ? -1 : 1;
    return (left->to > right->to) - (left->to < right->to);
}

static void count_links(struct census *census, const pair_time_list *links, size_t kind)
{
    census->all.count = 0;
    for (size_t i = 0; i < links->count; i++)
        count_link(census, kind, links->items[i].from, links->items[i].to);
}

/* Those that carry data, but for those that are slow in some step: what these count is told there. */
static void list_links(const struct judge *judge, pair_time_list *links)
{
    size_t kept = 0;

    for (size_t i = 0; i < judge->pairs.count; i++)
        *(struct pair_time *)array_add(links) = judge->pairs.items[i];
    array_sort(links, by_link);
    for (size_t from = 0, to; from < links->count; from = to) {
        bool slow = false;
        for (to = from; to < links->count && by_link(&links->items[from], &links->items[to]) == 0; to++)
            slow = slow || links->items[to].slow;
        if (!slow)
            links->items[kept++] = links->items[from];
    }
    links->count = kept;
}

/* One of each step and link: its heaviest kind, with the weight of all. */
static void sum_kinds(counted_list *list)
{
    size_t kept = 0;

    array_sort(list, by_step_and_link);
    for (size_t i = 0; i < list->count; i++) {
        struct counted *last = kept == 0 ? NULL : &list->items[kept - 1];
        const struct counted *next = &list->items[i];
        if (last != NULL && last->step == next->step && last->from == next->from && last->to == next->to)
            last->weight += next->weight;
        else
            list->items[kept++] = *next;
    }
    list->count = kept;
    array_sort(list, by_step_and_weight);
}

/* What nine of ten steps of all links but the one at [from, from + steps) stay below. */
static int64_t usual_elsewhere(const struct census *census, size_t from, size_t steps)
{
    int64_t *amounts = array_zeroed((census->all.count + 1) * sizeof *amounts);
    size_t count = 0;

    for (size_t i = 0; i < census->all.count; i++)
        if (i < from || i >= from + steps)
            amounts[count++] = (int64_t)census->all.items[i].amount;
    int64_t usual = array_quantile(amounts, count, 900);
    free(amounts);
    return usual;
}

static void take_standing_out(struct census *census, size_t kind)
{
    size_t steps = census->judge->job->steps.count;
    bool many = census->all.count > FEW_LINKS * steps; /* among many links one does not matter */
    int64_t all = many ? usual_elsewhere(census, census->all.count, 0) : 0;

    for (size_t from = 0; from < census->all.count; from += steps) {
        int64_t usual = many ? all : usual_elsewhere(census, from, steps);
        for (size_t i = from; i < from + steps; i++) {
            const struct counted *counted = &census->all.items[i];
            if (counted->amount >= evidence_kinds[kind].least &&
                (int64_t)counted->amount > array_multiple(usual, STANDS_OUT))
                *(struct counted *)array_add(&census->standing_out) = *counted;
        }
    }
}

bool *judge_taken(const struct job *job)
{
    bool *taken = array_zeroed((job->steps.count + 1) * sizeof *taken);

    for (size_t i = 0; i < job->steps.count; i++)
        taken[i] = job->steps.items[i].kind != STEP_TRAINING;
    for (size_t i = 0; i < job->verdicts.count; i++)
        if (job->verdicts.items[i].step >= 0)
            taken[job->verdicts.items[i].step] = true;
    return taken;
}

struct usual_step {
    int64_t median_ns;
    int64_t spread_ns;
    size_t count;
};

/* Of the steps in which nothing was counted and that have no verdict. */
static struct usual_step usual_step(const struct census *census, const bool *taken)
{
    const struct job *job = census->judge->job;
    bool *counted = array_zeroed(job->steps.count + 1);
    int64_t *durations = array_zeroed((job->steps.count + 1) * sizeof *durations);
    struct usual_step usual = {0};

    for (size_t i = 0; i < census->standing_out.count; i++)
        counted[census->standing_out.items[i].step] = true;
    for (size_t i = 1; i < job->steps.count; i++)
        if (!counted[i] && !taken[i])
            durations[usual.count++] = (int64_t)job->steps.items[i].duration_ns;
    usual.median_ns = array_median(durations, usual.count);
    usual.spread_ns = array_spread(durations, usual.count);
    free(durations);
    free(counted);
    return usual;
}

/* The operation of the step that lasted longest. */
static int32_t longest_operation(const struct job *job, int32_t step)
{
    int32_t found = -1;
    uint64_t longest = 0;

    for (size_t i = 0; i < job->operations.count; i++) {
        const struct operation *operation = &job->operations.items[i];
        uint64_t began_ns = operation->last_arrival_ns != 0 ? operation->last_arrival_ns : operation->start_ns;
        uint64_t length = operation->end_ns > began_ns ? operation->end_ns - began_ns : 0;
        if (operation->step != step || (found >= 0 && length <= longest))
            continue;
        found = (int32_t)i;
        longest = length;
    }
    return found;
}

/* A step behind one with a slow link begins late: the link cost as much, whatever was counted since. */
static bool is_aftermath(const struct job *job, int32_t step, int64_t excess_ns)
{
    for (size_t i = 0; i < job->verdicts.count; i++) {
        const struct verdict *verdict = &job->verdicts.items[i];
        bool is_link = verdict->class == VERDICT_NETWORK_SLOW || verdict->class == VERDICT_NIC_SLOW;
        if (is_link && verdict->step == step - 1 && (int64_t)verdict->size_ns >= excess_ns)
            return true;
    }
    return false;
}

static void judge_counted_step(struct judge *judge, const struct counted *counted, const struct usual_step *usual)
{
    struct job *job = judge->job;
    int64_t duration = (int64_t)job->steps.items[counted->step].duration_ns;
    int64_t excess = duration - usual->median_ns;
    int64_t spread = array_multiple(usual->spread_ns, SPREADS);
    int64_t limit = spread > judge->share_ns ? spread : judge->share_ns;
    int32_t operation = longest_operation(job, counted->step);

    if (excess <= limit || operation < 0 || is_aftermath(job, counted->step, excess))
        return;
    struct verdict *verdict = array_add(&job->verdicts);
    verdict->class = evidence_kinds[counted->kind].class;
    verdict->step = counted->step;
    verdict->rank = counted->from;
    verdict->peer_rank = counted->to;
    verdict->operation = operation;
    verdict->size_ns = (uint64_t)excess;
    verdict->limit_ns = (uint64_t)limit;
    verdict->confidence = judge_confidence(judge, excess, limit, operation) / 2;
    judge_say(
        verdict,
        "the step took %.1f ms, those in which nothing was counted at a link %.1f ms (median), and only the link of "
        "rank %d to rank %d counted what the others do not; no message of it was so slow that it stands out",
        judge_ms(duration), judge_ms(usual->median_ns), counted->from, counted->to);
}

void judge_counted(struct judge *judge)
{
    struct census census = {.judge = judge, .evidence = judge->job->evidence};
    pair_time_list links = {0};

    if (census.evidence == NULL)
        return;
    list_links(judge, &links);
    for (size_t kind = 0; kind < evidence_kinds_count; kind++) {
        if (!is_counted(census.evidence, kind))
            continue;
        count_links(&census, &links, kind);
        take_standing_out(&census, kind);
    }
    sum_kinds(&census.standing_out);
    bool *taken = judge_taken(judge->job);
    struct usual_step usual = usual_step(&census, taken);
    for (size_t i = 0; i < census.standing_out.count && usual.count >= COMPARED_STEPS; i++) {
        const struct counted *counted = &census.standing_out.items[i];
        if (taken[counted->step])
            continue;
        taken[counted->step] = true;
        judge_counted_step(judge, counted, &usual);
    }
    free(taken);
    array_fini(&links);
    array_fini(&census.all);
    array_fini(&census.standing_out);
}
