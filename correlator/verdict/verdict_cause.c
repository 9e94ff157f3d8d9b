/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Why a link was slow: a verdict that a link was slow, or that a rank was late to send, gets the class of what its
 * ports and flows counted in that very time, when that stands out from what nine of ten quiet transfers of the job
 * have. Invariant: without such evidence a verdict stays what it was.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "correlator/verdict/evidence.h"
#include "correlator/verdict/verdict_private.h"

#define STANDS_OUT   2  /* times the usual */
#define SAID         3  /* numbers that are put into words */
#define AROUND       5  /* steps before and after one whose cause is not seen */
#define AROUND_LEAST 4  /* verdicts in them that have one */
#define COVERED      25 /* per cent of the time lost that a duration must cover */

struct usual { /* of one kind: how much a quiet transfer counts in a nanosecond */
    bool known;
    double per_ns;
};

struct finding { /* of one kind at one link */
    size_t kind;
    unsigned weight;
    uint64_t amount;
    double usual;
};

struct inquest {
    struct judge *judge;
    const struct evidence *evidence;
    struct usual *usual; /* by kind */
    bool *quiet;         /* by pair of the judge's: neither end has a verdict in that step */
    struct verdict *verdict;
    struct evidence_span span;
    uint64_t lost_ns;
    bool only_stalls; /* nothing has been sent in the span */
    ARRAY(struct finding) findings;
};

static int by_link(const void *key, const void *item)
{
    const struct verdict *verdict = key;
    const struct pair_time *pair = item;

    if (verdict->step != pair->step)
        return verdict->step < pair->step ? -1 : 1;
    if (verdict->rank != pair->from)
        return verdict->rank < pair->from ? -1 : 1;
    return (verdict->peer_rank > pair->to) - (verdict->peer_rank < pair->to);
}

static double rate_of(const struct inquest *inquest, size_t kind, const struct pair_time *pair)
{
    struct evidence_span span = {pair->from, pair->to, pair->from_ns, pair->to_ns};

    return (double)evidence_count(inquest->evidence, kind, &span, NULL) / (double)(span.to_ns - span.from_ns);
}

static int by_size(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;

    return (left > right) - (left < right);
}

static bool touches(const struct verdict *verdict, const struct pair_time *pair)
{
    return pair->from == verdict->rank || pair->to == verdict->rank ||
           (verdict->peer_rank >= 0 && (pair->from == verdict->peer_rank || pair->to == verdict->peer_rank));
}

static int by_step(const void *key, const void *item)
{
    int32_t left = *(const int32_t *)key, right = ((const struct pair_time *)item)->step;

    return (left > right) - (left < right);
}

/* Whatever is wrong at a port may show in what others do over it. */
static bool *quiet_pairs(const struct judge *judge)
{
    const struct pair_time *pairs = judge->pairs.items;
    size_t count = judge->pairs.count;
    bool *quiet = array_zeroed(count * sizeof *quiet);

    for (size_t i = 0; i < count; i++)
        quiet[i] = !pairs[i].slow;
    for (size_t v = 0; v < judge->job->verdicts.count; v++) {
        const struct verdict *verdict = &judge->job->verdicts.items[v];
        const struct pair_time *any = count == 0 ? NULL : bsearch(&verdict->step, pairs, count, sizeof *any, by_step);
        size_t at = any == NULL ? count : (size_t)(any - pairs);
        while (at > 0 && at < count && pairs[at - 1].step == verdict->step)
            at--;
        for (; at < count && pairs[at].step == verdict->step; at++)
            quiet[at] = quiet[at] && !touches(verdict, &pairs[at]);
    }
    return quiet;
}

/* What nine of ten quiet transfers stay below. */
static double usual_rate(struct inquest *inquest, size_t kind)
{
    const struct judge *judge = inquest->judge;
    struct usual *usual = &inquest->usual[kind];
    size_t count = 0;

    if (usual->known)
        return usual->per_ns;
    double *rates = array_zeroed(judge->pairs.count * sizeof *rates);
    for (size_t i = 0; i < judge->pairs.count; i++) {
        const struct pair_time *pair = &judge->pairs.items[i];
        if (inquest->quiet[i] && pair->to_ns > pair->from_ns)
            rates[count++] = rate_of(inquest, kind, pair);
    }
    qsort(rates, count, sizeof *rates, by_size);
    *usual = (struct usual){.known = true, .per_ns = count == 0 ? 0 : rates[(count - 1) * 9 / 10]};
    free(rates);
    return usual->per_ns;
}

/* How heavily an amount weighs; 0: not at all. */
static unsigned weight_of(const struct inquest *inquest, const struct evidence_kind *kind, uint64_t amount)
{
    if (!evidence_is_duration(kind))
        return amount >= kind->least ? kind->weight : 0;
    uint64_t share = inquest->lost_ns == 0 ? 0 : amount * 100 / inquest->lost_ns;
    share = share > 100 ? 100 : share;
    return share < COVERED ? 0 : (unsigned)share * kind->weight / 100;
}

static void find_kind(struct inquest *inquest, size_t kind)
{
    const struct evidence_kind *of = &evidence_kinds[kind];
    uint64_t amount = 0;

    if (!inquest->only_stalls || of->stalls)
        amount = evidence_count(inquest->evidence, kind, &inquest->span, NULL);
    unsigned weight = weight_of(inquest, of, amount);
    if (weight == 0)
        return;
    double usual = usual_rate(inquest, kind) * (double)(inquest->span.to_ns - inquest->span.from_ns);
    if ((double)amount > STANDS_OUT * usual)
        *(struct finding *)array_add(&inquest->findings) =
            (struct finding){.kind = kind, .weight = weight, .amount = amount, .usual = usual};
}

static int by_weight(const void *a, const void *b)
{
    const struct finding *left = a;
    const struct finding *right = b;

    if (left->weight != right->weight)
        return left->weight > right->weight ? -1 : 1;
    return (left->kind > right->kind) - (left->kind < right->kind);
}

static void say_finding(struct inquest *inquest, const struct finding *finding, const struct verdict_evidence *at)
{
    const struct evidence_kind *kind = &evidence_kinds[finding->kind];
    struct verdict *verdict = inquest->verdict;

    if (at->of_port)
        judge_say(verdict, "; port %s", inquest->evidence->ports.items[at->owner].name);
    else
        judge_say(verdict, "; %s", kind->sides == EVIDENCE_ANSWER ? "the receiver's answers" : "its flows");
    judge_say(verdict, " counted %s", evidence_metric_name(kind));
    if (at->priority != PRIORITY_NONE)
        judge_say(verdict, " of priority %u", at->priority);
    if (evidence_is_duration(kind))
        judge_say(verdict, " %.1f ms in those %.1f ms (usual: %.1f ms)", judge_ms((int64_t)finding->amount),
                  judge_ms((int64_t)(inquest->span.to_ns - inquest->span.from_ns)), finding->usual / 1e6);
    else
        judge_say(verdict, " %llu in those %.1f ms (usual: %.1f)", (unsigned long long)finding->amount,
                  judge_ms((int64_t)(inquest->span.to_ns - inquest->span.from_ns)), finding->usual);
}

static void note_finding(struct inquest *inquest, const struct finding *finding, bool is_said)
{
    struct verdict *verdict = inquest->verdict;
    evidence_amounts amounts = {0};

    evidence_count(inquest->evidence, finding->kind, &inquest->span, &amounts);
    for (size_t i = 0; i < amounts.count; i++) {
        struct verdict_evidence *number = array_add(&verdict->numbers);
        *number = amounts.items[i];
        number->usual = finding->usual;
        number->decides = evidence_kinds[finding->kind].class == verdict->class;
    }
    if (is_said)
        say_finding(inquest, finding, &amounts.items[0]);
    array_fini(&amounts);
}

/* A port's count puts the verdict at that port. */
static void set_place(struct inquest *inquest, uint8_t side)
{
    struct verdict *verdict = inquest->verdict;
    int32_t rank = side == EVIDENCE_SENDER ? inquest->span.from : inquest->span.to;
    const struct rank_operation *of = judge_rank_in(inquest->judge->job, verdict->operation, rank);

    if (of != NULL && of->record.device[0] != '\0')
        memcpy(verdict->device, of->record.device, sizeof of->record.device);
}

static void decide(struct inquest *inquest)
{
    struct verdict *verdict = inquest->verdict;

    for (size_t kind = 0; kind < evidence_kinds_count; kind++)
        find_kind(inquest, kind);
    array_sort(&inquest->findings, by_weight);
    if (inquest->findings.count == 0)
        return;
    verdict->class = evidence_kinds[inquest->findings.items[0].kind].class;
    verdict->rank = inquest->span.from;
    verdict->peer_rank = inquest->span.to;
    for (size_t i = 0; i < inquest->findings.count; i++)
        note_finding(inquest, &inquest->findings.items[i], i < SAID);
    if (verdict->numbers.items[0].of_port)
        set_place(inquest, verdict->numbers.items[0].side);
    inquest->findings.count = 0;
}

static void ask_link(struct inquest *inquest)
{
    const struct judge *judge = inquest->judge;
    const struct pair_time *pair =
        bsearch(inquest->verdict, judge->pairs.items, judge->pairs.count, sizeof *pair, by_link);

    if (pair == NULL || pair->to_ns <= pair->from_ns)
        return;
    uint64_t span_ns = pair->to_ns - pair->from_ns;
    inquest->span = (struct evidence_span){pair->from, pair->to, pair->from_ns, pair->to_ns};
    inquest->lost_ns = pair->excess_ns > 0 && (uint64_t)pair->excess_ns < span_ns ? (uint64_t)pair->excess_ns : span_ns;
    inquest->only_stalls = false;
    decide(inquest);
}

/* Frames were lost and waited for: something may say why. */
static void ask_step(struct inquest *inquest)
{
    const struct verdict *verdict = inquest->verdict;
    const struct step *step = &inquest->judge->job->steps.items[verdict->step];

    inquest->span = (struct evidence_span){verdict->rank, verdict->peer_rank, step->start_ns, step->end_ns};
    inquest->lost_ns = verdict->size_ns;
    inquest->only_stalls = false;
    decide(inquest);
}

static int32_t job_rank(const struct job *job, const struct rank_operation *of, int32_t communicator_rank)
{
    return communicator_rank < 0 ? -1
                                 : job->ranks.rank_of(job->ranks.context, of->record.communicator, communicator_rank);
}

/*
 * A first frame that was lost before it came to where we look makes its sender look late: its time-outs tell. A GPU's
 * data goes to the next rank, a host's credit to the one before.
 */
static void ask_rank(struct inquest *inquest)
{
    const struct job *job = inquest->judge->job;
    const struct verdict *verdict = inquest->verdict;
    const struct rank_operation *of = judge_rank_in(job, verdict->operation, verdict->rank);

    if (of == NULL)
        return;
    const struct record_rank_operation *record = &of->record;
    bool is_gpu = verdict->class == VERDICT_GPU_LATE;
    uint64_t from_ns = is_gpu && record->held_ns > record->enqueued_ns ? record->held_ns : record->enqueued_ns;
    if (from_ns < of->before_ns)
        from_ns = of->before_ns;
    inquest->span = (struct evidence_span){
        .from = verdict->rank,
        .to = job_rank(job, of, is_gpu ? record->next : record->previous),
        .from_ns = from_ns,
        .to_ns = is_gpu ? record->first_data_ns : record->host_ready_ns,
    };
    inquest->lost_ns = verdict->size_ns;
    inquest->only_stalls = true;
    if (inquest->span.to >= 0 && inquest->span.to_ns > from_ns)
        decide(inquest);
}

/* ---- one streak, one cause ---- */

static bool is_same_link(const struct verdict *a, const struct verdict *b)
{
    return a->peer_rank >= 0 && a->rank == b->rank && a->peer_rank == b->peer_rank;
}

/* The cause that nearly all of the link's verdicts in the steps around have; network slow: there is none. */
static enum verdict_class cause_around(const struct job *job, size_t index)
{
    const struct verdict *verdict = &job->verdicts.items[index];
    size_t counts[VERDICT_CLASSES] = {0};
    size_t all = 0;

    for (size_t i = 0; i < job->verdicts.count; i++) {
        const struct verdict *other = &job->verdicts.items[i];
        if (i == index || !is_same_link(other, verdict) || abs(other->step - verdict->step) > AROUND)
            continue;
        counts[other->class]++;
        all++;
    }
    for (enum verdict_class class = VERDICT_PAUSING; class <= VERDICT_RECEIVER_SLOW; class ++)
        if (counts[class] >= AROUND_LEAST && counts[class] + 1 >= all)
            return class;
    return VERDICT_NETWORK_SLOW;
}

/* What is counted belongs to the times between two readings, and may miss a step. */
static void share_causes(struct job *job)
{
    enum verdict_class *classes = array_zeroed((job->verdicts.count + 1) * sizeof *classes);

    for (size_t i = 0; i < job->verdicts.count; i++)
        classes[i] =
            job->verdicts.items[i].class == VERDICT_NETWORK_SLOW ? cause_around(job, i) : job->verdicts.items[i].class;
    for (size_t i = 0; i < job->verdicts.count; i++) {
        struct verdict *verdict = &job->verdicts.items[i];
        if (classes[i] == verdict->class)
            continue;
        judge_say(verdict, "; in the steps beside it its cause was seen: %s", verdict_class_name(classes[i]));
        verdict->class = classes[i];
    }
    free(classes);
}

void judge_causes(struct judge *judge)
{
    struct inquest inquest = {.judge = judge, .evidence = judge->job->evidence};

    if (inquest.evidence == NULL)
        return;
    inquest.quiet = quiet_pairs(judge);
    inquest.usual = array_zeroed(evidence_kinds_count * sizeof *inquest.usual);
    for (size_t i = 0; i < judge->job->verdicts.count; i++) {
        inquest.verdict = &judge->job->verdicts.items[i];
        if (inquest.verdict->class == VERDICT_NETWORK_SLOW)
            ask_link(&inquest);
        else if (inquest.verdict->peer_rank >= 0)
            ask_step(&inquest);
        else if (inquest.verdict->class != VERDICT_NIC_SLOW)
            ask_rank(&inquest);
    }
    share_causes(judge->job);
    array_fini(&inquest.findings);
    free(inquest.usual);
    free(inquest.quiet);
}
