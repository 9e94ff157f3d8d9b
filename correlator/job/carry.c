/* SPDX-License-Identifier: BSD-2-Clause */
/* Carrying. Invariant: nobody adds more by it, and nobody adds less than what its step so far exceeds the others' by.
 */
#include "correlator/job/carry.h"

#include <stdlib.h>

#define USUAL_PER_MILLE 100 /* as of GPUs' waits */
#define CARRIED_PART    2   /* what a rank carried is more than such a part of what it seems to have added */

struct lap { /* from the begin of a rank's own step to its first data in an operation */
    uint64_t place;
    size_t index; /* of the rank operation */
    int64_t ns;
};
typedef ARRAY(struct lap) lap_list;

struct runner { /* a rank in the step that it is in */
    int32_t step;
    uint64_t begun_ns; /* 0: in none */
};

static size_t ranks_of(const struct job *job)
{
    int32_t last = -1;

    for (size_t i = 0; i < job->rank_operations.count; i++)
        last = job->rank_operations.items[i].rank > last ? job->rank_operations.items[i].rank : last;
    return (size_t)(last + 1);
}

/* It begins with the rank's first call of the step, not before what it did before was over. */
static void begin_step(struct runner *runner, const struct rank_operation *of, int32_t step)
{
    uint64_t enqueued_ns = of->record.enqueued_ns;

    if (runner->begun_ns == 0 || runner->step != step)
        *runner = (struct runner){step, enqueued_ns > of->before_ns ? enqueued_ns : of->before_ns};
}

static void list_laps(const struct job *job, const struct blame *blames, lap_list *laps)
{
    struct runner *runners = array_zeroed((ranks_of(job) + 1) * sizeof *runners);

    for (size_t i = 0; i < job->rank_operations.count; i++) {
        const struct rank_operation *of = &job->rank_operations.items[i];
        int32_t step = job->operations.items[of->operation].step;
        if (step < 0 || of->rank < 0)
            continue;
        begin_step(&runners[of->rank], of, step);
        uint64_t data_ns = of->record.gpu_ready_ns;
        if (blames[i].known && data_ns > runners[of->rank].begun_ns)
            *(struct lap *)array_add(laps) =
                (struct lap){blames[i].place, i, (int64_t)(data_ns - runners[of->rank].begun_ns)};
    }
    free(runners);
}

static int by_index(const void *a, const void *b)
{
    const struct lap *left = a, *right = b;

    return (left->index > right->index) - (left->index < right->index);
}

static int by_place(const void *a, const void *b)
{
    const struct lap *left = a, *right = b;

    if (left->place != right->place)
        return left->place < right->place ? -1 : 1;
    return by_index(a, b);
}

/* Laps of one operation lie together: by how much each exceeds the shortest one of the others. */
static void exceed_others(const struct job *job, const struct lap *laps, size_t count, int64_t *most)
{
    for (size_t from = 0, to; from < count; from = to) {
        int64_t least = INT64_MAX, second = INT64_MAX;
        int32_t operation = job->rank_operations.items[laps[from].index].operation;
        for (to = from; to < count && job->rank_operations.items[laps[to].index].operation == operation; to++) {
            second = laps[to].ns < least ? least : laps[to].ns < second ? laps[to].ns : second;
            least = laps[to].ns < least ? laps[to].ns : least;
        }
        for (size_t i = from; i < to; i++) {
            int64_t other = laps[i].ns == least ? second : least;
            most[laps[i].index] = other == INT64_MAX ? INT64_MAX : laps[i].ns - other;
        }
    }
}

/* The same beside what is usual at their place. */
static void exceed_usual(const struct lap *laps, size_t count, int64_t *most)
{
    int64_t *values = array_zeroed((count + 1) * sizeof *values);

    for (size_t from = 0, to; from < count; from = to) {
        size_t known = 0;
        for (to = from; to < count && laps[to].place == laps[from].place; to++)
            values[known++] = laps[to].ns;
        int64_t usual = array_select(values, known, USUAL_PER_MILLE);
        for (size_t i = from; i < to; i++)
            if (laps[i].ns - usual > most[laps[i].index])
                most[laps[i].index] = laps[i].ns - usual;
    }
    free(values);
}

static void bound(struct blame *blame, int64_t most_ns)
{
    int64_t *own_ns = &blame->own_ns[BLAME_GPU], *hidden_ns = &blame->hidden_ns[BLAME_GPU];

    blame->longer_ns = most_ns;
    if (most_ns >= *own_ns / CARRIED_PART) /* the usual differs by as much between ranks */
        return;
    *own_ns = most_ns;
    if (*hidden_ns > most_ns - *own_ns)
        *hidden_ns = most_ns - *own_ns;
}

void carry_leave_out(const struct job *job, struct blame *blames)
{
    int64_t *most = array_zeroed((job->rank_operations.count + 1) * sizeof *most);
    lap_list laps = {0};

    list_laps(job, blames, &laps);
    exceed_others(job, laps.items, laps.count, most);
    array_sort(&laps, by_place);
    exceed_usual(laps.items, laps.count, most);
    for (size_t i = 0; i < laps.count; i++)
        bound(&blames[laps.items[i].index], most[laps.items[i].index]);
    array_fini(&laps);
    free(most);
}
