/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Why a rank was late: a verdict that a rank's host or GPU was late gets the class of what its threads, or its posts,
 * were told to have done in that very time, when that explains the lateness. It explains it when it exceeds by so much
 * what nine of ten quiet waits at the same place of the step have, and what the other ranks have beside it, but for as
 * much as the job's waits vary by anyhow. A thread of the library polls as long as it waits, whatever for, so what
 * keeps it from running grows with the wait: there the usual part of the time counts as well. Invariant: without such
 * an explanation a verdict keeps its class, and says whether there was nothing to be seen or nobody who looked.
 */
#include <stdlib.h>
#include <string.h>

#include "correlator/verdict/evidence.h"
#include "correlator/verdict/verdict_private.h"

#define STANDS_OUT   2 /* times the usual, of what is counted */
#define AROUND       5 /* steps before and after one whose cause is not seen */
#define AROUND_LEAST 4 /* verdicts in them that have one */
#define NOTED_PART   4 /* a duration that explains this part of the lateness is noted beside it */

enum window {                 /* in which a rank can have lost its time */
              WINDOW_CALLER,  /* its operation before was over, and it had not given this one */
              WINDOW_PROXY,   /* it had, and its proxy had not offered buffers */
              WINDOW_SENDING, /* it held credit, and had sent nothing */
};

struct span {
    uint64_t from_ns;
    uint64_t to_ns;
};

struct habit { /* what quiet waits at a place of the step have */
    uint64_t place;
    enum window window;
    int64_t amounts[HOST_KINDS_MAX];
    int64_t permille[HOST_KINDS_MAX]; /* of the wait */
};

struct noisy { /* a rank with a verdict in a step */
    int32_t step;
    int32_t rank;
};

struct sight { /* of one kind */
    struct host_sum sum;
    int64_t usual;
    bool explains;
};

struct inquest {
    struct judge *judge;
    const struct host_evidence *host;
    struct dense *dense;
    ARRAY(struct habit) habits;
    ARRAY(struct noisy) noisy;
    struct verdict *verdict;
    size_t index; /* of the rank operation */
    struct sight sights[HOST_KINDS_MAX];
};

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static struct span span_of(const struct rank_operation *of, enum window window)
{
    const struct record_rank_operation *record = &of->record;
    uint64_t free_ns = later(record->enqueued_ns, of->before_ns);

    switch (window) {
    case WINDOW_CALLER:
        return (struct span){of->before_ns, record->enqueued_ns};
    case WINDOW_PROXY:
        return (struct span){free_ns, record->host_ready_ns};
    default:
        return (struct span){later(free_ns, record->held_ns), record->first_data_ns};
    }
}

/* A proxy's lateness to send is a GPU's, as far as the wire shows. */
static enum window window_of(const struct host_kind *kind, enum verdict_class class)
{
    return kind->role == HOST_DELAY_CALLS ? WINDOW_CALLER : class == VERDICT_GPU_LATE ? WINDOW_SENDING : WINDOW_PROXY;
}

static struct host_sum sum_of(const struct inquest *inquest, const struct host_kind *kind,
                              const struct rank_operation *of, enum window window)
{
    struct span span = span_of(of, window);

    if (of->rank < 0 || of->before_ns == 0 || span.to_ns <= span.from_ns)
        return (struct host_sum){.first_row = -1, .last_row = -1};
    return host_evidence_sum(inquest->host, kind, of->rank, span.from_ns, span.to_ns);
}

/* ---- what is usual ---- */

static int by_step_and_rank(const void *a, const void *b)
{
    const struct noisy *left = a;
    const struct noisy *right = b;

    if (left->step != right->step)
        return left->step < right->step ? -1 : 1;
    return (left->rank > right->rank) - (left->rank < right->rank);
}

static void list_noisy(struct inquest *inquest)
{
    const struct job *job = inquest->judge->job;

    for (size_t i = 0; i < job->verdicts.count; i++)
        *(struct noisy *)array_add(&inquest->noisy) =
            (struct noisy){job->verdicts.items[i].step, job->verdicts.items[i].rank};
    array_sort(&inquest->noisy, by_step_and_rank);
}

static bool is_quiet(const struct inquest *inquest, size_t index)
{
    const struct job *job = inquest->judge->job;
    const struct rank_operation *of = &job->rank_operations.items[index];
    struct noisy key = {job->operations.items[of->operation].step, of->rank};

    return inquest->judge->blames[index].known &&
           bsearch(&key, inquest->noisy.items, inquest->noisy.count, sizeof key, by_step_and_rank) == NULL;
}

struct share {
    int64_t amount;
    int64_t permille; /* of the window */
};

static struct share share_of(const struct inquest *inquest, size_t kind, const struct rank_operation *of,
                             enum window window)
{
    struct span span = span_of(of, window);
    int64_t amount = (int64_t)sum_of(inquest, &host_kinds[kind], of, window).likely;
    int64_t length = span.to_ns > span.from_ns ? (int64_t)(span.to_ns - span.from_ns) : 0;

    return (struct share){amount, length == 0 ? 0 : (int64_t)((double)amount * 1000 / (double)length)};
}

static void measure_habit(const struct inquest *inquest, struct habit *habit)
{
    const struct judge *judge = inquest->judge;
    const struct job *job = judge->job;
    int64_t *amounts = array_zeroed((job->rank_operations.count + 1) * sizeof *amounts);
    int64_t *permille = array_zeroed((job->rank_operations.count + 1) * sizeof *permille);

    for (size_t kind = 0; kind < host_kinds_count; kind++) {
        size_t count = 0;
        for (size_t i = 0; i < job->rank_operations.count; i++) {
            if (judge->blames[i].place != habit->place || !is_quiet(inquest, i))
                continue;
            struct share share = share_of(inquest, kind, &job->rank_operations.items[i], habit->window);
            amounts[count] = share.amount;
            permille[count++] = share.permille;
        }
        habit->amounts[kind] = array_quantile(amounts, count, 900);
        habit->permille[kind] = array_quantile(permille, count, 900);
    }
    free(amounts);
    free(permille);
}

static const struct habit *habit_of(struct inquest *inquest, enum window window)
{
    uint64_t place = inquest->judge->blames[inquest->index].place;

    for (size_t i = 0; i < inquest->habits.count; i++)
        if (inquest->habits.items[i].place == place && inquest->habits.items[i].window == window)
            return &inquest->habits.items[i];
    struct habit *habit = array_add(&inquest->habits);
    habit->place = place;
    habit->window = window;
    measure_habit(inquest, habit);
    return habit;
}

/* What the operation's other ranks have meanwhile: what all have holds up nobody in particular. */
static struct share others_have(const struct inquest *inquest, size_t kind, enum window window)
{
    const struct job *job = inquest->judge->job;
    const struct operation *operation = &job->operations.items[job->rank_operations.items[inquest->index].operation];
    int64_t *amounts = array_zeroed((operation->ranks + 1) * sizeof *amounts);
    int64_t *permille = array_zeroed((operation->ranks + 1) * sizeof *permille);
    size_t count = 0;

    for (size_t i = operation->first_rank; i < operation->first_rank + operation->ranks; i++) {
        if (i == inquest->index)
            continue;
        struct share share = share_of(inquest, kind, &job->rank_operations.items[i], window);
        amounts[count] = share.amount;
        permille[count++] = share.permille;
    }
    struct share others = {array_median(amounts, count), array_median(permille, count)};
    free(amounts);
    free(permille);
    return others;
}

static int64_t usual_of(struct inquest *inquest, size_t kind, enum window window, struct span span)
{
    const struct habit *habit = habit_of(inquest, window);
    struct share others = others_have(inquest, kind, window);
    int64_t usual = habit->amounts[kind] > others.amount ? habit->amounts[kind] : others.amount;
    int64_t permille = habit->permille[kind] > others.permille ? habit->permille[kind] : others.permille;
    int64_t part = (int64_t)((double)(span.to_ns - span.from_ns) * (double)permille / 1000);
    bool polls = host_kinds[kind].role == HOST_DELAY_SERVES;

    return polls && part > usual ? part : usual;
}

/* ---- what explains ---- */

static int64_t size_of(const struct inquest *inquest)
{
    return (int64_t)inquest->verdict->size_ns;
}

/* Of the lateness that part which can lie in the window, less what the job's waits vary by anyhow; half of it at least.
 */
static int64_t needed_ns(const struct inquest *inquest, struct span span)
{
    int64_t length = span.to_ns > span.from_ns ? (int64_t)(span.to_ns - span.from_ns) : 0;
    int64_t lost = length < size_of(inquest) ? length : size_of(inquest);
    int64_t limit = (int64_t)inquest->verdict->limit_ns;

    if (lost < size_of(inquest) / 2)
        return INT64_MAX;
    return lost - (limit < lost / 2 ? limit : lost / 2);
}

static void look(struct inquest *inquest, size_t kind)
{
    const struct host_kind *of = &host_kinds[kind];
    const struct rank_operation *rank = &inquest->judge->job->rank_operations.items[inquest->index];
    enum window window = window_of(of, inquest->verdict->class);
    struct sight *sight = &inquest->sights[kind];

    *sight = (struct sight){.sum = {.first_row = -1, .last_row = -1}};
    if (inquest->verdict->class == VERDICT_GPU_LATE && of->role == HOST_DELAY_CALLS)
        return;
    sight->sum = sum_of(inquest, of, rank, window);
    if (sight->sum.first_row < 0)
        return;
    struct span span = span_of(rank, window);
    uint64_t dense =
        dense_ns(inquest->dense, kind, &sight->sum, rank->rank, span.from_ns, span.to_ns, inquest->verdict->size_ns);
    if (dense > sight->sum.likely)
        sight->sum.likely = dense;
    sight->usual = usual_of(inquest, kind, window, span);
    sight->explains = of->weight != 0 && (int64_t)sight->sum.most - sight->usual >= needed_ns(inquest, span) &&
                      (int64_t)sight->sum.likely - sight->usual >= size_of(inquest) / 2;
}

static int64_t excess(const struct sight *sight)
{
    return (int64_t)sight->sum.likely - sight->usual;
}

/* How heavily a kind weighs, by how much of the lateness it explains. */
static double weight_of(const struct inquest *inquest, size_t kind)
{
    const struct sight *sight = &inquest->sights[kind];
    int64_t explained = excess(sight) < size_of(inquest) ? excess(sight) : size_of(inquest);

    return sight->explains ? (double)explained * host_kinds[kind].weight : 0;
}

static bool stands_out(const struct inquest *inquest, size_t kind)
{
    const struct sight *sight = &inquest->sights[kind];

    if (sight->sum.first_row < 0)
        return false;
    return host_kinds[kind].amount < HOST_DURATIONS ? excess(sight) >= size_of(inquest) / NOTED_PART
                                                    : (int64_t)sight->sum.likely > STANDS_OUT * sight->usual;
}

static void note(struct inquest *inquest, size_t kind, bool decides)
{
    const struct host_kind *of = &host_kinds[kind];
    const struct sight *sight = &inquest->sights[kind];
    const struct rank_operation *rank = &inquest->judge->job->rank_operations.items[inquest->index];
    struct span span = span_of(rank, window_of(of, inquest->verdict->class));

    *(struct verdict_evidence *)array_add(&inquest->verdict->numbers) = (struct verdict_evidence){
        .metric = of->metric,
        .source = of->source == HOST_OF_MARKER ? VERDICT_OF_MARKER : VERDICT_OF_DELAY,
        .decides = decides,
        .is_duration = of->amount < HOST_DURATIONS,
        .priority = PRIORITY_NONE,
        .side = of->role == HOST_DELAY_CALLS ? EVIDENCE_CALLER : EVIDENCE_LIBRARY,
        .rank = rank->rank,
        .tid = sight->sum.tid,
        .from_ns = span.from_ns,
        .to_ns = span.to_ns,
        .amount = sight->sum.likely,
        .usual = (double)sight->usual,
        .first_row = sight->sum.first_row,
        .last_row = sight->sum.last_row,
    };
}

/* ---- in words ---- */

static void say_cause(struct inquest *inquest, size_t kind)
{
    const struct host_kind *of = &host_kinds[kind];
    const struct sight *sight = &inquest->sights[kind];
    const struct rank_operation *rank = &inquest->judge->job->rank_operations.items[inquest->index];
    struct span span = span_of(rank, window_of(of, inquest->verdict->class));

    judge_say(inquest->verdict, "; %s (thread %u) %s for %.1f of those %.1f ms, where %.1f ms are usual",
              of->role == HOST_DELAY_CALLS ? "the thread that calls NCCL" : "a thread of NCCL", sight->sum.tid,
              of->words, judge_ms((int64_t)sight->sum.likely), judge_ms((int64_t)(span.to_ns - span.from_ns)),
              judge_ms(sight->usual));
}

static void say_unseen(struct inquest *inquest, struct span span, uint64_t seen_ns)
{
    int32_t rank = inquest->verdict->rank;
    uint64_t back_offs = (size_t)rank < inquest->host->back_offs.count ? inquest->host->back_offs.items[rank] : 0;

    judge_say(inquest->verdict,
              "; why could not be seen: what kept its threads from running was told for %.1f of those %.1f ms",
              judge_ms((int64_t)seen_ns), judge_ms((int64_t)(span.to_ns - span.from_ns)));
    if (back_offs != 0)
        judge_say(inquest->verdict, " (its host side took probes off %llu times to keep to its --probe-time)",
                  (unsigned long long)back_offs);
}

/* Nothing explains it: says what the calling thread did instead, and leaves the class. */
static void say_unexplained(struct inquest *inquest)
{
    struct verdict *verdict = inquest->verdict;
    struct span span = span_of(&inquest->judge->job->rank_operations.items[inquest->index], WINDOW_CALLER);
    uint64_t off_ns = 0;

    if (span.to_ns <= span.from_ns) {
        judge_say(verdict, "; it had enqueued before its operation before was over, and nothing that was told of its "
                           "other threads explains the rest");
        return;
    }
    uint64_t seen_ns = host_evidence_seen_ns(inquest->host, verdict->rank, span.from_ns, span.to_ns);
    if (span.to_ns - span.from_ns > seen_ns + verdict->size_ns / 2) {
        say_unseen(inquest, span, seen_ns);
        return;
    }
    judge_say(verdict, "; no cause is seen: of the %.1f ms before it enqueued the thread that calls NCCL",
              judge_ms((int64_t)(span.to_ns - span.from_ns)));
    for (size_t kind = 0; kind < host_kinds_count; kind++) {
        const struct host_kind *of = &host_kinds[kind];
        if (of->role != HOST_DELAY_CALLS || of->amount >= HOST_DURATIONS)
            continue;
        off_ns += of->source == HOST_OF_DELAY ? inquest->sights[kind].sum.likely : 0;
        judge_say(verdict, " %s for %.1f ms (usual: %.1f),", of->words,
                  judge_ms((int64_t)inquest->sights[kind].sum.likely), judge_ms(inquest->sights[kind].usual));
        if (inquest->sights[kind].sum.first_row >= 0)
            note(inquest, kind, false);
    }
    judge_say(verdict, " and ran for about %.1f ms", judge_ms(seen_ns > off_ns ? (int64_t)(seen_ns - off_ns) : 0));
}

/* ---- posts ---- */

static void note_post(struct inquest *inquest, const struct host_post *post, const char *metric, struct span span,
                      bool decides)
{
    *(struct verdict_evidence *)array_add(&inquest->verdict->numbers) = (struct verdict_evidence){
        .metric = metric,
        .source = VERDICT_OF_POST,
        .decides = decides,
        .is_duration = true,
        .priority = PRIORITY_NONE,
        .side = EVIDENCE_LIBRARY,
        .rank = inquest->verdict->rank,
        .from_ns = span.from_ns,
        .to_ns = span.to_ns,
        .amount = span.to_ns - span.from_ns,
        .usual = -1,
        .first_row = post->row,
        .last_row = post->row,
    };
}

/* Its first data was posted late, or posted and not sent: a GPU is late only in the first case. */
static void split_by_post(struct inquest *inquest)
{
    const struct rank_operation *of = &inquest->judge->job->rank_operations.items[inquest->index];
    struct span sending = span_of(of, WINDOW_SENDING);
    const struct host_post *post = host_evidence_post(inquest->host, of->rank, sending.to_ns);

    if (post == NULL)
        return;
    uint64_t posted_ns = later(post->posted_ns < sending.to_ns ? post->posted_ns : sending.to_ns, sending.from_ns);
    struct span before = {sending.from_ns, posted_ns};
    struct span behind = {posted_ns, sending.to_ns};
    bool at_nic = (int64_t)(behind.to_ns - behind.from_ns) - (int64_t)post->bound_ns >= needed_ns(inquest, sending);
    judge_say(inquest->verdict,
              "; its data was posted %.1f ms after it held credit, and was on the wire %.3f ms after that (bound %.3f "
              "ms)",
              judge_ms((int64_t)(before.to_ns - before.from_ns)), judge_ms((int64_t)(behind.to_ns - behind.from_ns)),
              judge_ms((int64_t)post->bound_ns));
    if (at_nic)
        inquest->verdict->class = VERDICT_NIC_LATE;
    note_post(inquest, post, "credit_to_post_ns", before, false);
    note_post(inquest, post, "post_to_wire_ns", behind, at_nic);
}

/* ---- verdicts ---- */

static enum verdict_class class_of(const struct inquest *inquest, size_t kind)
{
    bool is_io = host_kinds[kind].class == VERDICT_HOST_IO;

    for (size_t i = 0; i < host_kinds_count && is_io; i++)
        if (host_kinds[i].amount == HOST_MAJOR_FAULTS && stands_out(inquest, i))
            return VERDICT_HOST_FAULTS; /* that is what the device was waited for */
    return host_kinds[kind].class;
}

static void ask(struct inquest *inquest)
{
    double heaviest = 0;
    size_t cause = 0;

    for (size_t kind = 0; kind < host_kinds_count; kind++)
        look(inquest, kind);
    for (size_t kind = 0; kind < host_kinds_count; kind++)
        if (weight_of(inquest, kind) > heaviest) {
            heaviest = weight_of(inquest, kind);
            cause = kind;
        }
    if (heaviest == 0) {
        if (inquest->verdict->class == VERDICT_HOST_LATE)
            say_unexplained(inquest);
        else
            split_by_post(inquest);
        return;
    }
    enum verdict_class class = class_of(inquest, cause);
    say_cause(inquest, cause);
    note(inquest, cause, true);
    for (size_t kind = 0; kind < host_kinds_count; kind++)
        if (kind != cause && stands_out(inquest, kind))
            note(inquest, kind, host_kinds[kind].amount >= HOST_DURATIONS && host_kinds[kind].class == class);
    inquest->verdict->class = class;
}

/* ---- one streak, one cause ---- */

static bool is_plain(const struct verdict *verdict)
{
    return verdict->class == VERDICT_HOST_LATE || verdict->class == VERDICT_GPU_LATE;
}

/* The cause that nearly all of the rank's verdicts in the steps around have; the verdict's own class: there is none. */
static enum verdict_class cause_around(const struct job *job, size_t index)
{
    const struct verdict *verdict = &job->verdicts.items[index];
    size_t counts[VERDICT_CLASSES] = {0};
    size_t all = 0;

    for (size_t i = 0; i < job->verdicts.count; i++) {
        const struct verdict *other = &job->verdicts.items[i];
        if (i == index || other->rank != verdict->rank || other->peer_rank >= 0 || other->step < 0 ||
            abs(other->step - verdict->step) > AROUND)
            continue;
        counts[other->class]++;
        all++;
    }
    for (enum verdict_class class = VERDICT_HOST_NO_CPU; class <= VERDICT_HOST_PROXY; class ++)
        if (counts[class] >= AROUND_LEAST && counts[class] + 1 >= all)
            return verdict->class == VERDICT_GPU_LATE && class != VERDICT_HOST_PROXY ? verdict->class : class;
    return verdict->class;
}

/*
 * At the edges of a run a sum is mostly of quiet steps, or not yet told. What one rank has step after step has one
 * cause.
 */
static void share_causes(struct job *job)
{
    enum verdict_class *classes = array_zeroed((job->verdicts.count + 1) * sizeof *classes);

    for (size_t i = 0; i < job->verdicts.count; i++) {
        const struct verdict *verdict = &job->verdicts.items[i];
        classes[i] = is_plain(verdict) && verdict->rank >= 0 ? cause_around(job, i) : verdict->class;
    }
    for (size_t i = 0; i < job->verdicts.count; i++) {
        struct verdict *verdict = &job->verdicts.items[i];
        if (classes[i] == verdict->class)
            continue;
        judge_say(verdict, "; in the steps beside it its cause was seen: %s", verdict_class_name(classes[i]));
        verdict->class = classes[i];
    }
    free(classes);
}

void judge_hosts(struct judge *judge)
{
    struct inquest inquest = {.judge = judge};

    if (judge->job->evidence == NULL)
        return;
    inquest.host = &judge->job->evidence->host;
    list_noisy(&inquest);
    inquest.dense = dense_create(judge);
    for (size_t i = 0; i < judge->job->verdicts.count; i++) {
        struct verdict *verdict = &judge->job->verdicts.items[i];
        const struct rank_operation *of = judge_rank_in(judge->job, verdict->operation, verdict->rank);
        if ((verdict->class != VERDICT_HOST_LATE && verdict->class != VERDICT_GPU_LATE) || of == NULL)
            continue;
        inquest.verdict = verdict;
        inquest.index = (size_t)(of - judge->job->rank_operations.items);
        ask(&inquest);
    }
    share_causes(judge->job);
    dense_destroy(inquest.dense);
    array_fini(&inquest.habits);
    array_fini(&inquest.noisy);
}
