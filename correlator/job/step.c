/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Steps. Invariant: an operation has one step, whichever ranks took part; steps count from 0 without holes, in order of
 * time.
 */
#include "correlator/job/step.h"

#include <stdlib.h>
#include <string.h>

#include "correlator/hash.h"
#include "correlator/job/period.h"
#include "correlator/turn.h"

struct sequence { /* one rank's operations in order of enqueue */
    int32_t rank;
    ARRAY(size_t) of; /* rank operations */
    uint64_t *signatures;
    size_t period;
    size_t from; /* the stretch that repeats */
    size_t to;
    bool placed;
    size_t phase;   /* repeats begin at indices phase + n x period */
    int64_t offset; /* added to a repeat's number to get the job's */
};

struct finder {
    struct job *job;
    ARRAY(struct sequence) sequences; /* by rank */
    int64_t *step;                    /* for each operation, NO_STEP = none yet */
};
#define NO_STEP INT64_MIN

static uint64_t signature_of(const struct job *job, const struct rank_operation *of)
{
    const struct operation *operation = &job->operations.items[of->operation];
    uint64_t hash = hash_mix(HASH_START, operation->communicator, IDENTITY_BYTES);

    hash = hash_mix(hash, &operation->kind, sizeof operation->kind);
    hash = hash_mix(hash, &of->record.datatype, sizeof of->record.datatype);
    return hash_mix(hash, &of->record.buffer_bytes, sizeof of->record.buffer_bytes);
}

static void collect(struct finder *finder)
{
    turn_list turns = {0};
    struct sequence *sequence = NULL;

    turn_list_all(&turns, finder->job);
    for (size_t i = 0; i < turns.count; i++) {
        if (turns.items[i].rank < 0)
            continue;
        if (sequence == NULL || sequence->rank != turns.items[i].rank) {
            sequence = array_add(&finder->sequences);
            sequence->rank = turns.items[i].rank;
        }
        *(size_t *)array_add(&sequence->of) = turns.items[i].index;
    }
    array_fini(&turns);
}

static void find_period(struct finder *finder, struct sequence *sequence)
{
    sequence->signatures = array_zeroed(sequence->of.count * sizeof *sequence->signatures);
    for (size_t i = 0; i < sequence->of.count; i++)
        sequence->signatures[i] = signature_of(finder->job, &finder->job->rank_operations.items[sequence->of.items[i]]);
    sequence->period = period_find(sequence->signatures, sequence->of.count, &sequence->from, &sequence->to);
}

static const struct rank_operation *at(const struct finder *finder, const struct sequence *sequence, size_t index)
{
    return &finder->job->rank_operations.items[sequence->of.items[index]];
}

/* The median pause before the enqueues at one place of the period. */
static int64_t pause_before(const struct finder *finder, const struct sequence *sequence, size_t place)
{
    int64_t *pauses = array_zeroed((sequence->of.count / sequence->period + 1) * sizeof *pauses);
    size_t count = 0;
    size_t first = sequence->from + (place + sequence->period - sequence->from % sequence->period) % sequence->period;

    for (size_t i = first == 0 ? sequence->period : first; i < sequence->to; i += sequence->period)
        pauses[count++] =
            (int64_t)(at(finder, sequence, i)->record.enqueued_ns - at(finder, sequence, i - 1)->record.enqueued_ns);
    int64_t pause = array_median(pauses, count);
    free(pauses);
    return pause;
}

static void find_phase(const struct finder *finder, struct sequence *sequence)
{
    int64_t longest = -1;

    for (size_t place = 0; place < sequence->period; place++) {
        int64_t pause = pause_before(finder, sequence, place);
        if (pause > longest) {
            longest = pause;
            sequence->phase = place;
        }
    }
}

/* The repeat that index `i` lies in, counted from the first whole one of the stretch. */
static int64_t repeat_of(const struct sequence *sequence, size_t index)
{
    int64_t distance = (int64_t)index - (int64_t)sequence->phase;
    int64_t period = (int64_t)sequence->period;

    return distance >= 0 ? distance / period : -((period - 1 - distance) / period);
}

static bool in_stretch(const struct sequence *sequence, size_t index)
{
    return index >= sequence->from && index < sequence->to;
}

/* Gives the operations of a placed rank their steps, where they have none. */
static void spread(struct finder *finder, struct sequence *sequence)
{
    sequence->placed = true;
    for (size_t i = sequence->from; i < sequence->to; i++) {
        int64_t *step = &finder->step[at(finder, sequence, i)->operation];
        if (*step == NO_STEP)
            *step = repeat_of(sequence, i) + sequence->offset;
    }
}

/* How many shared operations agree when repeats begin at `phase`, with the offset that most of them ask for. */
static size_t agreement(const struct finder *finder, struct sequence *sequence, size_t phase, int64_t *offset)
{
    int64_t *wanted = array_zeroed((sequence->to - sequence->from) * sizeof *wanted);
    size_t count = 0;
    size_t agreeing = 0;

    sequence->phase = phase;
    for (size_t i = sequence->from; i < sequence->to; i++) {
        int64_t step = finder->step[at(finder, sequence, i)->operation];
        if (step != NO_STEP)
            wanted[count++] = step - repeat_of(sequence, i);
    }
    *offset = array_median(wanted, count);
    for (size_t i = 0; i < count; i++)
        agreeing += wanted[i] == *offset;
    free(wanted);
    return agreeing;
}

static bool place_beside(struct finder *finder, struct sequence *sequence)
{
    size_t best = 0;
    size_t best_phase = 0;
    int64_t best_offset = 0;
    int64_t offset;

    find_phase(finder, sequence);
    size_t first = sequence->phase; /* where several phases agree equally, the one with the longest pause */
    for (size_t i = 0; i < sequence->period; i++) {
        size_t phase = (first + i) % sequence->period;
        size_t agreeing = agreement(finder, sequence, phase, &offset);
        if (agreeing > best) {
            best = agreeing;
            best_phase = phase;
            best_offset = offset;
        }
    }
    sequence->phase = best_phase;
    sequence->offset = best_offset;
    return best > 0;
}

static struct sequence *longest_unplaced(struct finder *finder)
{
    struct sequence *longest = NULL;

    for (size_t i = 0; i < finder->sequences.count; i++) {
        struct sequence *sequence = &finder->sequences.items[i];
        if (!sequence->placed && sequence->period != 0 &&
            (longest == NULL || sequence->to - sequence->from > longest->to - longest->from))
            longest = sequence;
    }
    return longest;
}

/* Places one rank by its pauses, then all that share operations with it, and so on; ranks apart from those start anew.
 */
static void place_all(struct finder *finder)
{
    struct sequence *next;

    while ((next = longest_unplaced(finder)) != NULL) {
        bool more = true;
        find_phase(finder, next);
        spread(finder, next);
        while (more) {
            more = false;
            for (size_t i = 0; i < finder->sequences.count; i++) {
                struct sequence *sequence = &finder->sequences.items[i];
                if (sequence->placed || sequence->period == 0 || !place_beside(finder, sequence))
                    continue;
                spread(finder, sequence);
                more = true;
            }
        }
    }
}

/* The first and last repeats that some rank has from its first to its last operation. */
static bool whole_repeats(const struct finder *finder, int64_t *first, int64_t *last)
{
    *first = INT64_MAX;
    *last = INT64_MIN;
    for (size_t i = 0; i < finder->sequences.count; i++) {
        const struct sequence *sequence = &finder->sequences.items[i];
        if (!sequence->placed)
            continue;
        int64_t own_first = repeat_of(sequence, sequence->from);
        if (in_stretch(sequence, sequence->from) &&
            (sequence->from + sequence->period - sequence->phase) % sequence->period != 0)
            own_first++;
        int64_t own_last = repeat_of(sequence, sequence->to);
        if (own_last > own_first && own_first + sequence->offset < *first)
            *first = own_first + sequence->offset;
        if (own_last > own_first && own_last - 1 + sequence->offset > *last)
            *last = own_last - 1 + sequence->offset;
    }
    return *first <= *last;
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

#define TAIL_TIMES 2

/* How long the rank usually goes on sending after the last data it received, in operations that end a step. */
static uint64_t usual_tail(const struct job *job, const struct rank_step *steps, const size_t *last, size_t count)
{
    int64_t *tails = array_zeroed(count * sizeof *tails);
    size_t known = 0;

    for (size_t i = 0; i < count; i++) {
        const struct record_rank_operation *record = &job->rank_operations.items[last[i]].record;
        if (steps[i].start_ns != 0 && record->received_ns != 0)
            tails[known++] = (int64_t)(record->end_ns - record->received_ns);
    }
    uint64_t usual = (uint64_t)array_median(tails, known);
    free(tails);
    return usual;
}

/* Where nobody saw an end, all that is known is that it was not over before the last enqueue. */
static uint64_t step_end(const struct record_rank_operation *record, uint64_t usual_ns)
{
    uint64_t longest = record->received_ns + TAIL_TIMES * usual_ns;

    if (record->end_ns == 0)
        return record->enqueued_ns;
    return record->received_ns != 0 && record->end_ns > longest ? longest : record->end_ns;
}

static void add_operation(struct rank_step *rank_step, const struct rank_operation *of)
{
    if (rank_step->start_ns == 0)
        rank_step->start_ns = of->record.enqueued_ns;
    if (of->late_known && (!rank_step->late_known || of->late_ns > rank_step->late_ns)) {
        rank_step->late_known = true;
        rank_step->late_ns = of->late_ns;
    }
}

/* One rank's steps: collected with the first enqueue as start, which all but the first replace by the end before. */
static void add_rank_steps(struct job *job, const struct sequence *sequence)
{
    struct rank_step *own = array_zeroed(job->steps.count * sizeof *own);
    size_t *last = array_zeroed(job->steps.count * sizeof *last);
    uint64_t before_ns = 0;

    for (size_t i = 0; i < sequence->of.count; i++) {
        const struct rank_operation *of = &job->rank_operations.items[sequence->of.items[i]];
        int32_t step = job->operations.items[of->operation].step;
        if (step < 0)
            continue;
        bool later =
            own[step].start_ns == 0 || of->record.end_ns >= job->rank_operations.items[last[step]].record.end_ns;
        add_operation(&own[step], of);
        last[step] = later ? sequence->of.items[i] : last[step];
    }
    uint64_t usual_ns = usual_tail(job, own, last, job->steps.count);
    for (size_t i = 0; i < job->steps.count; i++) {
        if (own[i].start_ns == 0)
            continue;
        own[i].end_ns = step_end(&job->rank_operations.items[last[i]].record, usual_ns);
        own[i].step = (int32_t)i;
        own[i].rank = sequence->rank;
        if (before_ns != 0)
            own[i].start_ns = before_ns;
        if (own[i].end_ns < own[i].start_ns)
            own[i].end_ns = own[i].start_ns;
        own[i].duration_ns = own[i].end_ns - own[i].start_ns;
        before_ns = own[i].end_ns;
        *(struct rank_step *)array_add(&job->rank_steps) = own[i];
    }
    free(own);
    free(last);
}

static int by_step(const void *a, const void *b)
{
    const struct rank_step *left = a;
    const struct rank_step *right = b;

    if (left->step != right->step)
        return left->step < right->step ? -1 : 1;
    return (left->rank > right->rank) - (left->rank < right->rank);
}

static void sum_ranks(struct job *job, struct step *step)
{
    int64_t *durations = array_zeroed(step->ranks * sizeof *durations);

    for (size_t i = 0; i < step->ranks; i++) {
        const struct rank_step *rank = &job->rank_steps.items[step->first_rank + i];
        durations[i] = (int64_t)rank->duration_ns;
        if (step->start_ns == 0 || rank->start_ns < step->start_ns)
            step->start_ns = rank->start_ns;
        if (rank->end_ns > step->end_ns)
            step->end_ns = rank->end_ns;
    }
    step->duration_ns = (uint64_t)array_middle(durations, step->ranks);
    free(durations);
}

static void sum_operations(struct job *job)
{
    for (size_t i = 0; i < job->operations.count; i++) {
        const struct operation *operation = &job->operations.items[i];
        if (operation->step < 0)
            continue;
        struct step *step = &job->steps.items[operation->step];
        step->operations++;
        step->incomplete += (operation->flags & RANK_OPERATION_INCOMPLETE) != 0;
        if (2 * operation->bound_ns > step->bound_ns)
            step->bound_ns = 2 * operation->bound_ns;
        for (size_t j = 0; j < operation->ranks; j++) {
            const struct rank_operation *of = &job->rank_operations.items[operation->first_rank + j];
            if (!of->late_known || of->rank < 0 || (step->slowest_rank >= 0 && of->late_ns <= step->late_ns))
                continue;
            step->slowest_rank = of->rank;
            step->late_ns = of->late_ns;
            step->late_bound_ns = 2 * of->record.bound_ns;
            step->late_operation = (int32_t)i;
        }
    }
}

static void make_steps(struct finder *finder, int64_t first, int64_t last)
{
    struct job *job = finder->job;

    for (int64_t step = first; step <= last; step++) {
        struct step *made = array_add(&job->steps);
        made->slowest_rank = -1;
        made->late_operation = -1;
    }
    for (size_t i = 0; i < finder->sequences.count; i++)
        add_rank_steps(job, &finder->sequences.items[i]);
    array_sort(&job->rank_steps, by_step);
    for (size_t i = 0; i < job->rank_steps.count; i++) {
        struct step *step = &job->steps.items[job->rank_steps.items[i].step];
        if (step->ranks++ == 0)
            step->first_rank = i;
    }
    for (size_t i = 0; i < job->steps.count; i++)
        sum_ranks(job, &job->steps.items[i]);
    sum_operations(job);
}

void step_find(struct job *job)
{
    struct finder finder = {.job = job};
    int64_t first, last;

    finder.step = array_zeroed(job->operations.count * sizeof *finder.step);
    for (size_t i = 0; i < job->operations.count; i++)
        finder.step[i] = NO_STEP;
    collect(&finder);
    for (size_t i = 0; i < finder.sequences.count; i++)
        find_period(&finder, &finder.sequences.items[i]);
    place_all(&finder);
    if (whole_repeats(&finder, &first, &last)) {
        if (!is_over(&finder, last))
            last--;
        if (first <= last) {
            number_operations(&finder, first, last);
            make_steps(&finder, first, last);
        }
    }
    for (size_t i = 0; i < finder.sequences.count; i++) {
        free(finder.sequences.items[i].signatures);
        array_fini(&finder.sequences.items[i].of);
    }
    array_fini(&finder.sequences);
    free(finder.step);
}
