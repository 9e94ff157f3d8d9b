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

#include "correlator/blame.h"

#define SPREADS    10 /* times the spread is more than chance */
#define STEP_PARTS 50 /* less than this part of a step is not worth a verdict */
#define SLOW_TIMES 2  /* a slow link takes at least so many times the usual */

struct judge {
    struct job *job;
    struct blame *blames;
    pair_time_list pairs;
    uint64_t pace; /* picoseconds a byte */
    int64_t late_limit_ns;
    int64_t slow_limit_ns;
};

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static double ms(int64_t ns)
{
    return (double)ns / 1e6;
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

static void set_limits(struct judge *judge)
{
    size_t count = judge->job->rank_operations.count;
    int64_t *values = array_zeroed((count + judge->pairs.count) * sizeof *values);
    size_t known = 0;
    int64_t share = step_share(judge->job);

    for (size_t i = 0; i < count; i++)
        if (judge->blames[i].known)
            values[known++] = judge->blames[i].own_ns;
    judge->late_limit_ns = larger(share, SPREADS * array_spread(values, known));
    for (size_t i = 0; i < judge->pairs.count; i++)
        values[i] = judge->pairs.items[i].excess_ns;
    judge->slow_limit_ns = larger(share, SPREADS * array_spread(values, judge->pairs.count));
    free(values);
}

static void say(struct verdict *verdict, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(struct verdict *verdict, const char *format, ...)
{
    size_t length = strlen(verdict->evidence);
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(verdict->evidence + length, sizeof verdict->evidence - length, format, arguments);
    va_end(arguments);
}

static double confidence_of(int64_t size_ns, int64_t limit_ns, const struct operation *operation)
{
    double confidence = (double)size_ns / (double)(size_ns + limit_ns);
    bool whole = (operation->flags & RANK_OPERATION_INCOMPLETE) == 0;

    return whole ? confidence : confidence / 2;
}

static bool is_slow(const struct judge *judge, const struct pair_time *pair)
{
    return pair->excess_ns > judge->slow_limit_ns && pair->active_ns > SLOW_TIMES * (pair->bytes * judge->pace / 1000);
}

static int32_t port_rank(const struct pair_time *pair)
{
    return pair->at_receiver ? pair->to : pair->from;
}

/* One verdict for all slow pairs of one step over one port in one direction: for the pair that is slowest. */
static void judge_port(struct judge *judge, const struct pair_time *slow, size_t count)
{
    const struct pair_time *worst = NULL;
    int64_t size = 0;
    unsigned pairs = 0;

    for (size_t i = 0; i < count && slow[i].step == slow->step; i++) {
        if (!is_slow(judge, &slow[i]) || slow[i].at_receiver != slow->at_receiver ||
            port_rank(&slow[i]) != port_rank(slow))
            continue;
        size += slow[i].excess_ns;
        pairs++;
        if (worst == NULL || slow[i].excess_ns > worst->excess_ns)
            worst = &slow[i];
    }
    const struct operation *operation = &judge->job->operations.items[worst->operation];
    struct verdict *verdict = array_add(&judge->job->verdicts);
    verdict->class = VERDICT_NETWORK_SLOW;
    verdict->step = worst->step;
    verdict->rank = worst->from;
    verdict->peer_rank = worst->to;
    memcpy(verdict->device, worst->device, sizeof worst->device);
    verdict->operation = worst->operation;
    verdict->size_ns = (uint64_t)size;
    verdict->bound_ns = 0;
    verdict->confidence = confidence_of(size, judge->slow_limit_ns, operation);
    uint64_t usual_ns = worst->bytes * judge->pace / 1000;
    say(verdict,
        "the messages of rank %d to rank %d themselves took %.1f ms for %.1f KiB in this step (%.2f MB/s); the "
        "same bytes take %.1f ms on the job's median link (%.2f MB/s)",
        worst->from, worst->to, ms((int64_t)worst->active_ns), (double)worst->bytes / 1024,
        (double)worst->bytes * 1e3 / (double)worst->active_ns, ms((int64_t)usual_ns), 1e6 / (double)judge->pace);
    if (pairs > 1)
        say(verdict, "; %u pairs over port %s are slow, %.1f ms in all", pairs, verdict->device, ms(size));
}

static bool same_port(const struct pair_time *a, const struct pair_time *b)
{
    return a->step == b->step && a->at_receiver == b->at_receiver && port_rank(a) == port_rank(b);
}

static void judge_links(struct judge *judge)
{
    for (size_t i = 0; i < judge->pairs.count; i++) {
        const struct pair_time *pair = &judge->pairs.items[i];
        bool done = false;
        for (size_t j = i; j-- > 0 && judge->pairs.items[j].step == pair->step && !done;)
            done = is_slow(judge, &judge->pairs.items[j]) && same_port(pair, &judge->pairs.items[j]);
        if (!done && is_slow(judge, pair))
            judge_port(judge, pair, judge->pairs.count - i);
    }
}

static bool link_explains(const struct judge *judge, int32_t step, int32_t rank)
{
    for (size_t i = 0; i < judge->pairs.count; i++) {
        const struct pair_time *pair = &judge->pairs.items[i];
        if (pair->step == step && (pair->from == rank || pair->to == rank) && is_slow(judge, pair))
            return true;
    }
    return false;
}

/* The other ranks' median of one time of their records, and how long it took them from another to it. */
static int64_t others_median(const struct job *job, const struct rank_operation *of, size_t field)
{
    const struct operation *operation = &job->operations.items[of->operation];
    int64_t *values = array_zeroed(operation->ranks * sizeof *values);
    size_t count = 0;

    for (size_t i = 0; i < operation->ranks; i++) {
        const struct rank_operation *other = &job->rank_operations.items[operation->first_rank + i];
        uint64_t value;
        memcpy(&value, (const char *)&other->record + field, sizeof value);
        if (other != of && value != 0)
            values[count++] = (int64_t)value;
    }
    int64_t median = array_median(values, count);
    free(values);
    return median;
}

#define OTHERS(job, of, member) others_median((job), (of), offsetof(struct record_rank_operation, member))

/* The longest that another rank's GPU took after it could begin. */
static int64_t others_gpu_wait(const struct judge *judge, const struct rank_operation *of)
{
    const struct operation *operation = &judge->job->operations.items[of->operation];
    int64_t longest = 0;

    for (size_t i = operation->first_rank; i < operation->first_rank + operation->ranks; i++)
        if (&judge->job->rank_operations.items[i] != of && judge->blames[i].known)
            longest = larger(longest, judge->blames[i].gpu_wait_ns);
    return longest;
}

static void say_host(const struct judge *judge, struct verdict *verdict, const struct rank_operation *of)
{
    const struct record_rank_operation *record = &of->record;
    double bound = ms((int64_t)(2 * record->bound_ns));
    int64_t enqueue_late = (int64_t)record->enqueued_ns - OTHERS(judge->job, of, enqueued_ns);

    say(verdict, "rank %d enqueued the operation %.1f ms %s the other ranks' median", of->rank, ms(llabs(enqueue_late)),
        enqueue_late < 0 ? "before" : "after");
    if (record->host_ready_ns != 0)
        say(verdict, " and gave its first credit %.1f ms after that, %.1f ms after theirs",
            ms((int64_t)(record->host_ready_ns - record->enqueued_ns)),
            ms((int64_t)record->host_ready_ns - OTHERS(judge->job, of, host_ready_ns)));
    if (record->first_data_ns > record->host_ready_ns && record->host_ready_ns != 0)
        say(verdict, "; its first data followed within %.1f ms",
            ms((int64_t)(record->first_data_ns - record->host_ready_ns)));
    say(verdict, " (bound %.3f ms)", bound);
}

static void say_gpu(const struct judge *judge, struct verdict *verdict, const struct rank_operation *of,
                    const struct blame *blame)
{
    const struct record_rank_operation *record = &of->record;

    if (record->host_ready_ns != 0)
        say(verdict, "rank %d gave its first credit %.1f ms after enqueue, but", of->rank,
            ms((int64_t)(record->host_ready_ns - record->enqueued_ns)));
    else
        say(verdict, "rank %d enqueued in time, but", of->rank);
    say(verdict, " its first data came %.1f ms after %s; the other ranks' data came within %.1f ms (bound %.3f ms)",
        ms(blame->gpu_wait_ns), of->before_ns > record->host_ready_ns ? "its operation before had ended" : "that",
        ms(others_gpu_wait(judge, of)), ms((int64_t)(2 * record->bound_ns)));
}

static void judge_rank(struct judge *judge, size_t index)
{
    const struct rank_operation *of = &judge->job->rank_operations.items[index];
    const struct blame *blame = &judge->blames[index];
    const struct operation *operation = &judge->job->operations.items[of->operation];
    struct verdict *verdict = array_add(&judge->job->verdicts);
    bool gpu = blame->gpu_ns * 2 > blame->own_ns;

    verdict->class = gpu ? VERDICT_GPU_LATE : VERDICT_HOST_LATE;
    verdict->step = operation->step;
    verdict->rank = of->rank;
    verdict->peer_rank = -1;
    verdict->operation = of->operation;
    verdict->size_ns = (uint64_t)blame->own_ns;
    verdict->bound_ns = 2 * of->record.bound_ns;
    verdict->confidence = confidence_of(blame->own_ns, judge->late_limit_ns, operation);
    if (gpu)
        say_gpu(judge, verdict, of, blame);
    else
        say_host(judge, verdict, of);
}

/* For each rank the operation of the step where it added most, if that is more than chance. */
static void judge_ranks(struct judge *judge, const struct step *step, int32_t number, const size_t *by_step,
                        size_t count)
{
    for (size_t i = 0; i < step->ranks; i++) {
        int32_t rank = judge->job->rank_steps.items[step->first_rank + i].rank;
        size_t worst = SIZE_MAX;
        for (size_t j = 0; j < count; j++) {
            const struct blame *blame = &judge->blames[by_step[j]];
            if (judge->job->rank_operations.items[by_step[j]].rank == rank && blame->known &&
                blame->own_ns > judge->late_limit_ns &&
                (worst == SIZE_MAX || blame->own_ns > judge->blames[worst].own_ns))
                worst = by_step[j];
        }
        if (worst != SIZE_MAX && !link_explains(judge, number, rank))
            judge_rank(judge, worst);
    }
}

static void judge_steps(struct judge *judge)
{
    struct job *job = judge->job;
    ARRAY(size_t) of_step = {0};

    for (size_t step = 0; step < job->steps.count; step++) {
        of_step.count = 0;
        for (size_t i = 0; i < job->operations.count; i++)
            for (size_t j = 0; job->operations.items[i].step == (int32_t)step && j < job->operations.items[i].ranks;
                 j++)
                *(size_t *)array_add(&of_step) = job->operations.items[i].first_rank + j;
        judge_ranks(judge, &job->steps.items[step], (int32_t)step, of_step.items, of_step.count);
    }
    array_fini(&of_step);
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
    set_limits(&judge);
    judge_links(&judge);
    judge_steps(&judge);
    array_sort(&job->verdicts, by_step);
    free(judge.blames);
    array_fini(&judge.pairs);
}
