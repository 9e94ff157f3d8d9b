/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Steps, operations and verdicts, each entered once. Invariants: no sum falls; a step that was entered is known by the
 * time up to which steps were, a collective by its number on its communicator, a verdict by its step's middle, class
 * and place - all of which stay when a clock that is laid anew moves times a little.
 */
#include "correlator/exposition/ledger.h"

#include <string.h>

#define SILENT_NS   10000000000ull /* an emitter so far behind the others is not waited for, nor is an operation */
#define MOVED_NS    50000ull       /* by which a clock that is laid anew moves a time, mostly */
#define JOINED_NS   1000000000ull  /* what belongs together may be told later by some ranks than by others */
#define FIRST_STEPS 8 /* until so many are there, where they begin and which are warm-up may still change */
#define ALL_IS_OVER UINT64_MAX

static const struct histogram_shape step_shape = {.first = -20, .count = 41, .growth = 2};     /* 1 ms to 17 min */
static const struct histogram_shape duration_shape = {.first = -17, .count = 24, .growth = 4}; /* 8 us to 64 s */
static const struct histogram_shape size_shape = {.first = 4, .count = 15, .growth = 8};       /* 256 B to 64 GiB */

void ledger_init(struct ledger *ledger)
{
    memset(ledger, 0, sizeof *ledger);
    for (size_t i = 0; i < STEP_KINDS; i++)
        histogram_init(&ledger->steps[i], step_shape);
}

void ledger_fini(struct ledger *ledger)
{
    array_fini(&ledger->ranks);
    array_fini(&ledger->kinds);
    array_fini(&ledger->progress);
    array_fini(&ledger->entered);
}

static double seconds(uint64_t ns)
{
    return (double)ns / 1e9;
}

/* ---- until when all has been heard ---- */

static uint64_t last_heard_ns(const struct analysis *analysis, size_t stream)
{
    return timeline_map(&analysis->timeline, stream, analysis->intake.streams.items[stream].last_ns).ns;
}

static uint64_t settled_until_ns(const struct analysis *analysis)
{
    uint64_t newest_ns = 0, settled_ns = ALL_IS_OVER;

    for (size_t i = 0; i < analysis->intake.streams.count; i++)
        if (last_heard_ns(analysis, i) > newest_ns)
            newest_ns = last_heard_ns(analysis, i);
    for (size_t i = 0; i < analysis->intake.streams.count; i++) {
        uint64_t heard_ns = last_heard_ns(analysis, i);
        if (!analysis->intake.streams.items[i].ended && heard_ns + SILENT_NS > newest_ns && heard_ns < settled_ns)
            settled_ns = heard_ns;
    }
    return settled_ns;
}

/* ---- steps ---- */

static struct ledger_rank *rank_of(struct ledger *ledger, int32_t rank)
{
    if (rank < 0 || rank >= LEDGER_RANKS_MAX) {
        ledger->left_out++;
        return NULL;
    }
    while (ledger->ranks.count <= (size_t)rank)
        array_add(&ledger->ranks);
    ledger->ranks.items[rank].is_known = true;
    return &ledger->ranks.items[rank];
}

static void enter_rank_step(struct ledger *ledger, const struct rank_step *step)
{
    struct ledger_rank *rank = rank_of(ledger, step->rank);

    if (rank == NULL)
        return;
    rank->cost_seconds += step->cost_ns > 0 ? seconds((uint64_t)step->cost_ns) : 0;
    if (!step->late_known)
        return;
    rank->last_late_seconds = (double)step->late_ns / 1e9;
    rank->late_seconds += step->late_ns > 0 ? rank->last_late_seconds : 0;
}

/* Steps overlap, since ranks do not begin and end them at once; their middles follow each other. */
static uint64_t middle_of(const struct step *step)
{
    return step->start_ns + (step->end_ns - step->start_ns) / 2;
}

/* How far a clock that is laid anew may move a middle, and no step's distance from the next is that small. */
static uint64_t nearly(uint64_t length_ns)
{
    return length_ns / 8;
}

static void enter_step(struct ledger *ledger, const struct job *job, const struct step *step)
{
    histogram_add(&ledger->steps[step->kind], seconds(step->duration_ns));
    ledger->steps_incomplete += step->incomplete != 0;
    ledger->last_step_seconds = seconds(step->duration_ns);
    ledger->last_step_end_ns = step->end_ns;
    for (size_t i = 0; i < step->ranks; i++)
        enter_rank_step(ledger, &job->rank_steps.items[step->first_rank + i]);
    ledger->steps_until_ns = middle_of(step);
}

/* The last one may still grow, until nothing has come for as long as it took. */
static bool step_is_over(const struct job *job, size_t index, uint64_t settled_ns)
{
    const struct step *step = &job->steps.items[index];

    if (settled_ns == ALL_IS_OVER)
        return true;
    return index + 1 < job->steps.count ? step->end_ns <= settled_ns : step->end_ns + step->duration_ns <= settled_ns;
}

static void take_steps(struct ledger *ledger, const struct job *job, uint64_t settled_ns)
{
    if (ledger->steps_until_ns == 0 && job->steps.count < FIRST_STEPS && settled_ns != ALL_IS_OVER)
        return;
    for (size_t i = 0; i < job->steps.count; i++) {
        const struct step *step = &job->steps.items[i];
        if (step->partial || middle_of(step) <= ledger->steps_until_ns + nearly(step->duration_ns))
            continue;
        if (!step_is_over(job, i, settled_ns))
            return;
        enter_step(ledger, job, step);
    }
}

/* ---- operations ---- */

struct bandwidth { /* as nccl-tests counts (its PERFORMANCE.md): n ranks */
    uint8_t operation;
    bool of_all;     /* the message is n times the buffer of the call */
    unsigned factor; /* bus bytes: factor x (n - 1) / n of the message */
};
static const struct bandwidth bandwidths[] = {
    {OPERATION_ALL_REDUCE, false, 2}, {OPERATION_ALL_GATHER, true, 1}, {OPERATION_REDUCE_SCATTER, true, 1},
    {OPERATION_ALL_TO_ALL, true, 1},  {OPERATION_GATHER, true, 1},     {OPERATION_SCATTER, true, 1},
};

static void add_sizes(struct ledger_kind *kind, const struct operation *operation)
{
    double ranks = operation->ranks_count > 0 ? operation->ranks_count : 1;
    double message_bytes = (double)operation->buffer_bytes, bus_share = 1;

    for (size_t i = 0; i < sizeof bandwidths / sizeof bandwidths[0]; i++) {
        if (bandwidths[i].operation != operation->kind)
            continue;
        message_bytes *= bandwidths[i].of_all ? ranks : 1;
        bus_share = bandwidths[i].factor * (ranks - 1) / ranks;
    }
    kind->message_bytes += message_bytes;
    kind->bus_bytes += message_bytes * bus_share;
    histogram_add(&kind->size, message_bytes);
}

/* Where nobody's arrival is known, or no data was seen, the time is not. */
static void add_times(struct ledger_kind *kind, const struct operation *operation, const struct rank_operation *ranks)
{
    uint64_t first_ns = UINT64_MAX;

    for (size_t i = 0; i < operation->ranks; i++)
        if (ranks[i].arrival_ns != 0 && ranks[i].arrival_ns < first_ns)
            first_ns = ranks[i].arrival_ns;
    if (operation->end_ns <= first_ns || operation->last_arrival_ns < first_ns)
        return;
    uint64_t last_ns = operation->last_arrival_ns < operation->end_ns ? operation->last_arrival_ns : operation->end_ns;
    histogram_add(&kind->duration, seconds(operation->end_ns - first_ns));
    kind->wait_seconds += seconds(last_ns - first_ns);
    kind->transfer_seconds += seconds(operation->end_ns - last_ns);
}

static bool is_kind(const struct ledger_kind *kind, const struct operation *operation, bool is_other)
{
    return kind->operation == operation->kind && kind->algorithm == operation->algorithm &&
           kind->is_other == is_other &&
           (is_other || memcmp(kind->communicator, operation->communicator, IDENTITY_BYTES) == 0);
}

static struct ledger_kind *kind_of(struct ledger *ledger, const struct operation *operation)
{
    bool is_other = false;

    for (;;) {
        for (size_t i = 0; i < ledger->kinds.count; i++)
            if (is_kind(&ledger->kinds.items[i], operation, is_other))
                return &ledger->kinds.items[i];
        if (is_other || ledger->kinds.count < LEDGER_KINDS_MAX)
            break;
        is_other = true;
        ledger->left_out++;
    }
    struct ledger_kind *kind = array_add(&ledger->kinds);
    kind->is_other = is_other;
    kind->operation = operation->kind;
    kind->algorithm = operation->algorithm;
    if (!is_other)
        memcpy(kind->communicator, operation->communicator, IDENTITY_BYTES);
    histogram_init(&kind->size, size_shape);
    histogram_init(&kind->duration, duration_shape);
    return kind;
}

static void enter_operation(struct ledger *ledger, const struct job *job, const struct operation *operation)
{
    const struct rank_operation *ranks = &job->rank_operations.items[operation->first_rank];
    struct ledger_kind *kind = kind_of(ledger, operation);

    kind->count++;
    kind->incomplete += (operation->flags & RANK_OPERATION_INCOMPLETE) != 0;
    add_sizes(kind, operation);
    add_times(kind, operation, ranks);
    for (size_t i = 0; i < operation->ranks; i++) {
        kind->wire_bytes += (double)ranks[i].record.observed_bytes;
        kind->active_seconds += seconds(ranks[i].record.active_ns);
        kind->retransmitted_frames += ranks[i].record.retransmitted_frames;
    }
}

static struct ledger_progress *progress_of(struct ledger *ledger, const uint8_t *communicator)
{
    for (size_t i = 0; i < ledger->progress.count; i++)
        if (memcmp(ledger->progress.items[i].communicator, communicator, IDENTITY_BYTES) == 0)
            return &ledger->progress.items[i];
    struct ledger_progress *progress = array_add(&ledger->progress);
    memcpy(progress->communicator, communicator, IDENTITY_BYTES);
    return progress;
}

static bool was_entered(const struct ledger_progress *progress, const struct operation *operation)
{
    return operation->sequence < (operation->kind == OPERATION_GROUP ? progress->groups : progress->sequence);
}

static void note_progress(struct ledger_progress *progress, const struct operation *operation)
{
    if (operation->kind != OPERATION_GROUP) {
        progress->sequence = operation->sequence + 1;
        return;
    }
    progress->groups = operation->sequence + 1;
    progress->groups_ns = operation->start_ns;
}

/* What was cut out of memory had numbers too: those that began no later than the last one that was entered are. */
static void number_groups_anew(struct ledger *ledger, const struct job *job)
{
    for (size_t i = 0; i < ledger->progress.count; i++)
        ledger->progress.items[i].groups = 0;
    for (size_t i = 0; i < job->operations.count; i++) {
        const struct operation *operation = &job->operations.items[i];
        if (operation->kind != OPERATION_GROUP)
            continue;
        struct ledger_progress *progress = progress_of(ledger, operation->communicator);
        if (operation->start_ns <= progress->groups_ns + MOVED_NS && operation->sequence >= progress->groups)
            progress->groups = operation->sequence + 1;
    }
}

static bool operation_is_over(const struct operation *operation, uint64_t settled_ns)
{
    bool is_seen = operation->end_ns != 0 || (operation->flags & RANK_OPERATION_NO_WIRE) != 0;
    bool is_whole = is_seen && (operation->flags & RANK_OPERATION_INCOMPLETE) == 0 &&
                    operation->ranks_seen >= (uint32_t)operation->ranks_count;
    uint64_t end_ns = operation->end_ns > operation->start_ns ? operation->end_ns : operation->start_ns;

    if (settled_ns == ALL_IS_OVER)
        return true;
    return is_whole ? end_ns + JOINED_NS < settled_ns : end_ns + SILENT_NS < settled_ns;
}

/* Entered for sure in a run before. */
static bool is_old(const struct ledger *ledger, const struct operation *operation)
{
    return operation->start_ns + 2 * SILENT_NS < ledger->settled_ns;
}

/* Of each communicator up to the last that is over: those before it are too, though something of them was not seen. */
static void find_ends(struct ledger *ledger, const struct job *job, uint64_t settled_ns)
{
    for (size_t i = 0; i < ledger->progress.count; i++)
        ledger->progress.items[i].over = 0;
    for (size_t i = 0; i < job->operations.count; i++)
        if (!is_old(ledger, &job->operations.items[i]) && operation_is_over(&job->operations.items[i], settled_ns))
            progress_of(ledger, job->operations.items[i].communicator)->over = i + 1;
}

static void take_operations(struct ledger *ledger, const struct job *job, uint64_t settled_ns)
{
    find_ends(ledger, job, settled_ns);
    for (size_t i = 0; i < job->operations.count; i++) {
        const struct operation *operation = &job->operations.items[i];
        if (is_old(ledger, operation))
            continue;
        struct ledger_progress *progress = progress_of(ledger, operation->communicator);
        if (i >= progress->over || was_entered(progress, operation))
            continue;
        enter_operation(ledger, job, operation);
        note_progress(progress, operation);
    }
}

/* ---- verdicts ---- */

static bool verdict_is_new(const struct ledger *ledger, const struct verdict *verdict, uint64_t middle_ns,
                           uint64_t nearly_ns)
{
    for (size_t i = ledger->entered.count; i-- > 0;) {
        const struct ledger_verdict *entered = &ledger->entered.items[i];
        if (entered->class == verdict->class && entered->rank == verdict->rank &&
            entered->peer_rank == verdict->peer_rank && entered->middle_ns + nearly_ns >= middle_ns &&
            entered->middle_ns <= middle_ns + nearly_ns)
            return false;
    }
    return true;
}

/* Those of steps before this time cannot come again. */
static void forget_verdicts(struct ledger *ledger, uint64_t before_ns)
{
    size_t kept = 0;

    for (size_t i = 0; i < ledger->entered.count; i++)
        if (ledger->entered.items[i].middle_ns >= before_ns)
            ledger->entered.items[kept++] = ledger->entered.items[i];
    ledger->entered.count = kept;
}

static void take_verdict(struct ledger *ledger, const struct job *job, const struct verdict *verdict)
{
    /* a hang has no step: it is known by its operation's start */
    uint64_t middle_ns = job->operations.items[verdict->operation].start_ns, nearly_ns = JOINED_NS;

    if (verdict->step >= 0) {
        middle_ns = middle_of(&job->steps.items[verdict->step]);
        nearly_ns = nearly(job->steps.items[verdict->step].duration_ns);
    }
    if (!verdict_is_new(ledger, verdict, middle_ns, nearly_ns))
        return;
    ledger->verdicts[verdict->class]++;
    ledger->verdict_seconds[verdict->class] += seconds(verdict->size_ns);
    *(struct ledger_verdict *)array_add(&ledger->entered) =
        (struct ledger_verdict){middle_ns, verdict->class, verdict->rank, verdict->peer_rank};
}

/* Of a step that was entered, or of a hang: until then a verdict may still change. */
static bool verdict_stands(const struct ledger *ledger, const struct job *job, const struct verdict *verdict)
{
    if (verdict->operation < 0 || verdict->step < 0)
        return verdict->operation >= 0;
    const struct step *step = &job->steps.items[verdict->step];
    return !step->partial && middle_of(step) <= ledger->steps_until_ns + nearly(step->duration_ns);
}

static void take_verdicts(struct ledger *ledger, const struct job *job)
{
    if (job->steps.count > 0)
        forget_verdicts(ledger, job->steps.items[0].start_ns);
    for (size_t i = 0; i < job->verdicts.count; i++) {
        if (verdict_stands(ledger, job, &job->verdicts.items[i]))
            take_verdict(ledger, job, &job->verdicts.items[i]);
    }
}

void ledger_take(struct ledger *ledger, const struct analysis *analysis)
{
    uint64_t settled_ns = settled_until_ns(analysis);

    take_steps(ledger, &analysis->job, settled_ns);
    if (intake_has_forgotten(&analysis->intake))
        number_groups_anew(ledger, &analysis->job);
    take_operations(ledger, &analysis->job, settled_ns);
    take_verdicts(ledger, &analysis->job);
    if (settled_ns != ALL_IS_OVER)
        ledger->settled_ns = settled_ns;
}
