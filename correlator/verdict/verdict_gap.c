/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Steps that waited for frames which were lost. A sender that gets no acknowledgement waits for its time-out before it
 * sends again; meanwhile nobody's message is under way, so no link looks slow. What is lost may as well have been an
 * answer that nobody needed soon: so a wait counts only as far as an operation took longer for it than it usually
 * takes. Invariant: one verdict at most a step and link, and none where the link is called slow already.
 */
#include <stdlib.h>
#include <string.h>

#include "correlator/verdict/evidence.h"
#include "correlator/verdict/verdict_private.h"

#define ALIKE_MIN 3 /* fewer do not tell what is usual of an operation */

struct waiting { /* a link with a time-out that touches a step */
    int32_t step;
    int32_t from;
    int32_t to;
};
typedef ARRAY(struct waiting) waiting_list;

static int by_step_and_link(const void *a, const void *b)
{
    const struct waiting *left = a;
    const struct waiting *right = b;

    if (left->step != right->step)
        return left->step < right->step ? -1 : 1;
    if (left->from != right->from)
        return left->from < right->from ? -1 : 1;
    return (left->to > right->to) - (left->to < right->to);
}

/* The first step that ends after a time. */
static size_t step_after(const struct job *job, uint64_t ns)
{
    size_t low = 0, high = job->steps.count;

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (job->steps.items[middle].end_ns <= ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void list_series(const struct job *job, const struct evidence_place *place, const struct evidence_series *series,
                        waiting_list *list)
{
    for (size_t i = series->first; i < series->first + series->count; i++) {
        const struct evidence_change *change = &job->evidence->changes.items[i];
        for (size_t step = step_after(job, change->from_ns);
             step < job->steps.count && job->steps.items[step].start_ns < change->to_ns; step++)
            *(struct waiting *)array_add(list) = (struct waiting){(int32_t)step, place->from, place->to};
    }
}

static void list_waiting(const struct job *job, size_t kind, waiting_list *list)
{
    const struct evidence *evidence = job->evidence;

    for (size_t i = 0; i < evidence->places.count; i++) {
        const struct evidence_place *place = &evidence->places.items[i];
        const struct evidence_series *series = place->side == EVIDENCE_FLOW && place->from != place->to
                                                   ? evidence_series_of(evidence, false, place->owner, (uint8_t)kind)
                                                   : NULL;
        if (series != NULL)
            list_series(job, place, series, list);
    }
    array_sort(list, by_step_and_link);
}

static int64_t duration_of(const struct operation *operation)
{
    return operation->end_ns > operation->start_ns ? (int64_t)(operation->end_ns - operation->start_ns) : 0;
}

/* The same operation of each step: by what it is, and which one of its step. */
static int by_likeness(const struct operation *left, const struct operation *right)
{
    int order = memcmp(left->communicator, right->communicator, sizeof left->communicator);

    if (order != 0)
        return order;
    if (left->kind != right->kind)
        return left->kind < right->kind ? -1 : 1;
    if (left->place != right->place)
        return left->place < right->place ? -1 : 1;
    return (left->buffer_bytes > right->buffer_bytes) - (left->buffer_bytes < right->buffer_bytes);
}

static int by_likeness_of(const void *a, const void *b)
{
    return by_likeness(*(struct operation *const *)a, *(struct operation *const *)b);
}

/* By operation: what nine of ten of its like take at most, in steps without a time-out; 0 where too few tell. */
static int64_t *usual_durations(const struct job *job, const waiting_list *list)
{
    bool *waits = array_zeroed(job->steps.count + 1);
    size_t count = job->operations.count;
    int64_t *usual = array_zeroed((count + 1) * sizeof *usual);
    int64_t *values = array_zeroed((count + 1) * sizeof *values);
    const struct operation **alike = array_zeroed((count + 1) * sizeof(struct operation *));

    for (size_t i = 0; i < list->count; i++)
        waits[list->items[i].step] = true;
    for (size_t i = 0; i < count; i++)
        alike[i] = &job->operations.items[i];
    qsort(alike, count, sizeof(struct operation *), by_likeness_of);
    for (size_t from = 0, to; from < count; from = to) {
        size_t quiet = 0;
        for (to = from; to < count && by_likeness(alike[to], alike[from]) == 0; to++)
            if (alike[to]->step >= 0 && !waits[alike[to]->step])
                values[quiet++] = duration_of(alike[to]);
        int64_t most = quiet < ALIKE_MIN ? 0 : array_quantile(values, quiet, 900);
        for (size_t i = from; i < to; i++)
            usual[alike[i] - job->operations.items] = most;
    }
    free(alike);
    free(values);
    free(waits);
    return usual;
}

struct holding {       /* what a link's wait held up of a step */
    int32_t operation; /* the one that it held up most; -1: none */
    uint64_t held_ns;
};

static struct holding find_held(const struct judge *judge, size_t kind, const int64_t *usual,
                                const struct waiting *waiting)
{
    const struct job *job = judge->job;
    struct holding holding = {.operation = -1};
    uint64_t most_ns = 0;

    for (size_t i = 0; i < job->operations.count; i++) {
        const struct operation *operation = &job->operations.items[i];
        struct evidence_span span = {waiting->from, waiting->to, operation->start_ns, operation->end_ns};
        int64_t longer_ns = duration_of(operation) - usual[i];
        if (operation->step != waiting->step || longer_ns <= 0)
            continue;
        uint64_t waited_ns = evidence_count(job->evidence, kind, &span, NULL);
        uint64_t held_ns = waited_ns < (uint64_t)longer_ns ? waited_ns : (uint64_t)longer_ns;
        if ((int64_t)held_ns <= judge->share_ns)
            continue;
        if (held_ns > most_ns) {
            holding.operation = (int32_t)i;
            most_ns = held_ns;
        }
        holding.held_ns += held_ns;
    }
    return holding;
}

static bool is_called_slow(const struct job *job, const struct waiting *waiting)
{
    for (size_t i = 0; i < job->verdicts.count; i++) {
        const struct verdict *verdict = &job->verdicts.items[i];
        if (verdict->class == VERDICT_NETWORK_SLOW && verdict->step == waiting->step &&
            ((verdict->rank == waiting->from && verdict->peer_rank == waiting->to) ||
             (verdict->rank == waiting->to && verdict->peer_rank == waiting->from)))
            return true;
    }
    return false;
}

static void judge_waiting(struct judge *judge, size_t kind, const int64_t *usual, const struct waiting *waiting)
{
    struct job *job = judge->job;
    const struct step *step = &job->steps.items[waiting->step];
    struct holding holding = find_held(judge, kind, usual, waiting);
    uint64_t length_ns = step->end_ns - step->start_ns;
    struct evidence_span span = {waiting->from, waiting->to, step->start_ns, step->end_ns};
    uint64_t waited_ns = evidence_count(job->evidence, kind, &span, NULL);
    uint64_t held_ns = holding.held_ns < waited_ns ? holding.held_ns : waited_ns; /* operations run at the same time */

    held_ns = held_ns < length_ns ? held_ns : length_ns; /* so do the waits of several flows */
    if ((int64_t)held_ns <= judge->share_ns || is_called_slow(job, waiting))
        return;
    struct verdict *verdict = array_add(&job->verdicts);
    verdict->class = VERDICT_NETWORK_LOSSY;
    verdict->step = waiting->step;
    verdict->rank = waiting->from;
    verdict->peer_rank = waiting->to;
    verdict->operation = holding.operation;
    verdict->size_ns = held_ns;
    verdict->confidence = judge_confidence(judge, (int64_t)held_ns, judge->share_ns, holding.operation);
    judge_say(
        verdict,
        "rank %d waited %.1f ms for acknowledgements by rank %d before it sent again, and operations took that much "
        "longer, in the step's %.1f ms: frames to it, or its answers, were lost on the way",
        waiting->from, judge_ms((int64_t)held_ns), waiting->to, judge_ms((int64_t)length_ns));
}

void judge_gaps(struct judge *judge)
{
    size_t kind = evidence_timeout_kind();
    waiting_list list = {0};

    if (judge->job->evidence == NULL)
        return;
    list_waiting(judge->job, kind, &list);
    int64_t *usual = usual_durations(judge->job, &list);
    for (size_t i = 0; i < list.count; i++)
        if (i == 0 || by_step_and_link(&list.items[i - 1], &list.items[i]) != 0)
            judge_waiting(judge, kind, usual, &list.items[i]);
    free(usual);
    array_fini(&list);
}
