/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Blame. Invariant: what a rank added itself is never more than its lateness, nor more than its wait exceeds the usual
 * wait at that place of the step; usual is the lower median over ranks and steps, which one late rank among several
 * does not move.
 */
#include "correlator/job/blame.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "correlator/hash.h"
#include "correlator/job/carry.h"
#include "correlator/job/own_usual.h"
#include "correlator/job/plateau.h"
#include "correlator/node/arrival.h"

#define OPEN_STEP_NS   50000000 /* in longer steps what a broadcast lets ranks be apart is nothing */
#define LEFT_OUT_RANKS 16
#define ALIKE_RANKS    3 /* fewer do not tell what all have in common */

struct place { /* the n-th operation of its kind on its communicator within a step */
    uint64_t key;
    size_t rank_operation;
};
typedef ARRAY(struct place) place_list;

/* Groups of sends and receives are alike between the same ranks only. */
static uint64_t kind_key(const struct job *job, const struct operation *operation)
{
    uint64_t hash = hash_mix(HASH_START, operation->communicator, IDENTITY_BYTES);

    for (size_t i = 0; operation->kind == OPERATION_GROUP && i < operation->ranks; i++) {
        int32_t rank = job->rank_operations.items[operation->first_rank + i].record.rank;
        hash = hash_mix(hash, &rank, sizeof rank);
    }

    hash = hash_mix(hash, &operation->kind, sizeof operation->kind);
    return hash_mix(hash, &operation->buffer_bytes, sizeof operation->buffer_bytes);
}

/* Counts operations of equal kind within the step that they follow each other in. */
static uint64_t place_key(const struct job *job, size_t index)
{
    const struct operation *operation = &job->operations.items[index];
    uint64_t key = kind_key(job, operation);
    uint32_t before = 0;

    for (size_t i = index; i-- > 0 && index - i < 4096;) {
        const struct operation *other = &job->operations.items[i];
        if (other->step >= 0 && other->step < operation->step)
            break;
        before += other->step == operation->step && kind_key(job, other) == key;
    }
    return hash_mix(key, &before, sizeof before);
}

static int by_key(const void *a, const void *b)
{
    const struct place *left = a;
    const struct place *right = b;

    return (left->key > right->key) - (left->key < right->key);
}

static void list_places(const struct job *job, place_list *places)
{
    for (size_t i = 0; i < job->operations.count; i++) {
        const struct operation *operation = &job->operations.items[i];
        if (operation->step < 0)
            continue;
        uint64_t key = place_key(job, i);
        for (size_t j = 0; j < operation->ranks; j++) {
            uint64_t role = job->rank_operations.items[operation->first_rank + j].role;
            bool is_own = operation->kind == OPERATION_GROUP && role != 0; /* its ranks are not at the same work */
            *(struct place *)array_add(places) =
                (struct place){.key = is_own ? role : key, .rank_operation = operation->first_rank + j};
        }
    }
    array_sort(places, by_key);
}

/*
 * A GPU that kept its data back longer than a turn-around, most of the time with credit, was not ready before either:
 * how long it took does not depend on when the peer gave credit.
 */
static void measure_gpu(const struct rank_operation *of, struct blame *blame)
{
    bool latest = (of->record.flags & RANK_OPERATION_GPU_READY_LATEST) != 0;

    if (arrival_passes_on(&of->record) && of->record.held_ns == 0) { /* it may have waited for a neighbour's */
        blame->hidden_ns[BLAME_GPU] += blame->wait_ns[BLAME_GPU];
        blame->wait_ns[BLAME_GPU] = 0;
    }
    blame->took_ns[BLAME_GPU] = blame->wait_ns[BLAME_GPU];
    if (latest || blame->hidden_ns[BLAME_GPU] > blame->wait_ns[BLAME_GPU])
        return;
    blame->took_ns[BLAME_GPU] += blame->hidden_ns[BLAME_GPU];
    blame->hidden_ns[BLAME_GPU] = 0;
}

/* Steps that are no training steps are unlike the others: they neither tell what is usual nor is anybody blamed in
 * them. */
static bool is_training(const struct job *job, const struct rank_operation *of)
{
    int32_t step = job->operations.items[of->operation].step;

    return step >= 0 && job->steps.items[step].kind == STEP_TRAINING;
}

/* Behind an operation whose end nobody sees its host may have waited for that, and so for others. */
static void hide_unseen(const struct rank_operation *of, struct blame *blame)
{
    int64_t until_ns = (int64_t)(of->unseen_ns > of->before_ns ? of->unseen_ns : of->before_ns);

    if (of->unseen_ns == 0 || until_ns >= blame->ready_ns)
        return;
    blame->hidden_ns[BLAME_HOST] = blame->ready_ns - until_ns;
    blame->wait_ns[BLAME_HOST] -= blame->hidden_ns[BLAME_HOST];
}

static void measure(const struct job *job, const struct rank_operation *of, struct blame *blame)
{
    const struct record_rank_operation *record = &of->record;
    uint64_t ready = record->host_ready_ns != 0 ? record->host_ready_ns : record->enqueued_ns;

    if (ready < of->before_ns)
        ready = of->before_ns;
    if (ready > of->arrival_ns && of->arrival_ns != 0)
        ready = of->arrival_ns;
    blame->known = of->late_known && of->before_ns != 0 && is_training(job, of);
    blame->ready_ns = (int64_t)ready;
    blame->wait_ns[BLAME_HOST] = (int64_t)(ready - of->before_ns);
    uint64_t free_ns = record->enqueued_ns > of->before_ns ? record->enqueued_ns : of->before_ns;
    uint64_t held_ns = record->held_ns > free_ns ? record->held_ns : free_ns;
    if (record->host_ready_ns > held_ns) /* until its proxy had offered buffers, it cannot have sent for its GPU */
        held_ns = record->host_ready_ns;
    if (record->gpu_ready_ns > held_ns)
        blame->wait_ns[BLAME_GPU] = (int64_t)(record->gpu_ready_ns - held_ns);
    blame->hidden_ns[BLAME_GPU] = (int64_t)(held_ns - free_ns);
    hide_unseen(of, blame);
    blame->took_ns[BLAME_HOST] = blame->wait_ns[BLAME_HOST];
    measure_gpu(of, blame);
}

/*
 * Where what some ranks moved fits the operation and what others did does not, some of it is another operation's:
 * nothing is known of its times. Where it fits nowhere, ranks are still alike.
 */
static bool is_contradicted(const struct job *job, const struct operation *operation)
{
    uint16_t odd = RANK_OPERATION_INCOMPLETE | RANK_OPERATION_UNKNOWN_ALGORITHM | RANK_OPERATION_NO_WIRE;
    bool fits = false;

    for (size_t i = operation->first_rank; i < operation->first_rank + operation->ranks && !fits; i++)
        fits = (job->rank_operations.items[i].record.flags & odd) == 0;
    return fits && (operation->flags & RANK_OPERATION_UNKNOWN_ALGORITHM) != 0;
}

static void forget_contradicted(const struct job *job, struct blame *blames)
{
    for (size_t i = 0; i < job->operations.count; i++) {
        const struct operation *operation = &job->operations.items[i];
        bool contradicted = is_contradicted(job, operation);
        for (size_t j = operation->first_rank; j < operation->first_rank + operation->ranks && contradicted; j++)
            blames[j].known = false;
    }
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* How much later than the others (their lower median) each rank's host was ready in one operation. */
static void find_late_hosts(const struct operation *operation, struct blame *blames, int64_t *values)
{
    size_t count = 0;

    for (size_t i = 0; i < operation->ranks; i++)
        if (blames[i].ready_ns != 0)
            values[count++] = blames[i].ready_ns;
    struct array_middles middles = array_middles(values, count);
    for (size_t i = 0; i < operation->ranks; i++)
        if (blames[i].ready_ns != 0 && count > 1)
            blames[i].late_ns[BLAME_HOST] = blames[i].ready_ns - array_median_without(middles, blames[i].ready_ns);
}

/* Whose first data came no later than others' holds nobody up. */
static void limit_by_first_data(const struct operation *operation, const struct rank_operation *ranks,
                                struct blame *blames, int64_t *values)
{
    size_t count = 0;

    for (size_t i = 0; i < operation->ranks; i++)
        if (ranks[i].record.first_data_ns != 0)
            values[count++] = (int64_t)ranks[i].record.first_data_ns;
    struct array_middles middles = array_middles(values, count);
    for (size_t i = 0; i < operation->ranks; i++) {
        int64_t first = (int64_t)ranks[i].record.first_data_ns;
        if (blames[i].known && first != 0 && count > 1)
            blames[i].late_ns[BLAME_GPU] =
                smaller(blames[i].late_ns[BLAME_GPU], first - array_median_without(middles, first));
    }
}

/*
 * By how much each rank's GPU took longer than the others' (their lower median) in one operation, and by how much its
 * first data came after theirs, whichever is less. Of known ones only.
 */
static void find_late_gpus(const struct operation *operation, const struct rank_operation *ranks, struct blame *blames,
                           int64_t *values)
{
    size_t count = 0;

    for (size_t i = 0; i < operation->ranks; i++)
        if (blames[i].known)
            values[count++] = blames[i].took_ns[BLAME_GPU];
    struct array_middles middles = array_middles(values, count);
    for (size_t i = 0; i < operation->ranks; i++)
        if (blames[i].known)
            blames[i].late_ns[BLAME_GPU] =
                blames[i].took_ns[BLAME_GPU] - array_median_without(middles, blames[i].took_ns[BLAME_GPU]);
    limit_by_first_data(operation, ranks, blames, values);
}

static void find_late(const struct job *job, struct blame *blames)
{
    int64_t *values = array_zeroed(job->rank_operations.count * sizeof *values);

    for (size_t i = 0; i < job->operations.count; i++) {
        const struct operation *operation = &job->operations.items[i];
        find_late_hosts(operation, &blames[operation->first_rank], values);
        find_late_gpus(operation, &job->rank_operations.items[operation->first_rank], &blames[operation->first_rank],
                       values);
    }
    free(values);
}

/* A host's wait behind what may have been over later than is seen: it is no longer than the step is for it. */
static bool is_open(const struct job *job, size_t rank_operation, enum blame_part part)
{
    return part == BLAME_HOST && job->rank_operations.items[rank_operation].before_open;
}

struct waits { /* at a place */
    int64_t *ns;
    int32_t *ranks;
    size_t count;
};

/* `certain`: only those of which no part may be hidden. */
static struct waits list_waits(const struct job *job, const struct blame *blames, const struct place *places,
                               size_t count, enum blame_part part, bool certain)
{
    struct waits waits = {array_zeroed(count * sizeof *waits.ns), array_zeroed(count * sizeof *waits.ranks), 0};

    for (size_t i = 0; i < count; i++) {
        const struct blame *blame = &blames[places[i].rank_operation];
        if (!blame->known || is_open(job, places[i].rank_operation, part) || (certain && blame->hidden_ns[part] > 0))
            continue;
        waits.ns[waits.count] = blame->took_ns[part];
        waits.ranks[waits.count++] = job->rank_operations.items[places[i].rank_operation].rank;
    }
    return waits;
}

static void waits_fini(struct waits *waits)
{
    free(waits->ns);
    free(waits->ranks);
}

static unsigned usual_per_mille(enum blame_part part)
{
    return part == BLAME_GPU ? 100 : 500;
}

/* The rank's own, sorted; returns how many. */
static size_t own_waits(const struct waits *waits, int32_t rank, int64_t *own)
{
    size_t count = 0;

    for (size_t i = 0; i < waits->count; i++)
        if (waits->ranks[i] == rank)
            own[count++] = waits->ns[i];
    array_sort_values(own, count);
    return count;
}

struct place_waits { /* of one part */
    struct waits all;
    struct waits certain;
    int64_t *sorted[2]; /* of both */
    int64_t *own[2];    /* room */
    unsigned per_mille;
};

static int64_t *sorted_copy(const struct waits *waits)
{
    int64_t *sorted = array_zeroed((waits->count + 1) * sizeof *sorted);

    memcpy(sorted, waits->ns, waits->count * sizeof *sorted);
    array_sort_values(sorted, waits->count);
    return sorted;
}

static void sort_waits(struct place_waits *waits)
{
    if (waits->sorted[0] != NULL)
        return;
    waits->sorted[0] = sorted_copy(&waits->all);
    waits->sorted[1] = sorted_copy(&waits->certain);
    waits->own[0] = array_zeroed((waits->all.count + 1) * sizeof *waits->own[0]);
    waits->own[1] = array_zeroed((waits->all.count + 1) * sizeof *waits->own[1]);
}

/*
 * What is usual for one rank: a quantile of the other ranks' waits, so that a late rank is not measured against itself.
 * Waits that may have been longer than was seen count only where most are such.
 */
static int64_t usual_without(struct place_waits *waits, int32_t rank)
{
    sort_waits(waits);
    size_t own_all = own_waits(&waits->all, rank, waits->own[0]);
    size_t own_certain = own_waits(&waits->certain, rank, waits->own[1]);
    bool uses_all = waits->certain.count - own_certain < (waits->all.count - own_all) / 2;

    return uses_all
               ? array_quantile_without(waits->sorted[0], waits->all.count, waits->own[0], own_all, waits->per_mille)
               : array_quantile_without(waits->sorted[1], waits->certain.count, waits->own[1], own_certain,
                                        waits->per_mille);
}

/* Where there are many ranks one of them does not matter: nobody is left out. */
static int64_t usual_of_all(const struct place_waits *waits)
{
    const struct waits *used = waits->certain.count < waits->all.count / 2 ? &waits->all : &waits->certain;
    int64_t *values = array_zeroed((used->count + 1) * sizeof *values);

    memcpy(values, used->ns, used->count * sizeof *values);
    int64_t usual = array_select(values, used->count, waits->per_mille);
    free(values);
    return usual;
}

struct usual_waits {
    int64_t ranks[LEFT_OUT_RANKS]; /* by rank, of those that are left out in turn */
    int64_t all;
};

/* False where nobody but the rank is ever at this place, so that only its own past tells what is usual. */
static bool has_others(const struct job *job, const struct blame *blames, const struct place *places, size_t count,
                       int32_t rank)
{
    for (size_t i = 0; i < count; i++)
        if (blames[places[i].rank_operation].known && job->rank_operations.items[places[i].rank_operation].rank != rank)
            return true;
    return false;
}

static struct usual_waits usual_waits(const struct job *job, const struct blame *blames, const struct place *places,
                                      size_t count, enum blame_part part)
{
    struct place_waits waits = {.all = list_waits(job, blames, places, count, part, false),
                                .certain = list_waits(job, blames, places, count, part, true),
                                .per_mille = usual_per_mille(part)};
    struct usual_waits usual = {.all = usual_of_all(&waits)};
    bool done[LEFT_OUT_RANKS] = {false};

    for (size_t i = 0; i < count; i++) {
        int32_t rank = job->rank_operations.items[places[i].rank_operation].rank;
        if (rank < 0 || rank >= LEFT_OUT_RANKS || done[rank])
            continue;
        usual.ranks[rank] = has_others(job, blames, places, count, rank) ? usual_without(&waits, rank) : usual.all;
        done[rank] = true;
    }
    waits_fini(&waits.all);
    waits_fini(&waits.certain);
    for (unsigned i = 0; i < 2; i++) {
        free(waits.sorted[i]);
        free(waits.own[i]);
    }
    return usual;
}

/*
 * In a group of few of a communicator's ranks each has a part of its own, as the stages of a pipeline have: there a
 * rank is measured by itself in other steps.
 */
static bool has_parts(const struct job *job, size_t rank_operation)
{
    const struct operation *operation = &job->operations.items[job->rank_operations.items[rank_operation].operation];

    return operation->kind == OPERATION_GROUP &&
           (operation->ranks != (size_t)operation->ranks_count || operation->ranks < 3);
}

struct lengths { /* of training steps that nothing holds back: a quarter of them, or a level; and what chance adds */
    int64_t usual_ns;
    int64_t limit_ns;
};

static struct lengths quiet_lengths(const struct job *job)
{
    int64_t *values = array_zeroed((job->steps.count + 1) * sizeof *values);
    size_t count = 0;

    for (size_t i = 0; i < job->steps.count; i++)
        if (job->steps.items[i].kind == STEP_TRAINING && !job->steps.items[i].fresh)
            values[count++] = (int64_t)job->steps.items[i].duration_ns;
    size_t kept = plateau_keep(values, count);
    int64_t least = array_quantile(values, kept, 50);
    struct lengths lengths = {.usual_ns = array_quantile(values, kept, 250)};
    lengths.limit_ns = lengths.usual_ns + 2 * (lengths.usual_ns - least);
    if (kept < count) /* nothing holds back any of a level's */
        lengths.limit_ns = larger(lengths.limit_ns, array_quantile(values, kept, 900));
    free(values);
    return lengths;
}

/* Of a rank operation's step, or the next one, where some of its end is seen only then. */
static int64_t length_of(const struct job *job, const struct rank_operation *of)
{
    size_t step = (size_t)job->operations.items[of->operation].step;
    const struct step *next = step + 1 < job->steps.count ? &job->steps.items[step + 1] : NULL;
    int64_t length = (int64_t)job->steps.items[step].duration_ns;

    if (next != NULL && next->kind == STEP_TRAINING && (int64_t)next->duration_ns > length)
        length = (int64_t)next->duration_ns;
    return length;
}

/* By how much the step of a rank operation is longer than is usual; 0 up to a limit. */
static int64_t longer_of(const struct job *job, size_t index, const struct lengths *lengths, int64_t limit_ns)
{
    int64_t length = length_of(job, &job->rank_operations.items[index]);

    return length > limit_ns ? length - lengths->usual_ns : 0;
}

/* What is usual of each rank at a place, by rank. */
static void own_usuals(own_usual_list *usuals, const struct job *job, const struct blame *blames,
                       const struct place *places, size_t count, enum blame_part part, const struct lengths *lengths)
{
    own_wait_list waits = {0};

    for (size_t i = 0; i < count; i++) {
        const struct rank_operation *of = &job->rank_operations.items[places[i].rank_operation];
        const struct blame *blame = &blames[places[i].rank_operation];
        if (blame->known)
            *(struct own_wait *)array_add(&waits) =
                (struct own_wait){of->rank, length_of(job, of) <= lengths->limit_ns, blame->took_ns[part]};
    }
    own_usual_find(usuals, &waits);
    array_fini(&waits);
}

/*
 * One part at one place whose ranks are measured each by itself. What changes in most steps changes what is usual: a
 * rank adds nothing to a step that is not longer for it, and no more than that.
 */
static void share_out_parts(const struct job *job, struct blame *blames, const struct place *places, size_t count,
                            enum blame_part part, const struct lengths *lengths)
{
    int64_t *values = array_zeroed(count * sizeof *values);
    own_usual_list usuals = {0};
    size_t known = 0;

    own_usuals(&usuals, job, blames, places, count, part, lengths);
    for (size_t i = 0; i < count; i++) {
        size_t index = places[i].rank_operation;
        const struct rank_operation *of = &job->rank_operations.items[index];
        struct blame *blame = &blames[index];
        if (!blame->known)
            continue;
        int64_t longer = longer_of(job, index, lengths, lengths->limit_ns);
        blame->place = places[i].key;
        blame->own_ns[part] = smaller(blame->took_ns[part] - own_usual_of(&usuals, of->rank), longer);
        blame->late_ns[part] = blame->own_ns[part];
        values[known++] = blame->own_ns[part];
    }
    int64_t spread = array_spread(values, known);
    for (size_t i = 0; i < count; i++)
        blames[places[i].rank_operation].spread_ns[part] = spread;
    array_fini(&usuals);
    free(values);
}

/* One part at one place. */
static void share_out(const struct job *job, struct blame *blames, const struct place *places, size_t count,
                      enum blame_part part, const struct lengths *lengths)
{
    int64_t *values = array_zeroed(count * sizeof *values);
    struct usual_waits usual = usual_waits(job, blames, places, count, part);
    size_t known = 0;

    for (size_t i = 0; i < count; i++) {
        size_t index = places[i].rank_operation;
        struct blame *blame = &blames[index];
        if (!blame->known)
            continue;
        int32_t rank = job->rank_operations.items[index].rank;
        bool left_out = rank >= 0 && rank < LEFT_OUT_RANKS;
        int64_t usual_ns = left_out ? usual.ranks[rank] : usual.all;
        if (!is_open(job, index, part))
            values[known++] = blame->took_ns[part];
        blame->place = places[i].key;
        blame->own_ns[part] = blame->took_ns[part] - usual_ns;
        if (is_open(job, index, part) && lengths->usual_ns < OPEN_STEP_NS)
            blame->own_ns[part] = smaller(blame->own_ns[part], longer_of(job, index, lengths, lengths->usual_ns));
        blame->late_ns[part] = smaller(job->rank_operations.items[index].late_ns, blame->late_ns[part]);
    }
    int64_t spread = array_spread(values, known);
    for (size_t i = 0; i < count; i++)
        blames[places[i].rank_operation].spread_ns[part] = spread;
    free(values);
}

struct growth { /* of what a rank's GPU took in a step, where it is measured by itself */
    int32_t step;
    int32_t rank;
    int64_t took_ns;
    int64_t usual_ns;
};
typedef ARRAY(struct growth) growth_list;

static int by_step_and_rank(const void *a, const void *b)
{
    const struct growth *left = a;
    const struct growth *right = b;

    if (left->step != right->step)
        return left->step < right->step ? -1 : 1;
    return (left->rank > right->rank) - (left->rank < right->rank);
}

static bool is_by_itself(const struct job *job, const struct blame *blames, size_t index)
{
    return blames[index].known && has_parts(job, index);
}

static void list_growths(const struct job *job, const struct blame *blames, growth_list *list)
{
    size_t kept = 0;

    for (size_t i = 0; i < job->rank_operations.count; i++) {
        int64_t took_ns = blames[i].took_ns[BLAME_GPU];
        if (is_by_itself(job, blames, i))
            *(struct growth *)array_add(list) =
                (struct growth){job->operations.items[job->rank_operations.items[i].operation].step,
                                job->rank_operations.items[i].rank, took_ns, took_ns - blames[i].own_ns[BLAME_GPU]};
    }
    array_sort(list, by_step_and_rank);
    for (size_t i = 0; i < list->count; i++) {
        struct growth *last = kept == 0 ? NULL : &list->items[kept - 1];
        if (last != NULL && by_step_and_rank(last, &list->items[i]) == 0) {
            last->took_ns += list->items[i].took_ns;
            last->usual_ns += list->items[i].usual_ns;
        } else {
            list->items[kept++] = list->items[i];
        }
    }
    list->count = kept;
}

/* By so many thousandths a step's ranks took longer than usual: their lower median, of three or more. */
static int64_t common_growth(const struct growth *growths, size_t count)
{
    int64_t *permille = array_zeroed((count + 1) * sizeof *permille);
    size_t known = 0;

    for (size_t i = 0; i < count; i++)
        if (growths[i].usual_ns > 0)
            permille[known++] = (int64_t)((double)growths[i].took_ns * 1000 / (double)growths[i].usual_ns) - 1000;
    int64_t median = known < ALIKE_RANKS ? 0 : array_select(permille, known, 500);
    free(permille);
    return median > 0 ? median : 0;
}

/* What all ranks of a step take longer alike is nobody's own, also where each is measured by itself. */
static void leave_out_common(const struct job *job, struct blame *blames)
{
    int64_t *common = array_zeroed((job->steps.count + 1) * sizeof *common);
    growth_list growths = {0};

    list_growths(job, blames, &growths);
    for (size_t from = 0, to; from < growths.count; from = to) {
        for (to = from; to < growths.count && growths.items[to].step == growths.items[from].step;)
            to++;
        common[growths.items[from].step] = common_growth(&growths.items[from], to - from);
    }
    for (size_t i = 0; i < job->rank_operations.count; i++) {
        if (!is_by_itself(job, blames, i))
            continue;
        int64_t usual_ns = blames[i].took_ns[BLAME_GPU] - blames[i].own_ns[BLAME_GPU];
        int64_t permille = common[job->operations.items[job->rank_operations.items[i].operation].step];
        int64_t alike_ns = (int64_t)((double)usual_ns * (double)permille / 1000);
        blames[i].own_ns[BLAME_GPU] -= alike_ns;
        blames[i].late_ns[BLAME_GPU] -= alike_ns;
    }
    array_fini(&growths);
    free(common);
}

/* One part of one operation: what its ranks took longer alike, their lower median, of three or more. */
static void leave_out_alike(const struct operation *operation, struct blame *blames, enum blame_part part,
                            int64_t *values)
{
    size_t known = 0;

    for (size_t i = 0; i < operation->ranks; i++)
        if (blames[i].known)
            values[known++] = blames[i].own_ns[part];
    int64_t alike_ns = known < ALIKE_RANKS ? 0 : array_select(values, known, 500);
    for (size_t i = 0; i < operation->ranks && alike_ns > 0; i++)
        if (blames[i].known)
            blames[i].own_ns[part] -= alike_ns;
}

/* What all ranks of an operation take longer alike is no rank's own, nor what its waits vary by. */
static void leave_out_all_alike(const struct job *job, struct blame *blames)
{
    int64_t *values = array_zeroed((job->rank_operations.count + 1) * sizeof *values);

    for (size_t i = 0; i < job->operations.count; i++) {
        const struct operation *operation = &job->operations.items[i];
        if (operation->ranks == 0 || has_parts(job, operation->first_rank))
            continue;
        for (enum blame_part part = BLAME_HOST; part < BLAME_PARTS; part++)
            leave_out_alike(operation, &blames[operation->first_rank], part, values);
    }
    free(values);
}

struct blame *blame_ranks(const struct job *job)
{
    struct blame *blames = array_zeroed(job->rank_operations.count * sizeof *blames);
    struct lengths lengths = quiet_lengths(job);
    place_list places = {0};

    list_places(job, &places);
    for (size_t i = 0; i < places.count; i++)
        measure(job, &job->rank_operations.items[places.items[i].rank_operation],
                &blames[places.items[i].rank_operation]);
    forget_contradicted(job, blames);
    find_late(job, blames);
    for (size_t from = 0, to; from < places.count; from = to) {
        for (to = from; to < places.count && places.items[to].key == places.items[from].key;)
            to++;
        bool parts = has_parts(job, places.items[from].rank_operation);
        for (enum blame_part part = BLAME_HOST; part < BLAME_PARTS; part++)
            (parts ? share_out_parts : share_out)(job, blames, &places.items[from], to - from, part, &lengths);
    }
    array_fini(&places);
    leave_out_common(job, blames);
    leave_out_all_alike(job, blames);
    carry_leave_out(job, blames);
    return blames;
}
