/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Steps. Invariant: an operation has one step, whichever ranks took part; steps count from 0 without holes, in order of
 * time.
 */
#include "correlator/job/step.h"

#include <stdlib.h>
#include <string.h>

#include "correlator/hash.h"
#include "correlator/job/beat.h"
#include "correlator/job/step_kind.h"
#include "correlator/job/step_time.h"

struct sequence { /* one rank's operations in order of enqueue, while it uses the same communicators */
    const struct turn *turns;
    size_t count;
    size_t epoch;
    struct beat *beats;
    struct pattern pattern;
    bar_list bars;
    bool placed;
    bool is_blind;  /* nothing tells when any of its operations was over, so that equal ones in a row are one like the
                       other */
    int64_t offset; /* added to a bar's number to get the job's */
};

struct finder {
    struct job *job;
    turn_list turns;
    ARRAY(struct sequence) sequences; /* by rank, time */
    int64_t *step;                    /* for each operation, NO_STEP = none yet */
    int64_t last;                     /* the highest step that was given, -1 = none */
};
#define NO_STEP INT64_MIN

static bool is_blind(const struct sequence *sequence)
{
    for (size_t i = 0; i < sequence->count; i++)
        if (sequence->beats[i].end_ns != 0 || sequence->beats[i].waited)
            return false;
    return true;
}

static void add_sequences(struct finder *finder, size_t from, size_t to)
{
    for (size_t epoch = 0; from < to; epoch++) {
        struct sequence *sequence = array_add(&finder->sequences);
        sequence->turns = &finder->turns.items[from];
        sequence->epoch = epoch;
        sequence->count = beat_epoch(finder->job, sequence->turns, to - from);
        sequence->beats = array_zeroed(sequence->count * sizeof *sequence->beats);
        beat_fill(sequence->beats, finder->job, sequence->turns, sequence->count);
        sequence->is_blind = is_blind(sequence);
        pattern_init(&sequence->pattern, sequence->beats, sequence->count);
        if (sequence->pattern.period != 0)
            pattern_bars(&sequence->pattern, 0, &sequence->bars);
        from += sequence->count;
    }
}

static void collect(struct finder *finder)
{
    const turn_list *turns = &finder->turns;

    turn_list_all(&finder->turns, finder->job);
    for (size_t from = 0, to; from < turns->count; from = to) {
        for (to = from; to < turns->count && turns->items[to].rank == turns->items[from].rank;)
            to++;
        if (turns->items[from].rank >= 0)
            add_sequences(finder, from, to);
    }
}

static int32_t operation_of(const struct finder *finder, const struct sequence *sequence, size_t beat)
{
    return finder->job->rank_operations.items[sequence->turns[beat].index].operation;
}

/* Gives the operations of a placed rank their steps, where they have none. */
static void spread(struct finder *finder, struct sequence *sequence)
{
    sequence->placed = true;
    for (size_t i = 0; i < sequence->bars.count; i++) {
        int64_t number = (int64_t)i + sequence->offset;
        finder->last = number > finder->last ? number : finder->last;
        for (size_t beat = sequence->bars.items[i].from; beat < sequence->bars.items[i].to; beat++) {
            int64_t *step = &finder->step[operation_of(finder, sequence, beat)];
            if (*step == NO_STEP)
                *step = number;
        }
    }
}

/* How many shared operations agree with bars, with the offset that most of them ask for. */
static size_t agreement(const struct finder *finder, const struct sequence *sequence, const bar_list *bars,
                        int64_t *offset)
{
    int64_t *wanted = array_zeroed(sequence->count * sizeof *wanted);
    size_t count = 0;
    size_t agreeing = 0;

    for (size_t i = 0; i < bars->count; i++)
        for (size_t beat = bars->items[i].from; beat < bars->items[i].to; beat++) {
            int64_t step = finder->step[operation_of(finder, sequence, beat)];
            if (step != NO_STEP)
                wanted[count++] = step - (int64_t)i;
        }
    *offset = array_select(wanted, count, 500);
    for (size_t i = 0; i < count; i++)
        agreeing += wanted[i] == *offset;
    free(wanted);
    return agreeing;
}

/* What the step is to a rank that has been placed. */
static uint8_t kind_of(const struct finder *finder, int64_t step)
{
    for (size_t i = 0; i < finder->sequences.count; i++) {
        const struct sequence *other = &finder->sequences.items[i];
        if (other->placed && step >= other->offset && step < other->offset + (int64_t)other->bars.count)
            return other->bars.items[step - other->offset].kind;
    }
    return STEP_TRAINING;
}

/* A blind rank's bars by the steps that its operations have from others, as far as these follow each other. */
static bool follow(const struct finder *finder, struct sequence *sequence)
{
    bar_list bars = {0};

    for (size_t beat = 0; beat < sequence->count; beat++) {
        int64_t step = finder->step[operation_of(finder, sequence, beat)];
        if (step == NO_STEP && bars.count == 0)
            continue;
        if (bars.count == 0)
            sequence->offset = step;
        int64_t ahead = step == NO_STEP ? -1 : step - sequence->offset - (int64_t)bars.count;
        if (ahead > 0 || ahead < -1)
            break;
        if (ahead == 0)
            *(struct bar *)array_add(&bars) = (struct bar){.from = beat, .kind = kind_of(finder, step)};
        bars.items[bars.count - 1].to = beat + 1;
    }
    if (bars.count == 0)
        return false;
    array_fini(&sequence->bars);
    sequence->bars = bars;
    return true;
}

/* Where several places agree equally the likeliest. */
static bool place_beside(struct finder *finder, struct sequence *sequence)
{
    size_t best = 0;
    size_t turns = sequence->pattern.is_ordered ? sequence->pattern.period : 1;

    if (sequence->is_blind)
        return follow(finder, sequence);
    for (size_t turn = 0; turn < turns; turn++) {
        bar_list bars = {0};
        int64_t offset;
        pattern_bars(&sequence->pattern, turn, &bars);
        size_t agreeing = agreement(finder, sequence, &bars, &offset);
        if (agreeing > best) {
            bar_list other = sequence->bars;
            sequence->bars = bars;
            bars = other;
            sequence->offset = offset;
            best = agreeing;
        }
        array_fini(&bars);
    }
    return best > 0;
}

/* Of the earliest there are, and a blind one only when there is no other. */
static bool comes_before(const struct sequence *sequence, const struct sequence *other)
{
    if (sequence->epoch != other->epoch)
        return sequence->epoch < other->epoch;
    if (sequence->is_blind != other->is_blind)
        return other->is_blind;
    return sequence->bars.count > other->bars.count;
}

static struct sequence *longest_unplaced(struct finder *finder)
{
    struct sequence *longest = NULL;

    for (size_t i = 0; i < finder->sequences.count; i++) {
        struct sequence *sequence = &finder->sequences.items[i];
        if (sequence->placed || sequence->bars.count == 0)
            continue;
        if (longest == NULL || comes_before(sequence, longest))
            longest = sequence;
    }
    return longest;
}

static uint64_t bar_start(const struct sequence *sequence, size_t bar)
{
    return sequence->beats[sequence->bars.items[bar].from].enqueued_ns;
}

static uint64_t distance(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

/* Where ranks apart from those placed begin: at the step that began nearest in time, or behind the last one. */
static int64_t offset_by_time(const struct finder *finder, const struct sequence *sequence)
{
    uint64_t start_ns = bar_start(sequence, 0), nearest = UINT64_MAX, last_ns = 0;
    int64_t offset = 0;

    for (size_t i = 0; i < finder->sequences.count; i++) {
        const struct sequence *other = &finder->sequences.items[i];
        for (size_t bar = 0; other->placed && bar < other->bars.count; bar++) {
            uint64_t off = distance(bar_start(other, bar), start_ns);
            if (off < nearest) {
                nearest = off;
                offset = (int64_t)bar + other->offset;
            }
        }
        if (other->placed && other->beats[other->bars.items[other->bars.count - 1].to - 1].enqueued_ns > last_ns)
            last_ns = other->beats[other->bars.items[other->bars.count - 1].to - 1].enqueued_ns;
    }
    return finder->last < 0 ? 0 : start_ns > last_ns ? finder->last + 1 : offset;
}

/* Places one rank by time, then all that share operations with it, and so on. */
static void place_all(struct finder *finder)
{
    struct sequence *next;

    while ((next = longest_unplaced(finder)) != NULL) {
        bool more = true;
        next->offset = offset_by_time(finder, next);
        spread(finder, next);
        while (more) {
            more = false;
            for (size_t i = 0; i < finder->sequences.count; i++) {
                struct sequence *sequence = &finder->sequences.items[i];
                if (sequence->placed || sequence->bars.count == 0 || !place_beside(finder, sequence))
                    continue;
                spread(finder, sequence);
                more = true;
            }
        }
    }
}

/* Ranks that do the same, calls and order, have equal roles: those of one stage of a pipeline, of other lines too. */
static void give_roles(struct finder *finder, const struct sequence *sequence, const struct bar *bar)
{
    uint64_t make = HASH_START;

    for (size_t beat = bar->from; beat < bar->to; beat++) {
        const struct rank_operation *of = &finder->job->rank_operations.items[sequence->turns[beat].index];
        make = hash_number(hash_number(make, sequence->beats[beat].loose), of->record.operation);
    }
    for (size_t beat = bar->from; beat < bar->to; beat++)
        finder->job->rank_operations.items[sequence->turns[beat].index].role = hash_number(make, beat - bar->from) | 1;
}

static bool find_first(const struct finder *finder, int64_t *first)
{
    *first = INT64_MAX;
    for (size_t i = 0; i < finder->sequences.count; i++) {
        const struct sequence *sequence = &finder->sequences.items[i];
        if (sequence->placed && sequence->offset < *first)
            *first = sequence->offset;
    }
    return *first <= finder->last;
}

/* A last step is not over while an operation of it has shown no end. */
static bool is_over(const struct finder *finder, int64_t step)
{
    for (size_t i = 0; i < finder->job->operations.count; i++) {
        const struct operation *operation = &finder->job->operations.items[i];
        bool open = operation->end_ns == 0 && (operation->flags & RANK_OPERATION_NO_WIRE) == 0;
        if (finder->step[i] == step && open)
            return false;
    }
    return true;
}

static void number_operations(struct finder *finder, int64_t first, int64_t last)
{
    struct job *job = finder->job;
    int32_t *places = array_zeroed((size_t)(last - first + 1) * sizeof *places);

    for (size_t i = 0; i < job->operations.count; i++) {
        int64_t step = finder->step[i];
        if (step == NO_STEP || step < first || step > last)
            continue;
        job->operations.items[i].step = (int32_t)(step - first);
        job->operations.items[i].place = places[step - first]++;
    }
    free(places);
}

/* A step is what it is to the ranks that see most in it: a training step to one is none that is missing anything. */
static void describe(struct finder *finder, int64_t first, int64_t last)
{
    struct job *job = finder->job;
    bool *known = array_zeroed((size_t)(last - first + 1) * sizeof *known);

    for (int64_t step = first; step <= last; step++)
        *(struct step *)array_add(&job->steps) = (struct step){.slowest_rank = -1, .late_operation = -1};
    for (size_t i = 0; i < finder->sequences.count; i++) {
        const struct sequence *sequence = &finder->sequences.items[i];
        for (size_t bar = 0; sequence->placed && bar < sequence->bars.count; bar++) {
            int64_t number = (int64_t)bar + sequence->offset - first;
            if (number < 0 || number > last - first)
                continue;
            struct step *step = &job->steps.items[number];
            uint8_t kind = sequence->bars.items[bar].kind;
            step->kind = !known[number] || kind < step->kind ? kind : step->kind;
            step->fresh = bar == 0 && (!known[number] || step->fresh);
            known[number] = true;
            give_roles(finder, sequence, &sequence->bars.items[bar]);
        }
    }
    free(known);
}

static void fini(struct finder *finder)
{
    for (size_t i = 0; i < finder->sequences.count; i++) {
        pattern_fini(&finder->sequences.items[i].pattern);
        array_fini(&finder->sequences.items[i].bars);
        free(finder->sequences.items[i].beats);
    }
    array_fini(&finder->sequences);
    array_fini(&finder->turns);
    free(finder->step);
}

void step_find(struct job *job)
{
    struct finder finder = {.job = job, .last = -1};
    int64_t first;

    finder.step = array_zeroed(job->operations.count * sizeof *finder.step);
    for (size_t i = 0; i < job->operations.count; i++)
        finder.step[i] = NO_STEP;
    collect(&finder);
    place_all(&finder);
    if (find_first(&finder, &first)) {
        int64_t last = is_over(&finder, finder.last) ? finder.last : finder.last - 1;
        if (first <= last) {
            number_operations(&finder, first, last);
            describe(&finder, first, last);
            step_time(job);
            step_kind_find(job);
        }
    }
    fini(&finder);
}
