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

#define LEFT_OUT_RANKS 16
#define ACTIVE_MAX_NS  (1ULL << 50) /* thirteen days: beyond, it is damage */

struct place { /* the n-th operation of its kind on its communicator within a step */
    uint64_t key;
    size_t rank_operation;
};
typedef ARRAY(struct place) place_list;

static uint64_t kind_key(const struct operation *operation)
{
    uint64_t hash = hash_mix(HASH_START, operation->communicator, IDENTITY_BYTES);

    hash = hash_mix(hash, &operation->kind, sizeof operation->kind);
    return hash_mix(hash, &operation->buffer_bytes, sizeof operation->buffer_bytes);
}

/* Counts operations of equal kind within the step that they follow each other in. */
static uint64_t place_key(const struct job *job, size_t index)
{
    const struct operation *operation = &job->operations.items[index];
    uint64_t key = kind_key(operation);
    uint32_t before = 0;

    for (size_t i = index; i-- > 0 && index - i < 4096;) {
        const struct operation *other = &job->operations.items[i];
        if (other->step >= 0 && other->step < operation->step)
            break;
        before += other->step == operation->step && kind_key(other) == key;
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
        for (size_t j = 0; j < operation->ranks; j++)
            *(struct place *)array_add(places) =
                (struct place){.key = key, .rank_operation = operation->first_rank + j};
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

    blame->took_ns[BLAME_GPU] = blame->wait_ns[BLAME_GPU];
    if (latest || blame->hidden_ns[BLAME_GPU] > blame->wait_ns[BLAME_GPU])
        return;
    blame->took_ns[BLAME_GPU] += blame->hidden_ns[BLAME_GPU];
    blame->hidden_ns[BLAME_GPU] = 0;
}

static void measure(const struct rank_operation *of, struct blame *blame)
{
    const struct record_rank_operation *record = &of->record;
    uint64_t ready = record->host_ready_ns != 0 ? record->host_ready_ns : record->enqueued_ns;

    if (ready < of->before_ns)
        ready = of->before_ns;
    if (ready > of->arrival_ns && of->arrival_ns != 0)
        ready = of->arrival_ns;
    blame->known = of->late_known && of->before_ns != 0;
    blame->ready_ns = (int64_t)ready;
    blame->wait_ns[BLAME_HOST] = (int64_t)(ready - of->before_ns);
    uint64_t free_ns = record->enqueued_ns > of->before_ns ? record->enqueued_ns : of->before_ns;
    uint64_t held_ns = record->held_ns > free_ns ? record->held_ns : free_ns;
    if (record->host_ready_ns > held_ns) /* until its proxy had offered buffers, it cannot have sent for its GPU */
        held_ns = record->host_ready_ns;
    if (record->gpu_ready_ns > held_ns)
        blame->wait_ns[BLAME_GPU] = (int64_t)(record->gpu_ready_ns - held_ns);
    blame->hidden_ns[BLAME_GPU] = (int64_t)(held_ns - free_ns);
    blame->took_ns[BLAME_HOST] = blame->wait_ns[BLAME_HOST];
    measure_gpu(of, blame);
}

/* How much later than the others (their lower median) the rank's host was ready. */
static int64_t host_late(const struct job *job, const struct blame *blames, size_t index)
{
    const struct operation *operation = &job->operations.items[job->rank_operations.items[index].operation];
    int64_t *others = array_zeroed(operation->ranks * sizeof *others);
    size_t count = 0;

    for (size_t i = operation->first_rank; i < operation->first_rank + operation->ranks; i++)
        if (i != index && blames[i].ready_ns != 0)
            others[count++] = blames[i].ready_ns;
    int64_t late = count == 0 ? 0 : blames[index].ready_ns - array_median(others, count);
    free(others);
    return late;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/*
 * By how much the rank's GPU took longer than the others' (their lower median) in this very operation, and by how much
 * its first data came after theirs, whichever is less: who sends no later than others holds nobody up.
 */
static int64_t gpu_late(const struct job *job, const struct blame *blames, size_t index)
{
    const struct operation *operation = &job->operations.items[job->rank_operations.items[index].operation];
    const struct record_rank_operation *own = &job->rank_operations.items[index].record;
    int64_t *took = array_zeroed(operation->ranks * sizeof *took);
    int64_t *first = array_zeroed(operation->ranks * sizeof *first);
    size_t took_count = 0, first_count = 0;

    for (size_t i = operation->first_rank; i < operation->first_rank + operation->ranks; i++) {
        uint64_t first_data_ns = job->rank_operations.items[i].record.first_data_ns;
        if (i != index && blames[i].known)
            took[took_count++] = blames[i].took_ns[BLAME_GPU];
        if (i != index && first_data_ns != 0)
            first[first_count++] = (int64_t)first_data_ns;
    }
    int64_t late = blames[index].took_ns[BLAME_GPU] - array_median(took, took_count);
    if (own->first_data_ns != 0 && first_count > 0)
        late = smaller(late, (int64_t)own->first_data_ns - array_median(first, first_count));
    free(took);
    free(first);
    return late;
}

/*
 * What is usual for one rank: a quantile of the other ranks' waits, so that a late rank is not measured against itself.
 * Where there are many ranks one of them does not matter, and `rank` is -1: nobody is left out.
 */
static int64_t usual_wait(const struct job *job, const struct blame *blames, const struct place *places, size_t count,
                          enum blame_part part, int32_t rank)
{
    int64_t *values = array_zeroed(count * sizeof *values);
    size_t known = 0;

    for (size_t i = 0; i < count; i++) {
        size_t index = places[i].rank_operation;
        if (blames[index].known && (rank < 0 || job->rank_operations.items[index].rank != rank))
            values[known++] = blames[index].took_ns[part];
    }
    int64_t usual = array_quantile(values, known, part == BLAME_GPU ? 100 : 500);
    free(values);
    return usual;
}

struct usual_waits {
    int64_t ranks[LEFT_OUT_RANKS]; /* by rank, of those that are left out in turn */
    int64_t all;
};

static struct usual_waits usual_waits(const struct job *job, const struct blame *blames, const struct place *places,
                                      size_t count, enum blame_part part)
{
    struct usual_waits usual = {.all = usual_wait(job, blames, places, count, part, -1)};
    bool done[LEFT_OUT_RANKS] = {false};

    for (size_t i = 0; i < count; i++) {
        int32_t rank = job->rank_operations.items[places[i].rank_operation].rank;
        if (rank < 0 || rank >= LEFT_OUT_RANKS || done[rank])
            continue;
        usual.ranks[rank] = usual_wait(job, blames, places, count, part, rank);
        done[rank] = true;
    }
    return usual;
}

/* One part at one place. */
static void share_out(const struct job *job, struct blame *blames, const struct place *places, size_t count,
                      enum blame_part part)
{
    int64_t *values = array_zeroed(count * sizeof *values);
    struct usual_waits usual = usual_waits(job, blames, places, count, part);
    size_t known = 0;

    for (size_t i = 0; i < count; i++) {
        size_t index = places[i].rank_operation;
        struct blame *blame = &blames[index];
        if (!blame->known)
            continue;
        values[known++] = blame->took_ns[part];
        blame->place = places[i].key;
        int32_t rank = job->rank_operations.items[index].rank;
        bool left_out = rank >= 0 && rank < LEFT_OUT_RANKS;
        blame->own_ns[part] = blame->took_ns[part] - (left_out ? usual.ranks[rank] : usual.all);
        blame->late_ns[part] =
            smaller(job->rank_operations.items[index].late_ns,
                    part == BLAME_HOST ? host_late(job, blames, index) : gpu_late(job, blames, index));
    }
    int64_t spread = array_spread(values, known);
    for (size_t i = 0; i < count; i++)
        blames[places[i].rank_operation].spread_ns[part] = spread;
    free(values);
}

struct blame *blame_ranks(const struct job *job)
{
    struct blame *blames = array_zeroed(job->rank_operations.count * sizeof *blames);
    place_list places = {0};

    list_places(job, &places);
    for (size_t i = 0; i < places.count; i++)
        measure(&job->rank_operations.items[places.items[i].rank_operation], &blames[places.items[i].rank_operation]);
    for (size_t from = 0, to; from < places.count; from = to) {
        for (to = from; to < places.count && places.items[to].key == places.items[from].key;)
            to++;
        for (enum blame_part part = BLAME_HOST; part < BLAME_PARTS; part++)
            share_out(job, blames, &places.items[from], to - from, part);
    }
    array_fini(&places);
    return blames;
}

static const struct rank_operation *rank_in(const struct job *job, const struct operation *operation, int32_t rank)
{
    for (size_t i = 0; i < operation->ranks; i++) {
        const struct rank_operation *of = &job->rank_operations.items[operation->first_rank + i];
        if (of->record.rank == rank)
            return of;
    }
    return NULL;
}

struct transfer { /* what one rank sent to one other in one operation */
    struct pair_time pair;
    int64_t pace; /* picoseconds a byte */
    int64_t transit_ns;
};
typedef ARRAY(struct transfer) transfer_list;

/* How long the last of what was sent was on the way, where both ends saw the same bytes. */
static void set_transit(struct transfer *transfer, const struct rank_operation *of,
                        const struct rank_operation *receiver)
{
    if (receiver->record.previous != of->record.rank || receiver->record.received_ns == 0 ||
        receiver->record.received_bytes != of->record.observed_bytes || of->record.last_data_ns == 0)
        return;
    transfer->transit_ns = (int64_t)(receiver->record.received_ns - of->record.last_data_ns);
    transfer->pair.transit_bound_ns = of->record.bound_ns + receiver->record.bound_ns;
}

static void add_transfer(const struct job *job, size_t index, const struct rank_operation *of, transfer_list *transfers)
{
    const struct operation *operation = &job->operations.items[index];
    const struct rank_operation *receiver = of->record.next < 0 ? NULL : rank_in(job, operation, of->record.next);
    uint64_t active = of->record.active_ns;
    bool at_receiver = receiver != NULL && receiver->record.previous == of->record.rank &&
                       receiver->record.receive_active_ns > 2 * active;

    if (at_receiver)
        active = receiver->record.receive_active_ns;
    if (receiver == NULL || of->rank < 0 || receiver->rank < 0 || active == 0 || active > ACTIVE_MAX_NS ||
        of->record.observed_bytes == 0 || (of->record.flags & RANK_OPERATION_INCOMPLETE) != 0)
        return;
    struct transfer *transfer = array_add(transfers);
    transfer->pair = (struct pair_time){
        .step = operation->step,
        .from = of->rank,
        .to = receiver->rank,
        .bytes = of->record.observed_bytes,
        .active_ns = active,
        .at_receiver = at_receiver,
        .operation = (int32_t)index,
        .from_ns = of->record.first_data_ns,
        .to_ns = at_receiver ? receiver->record.received_ns : of->record.last_data_ns,
    };
    memcpy(transfer->pair.device, at_receiver ? receiver->record.device : of->record.device, DEVICE_NAME_BYTES);
    transfer->pace = (int64_t)(active * 1000 / of->record.observed_bytes);
    set_transit(transfer, of, receiver);
}

static int by_pair(const void *a, const void *b)
{
    const struct pair_time *left = &((const struct transfer *)a)->pair;
    const struct pair_time *right = &((const struct transfer *)b)->pair;

    if (left->step != right->step)
        return left->step < right->step ? -1 : 1;
    if (left->from != right->from)
        return left->from < right->from ? -1 : 1;
    return (left->to > right->to) - (left->to < right->to);
}

static int64_t median_of(const struct transfer *transfers, size_t count, size_t member)
{
    int64_t *values = array_zeroed(count * sizeof *values);

    for (size_t i = 0; i < count; i++)
        memcpy(&values[i], (const char *)&transfers[i] + member, sizeof *values);
    int64_t median = array_median(values, count);
    free(values);
    return median;
}

#define MEDIAN_OF(transfers, count, member) median_of((transfers), (count), offsetof(struct transfer, member))

uint64_t blame_usual_ns(uint64_t bytes, uint64_t pace)
{
    double usual = (double)bytes * (double)pace / 1000;

    return usual < (double)ACTIVE_MAX_NS ? (uint64_t)usual : ACTIVE_MAX_NS;
}

/* Sums up the transfers of one pair in one step; place and port are those of the transfer that lost most. */
static void add_pair(pair_time_list *pairs, const struct transfer *transfers, size_t count, uint64_t pace)
{
    struct pair_time *pair = array_add(pairs);
    int64_t worst = INT64_MIN;

    for (size_t i = 0; i < count; i++) {
        const struct pair_time *add = &transfers[i].pair;
        int64_t excess = (int64_t)add->active_ns - (int64_t)blame_usual_ns(add->bytes, pace);
        struct pair_time sum = *pair;
        if (excess > worst) {
            *pair = *add;
            worst = excess;
        }
        pair->bytes = sum.bytes + add->bytes;
        pair->active_ns = sum.active_ns + add->active_ns;
        pair->excess_ns = sum.excess_ns + excess;
    }
    pair->pace = (uint64_t)MEDIAN_OF(transfers, count, pace);
    pair->transit_ns = MEDIAN_OF(transfers, count, transit_ns);
}

uint64_t blame_pairs(const struct job *job, pair_time_list *pairs)
{
    transfer_list transfers = {0};

    for (size_t i = 0; i < job->operations.count; i++) {
        const struct operation *operation = &job->operations.items[i];
        for (size_t j = 0; operation->step >= 0 && j < operation->ranks; j++)
            add_transfer(job, i, &job->rank_operations.items[operation->first_rank + j], &transfers);
    }
    uint64_t pace = (uint64_t)MEDIAN_OF(transfers.items, transfers.count, pace);
    array_sort(&transfers, by_pair);
    for (size_t from = 0, to; from < transfers.count; from = to) {
        for (to = from; to < transfers.count && by_pair(&transfers.items[from], &transfers.items[to]) == 0;)
            to++;
        add_pair(pairs, &transfers.items[from], to - from, pace);
    }
    array_fini(&transfers);
    return pace;
}
