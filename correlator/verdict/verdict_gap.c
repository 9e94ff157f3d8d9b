/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Steps that waited for frames which were lost. A sender that gets no acknowledgement waits for its time-out before it
 * sends again; meanwhile nobody's message is under way, so no link looks slow. Invariant: one verdict at most a step
 * and link, and none where the link is called slow already.
 */
#include "correlator/verdict/evidence.h"
#include "correlator/verdict/verdict_private.h"

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

/* The operation of the step during which most of it was waited; -1: none. */
static int32_t operation_of(const struct job *job, size_t kind, const struct waiting *waiting)
{
    uint64_t most = 0;
    int32_t found = -1;

    for (size_t i = 0; i < job->operations.count; i++) {
        const struct operation *operation = &job->operations.items[i];
        struct evidence_span span = {waiting->from, waiting->to, operation->start_ns, operation->end_ns};
        if (operation->step != waiting->step || span.to_ns <= span.from_ns)
            continue;
        uint64_t amount = evidence_count(job->evidence, kind, &span, NULL);
        if (amount > most || found < 0)
            found = (int32_t)i;
        most = amount > most ? amount : most;
    }
    return found;
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

static void judge_waiting(struct judge *judge, size_t kind, const struct waiting *waiting)
{
    struct job *job = judge->job;
    const struct step *step = &job->steps.items[waiting->step];
    struct evidence_span span = {waiting->from, waiting->to, step->start_ns, step->end_ns};
    uint64_t waited_ns = evidence_count(job->evidence, kind, &span, NULL);
    uint64_t length_ns = step->end_ns - step->start_ns;

    waited_ns = waited_ns < length_ns ? waited_ns : length_ns; /* of several flows it may be the same time */
    if ((int64_t)waited_ns <= judge->share_ns || is_called_slow(job, waiting))
        return;
    int32_t operation = operation_of(job, kind, waiting);
    if (operation < 0)
        return;
    struct verdict *verdict = array_add(&job->verdicts);
    verdict->class = VERDICT_NETWORK_LOSSY;
    verdict->step = waiting->step;
    verdict->rank = waiting->from;
    verdict->peer_rank = waiting->to;
    verdict->operation = operation;
    verdict->size_ns = waited_ns;
    verdict->confidence = judge_confidence(judge, (int64_t)waited_ns, judge->share_ns, operation);
    judge_say(
        verdict,
        "rank %d waited %.1f ms of the step's %.1f ms for acknowledgements by rank %d before it sent again: frames "
        "to it, or its answers, were lost on the way",
        waiting->from, judge_ms((int64_t)waited_ns), judge_ms((int64_t)length_ns), waiting->to);
}

void judge_gaps(struct judge *judge)
{
    size_t kind = evidence_timeout_kind();
    waiting_list list = {0};

    if (judge->job->evidence == NULL)
        return;
    list_waiting(judge->job, kind, &list);
    for (size_t i = 0; i < list.count; i++)
        if (i == 0 || by_step_and_link(&list.items[i - 1], &list.items[i]) != 0)
            judge_waiting(judge, kind, &list.items[i]);
    array_fini(&list);
}
