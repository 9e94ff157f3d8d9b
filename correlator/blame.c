/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Blame. Invariant: what a rank added itself is never more than its lateness, nor more than its wait exceeds the usual
 * wait at that place of the step; usual is the lower median over ranks and steps, which one late rank among several
 * does not move.
 */
#include "correlator/blame.h"

#include <stdlib.h>
#include <string.h>

struct place { /* the n-th operation of its kind on its communicator within a step */
    uint64_t key;
    size_t rank_operation;
};
typedef ARRAY(struct place) place_list;

static uint64_t mix(uint64_t hash, const void *bytes, size_t count)
{
    const uint8_t *byte = bytes;

    for (size_t i = 0; i < count; i++)
        hash = (hash ^ byte[i]) * 0x100000001b3ULL;
    return hash;
}

static uint64_t kind_key(const struct operation *operation)
{
    uint64_t hash = mix(0xcbf29ce484222325ULL, operation->communicator, IDENTITY_BYTES);

    hash = mix(hash, &operation->kind, sizeof operation->kind);
    return mix(hash, &operation->buffer_bytes, sizeof operation->buffer_bytes);
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
    return mix(key, &before, sizeof before);
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

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void measure(const struct rank_operation *of, struct blame *blame)
{
    const struct record_rank_operation *record = &of->record;
    uint64_t host = record->host_ready_ns != 0 ? record->host_ready_ns : record->enqueued_ns;

    blame->known = of->late_known && of->before_ns != 0;
    blame->wait_ns = (int64_t)(of->arrival_ns - of->before_ns);
    blame->gpu_wait_ns = (int64_t)(of->arrival_ns - larger(host, of->before_ns));
    if (blame->gpu_wait_ns < 0)
        blame->gpu_wait_ns = 0;
}

struct usual {
    int64_t wait_ns;
    int64_t gpu_wait_ns;
};

static struct usual usual_of(const struct blame *blames, const struct place *places, size_t count)
{
    int64_t *values = array_zeroed(count * sizeof *values);
    struct usual usual;
    size_t known = 0;

    for (size_t i = 0; i < count; i++)
        if (blames[places[i].rank_operation].known)
            values[known++] = blames[places[i].rank_operation].wait_ns;
    usual.wait_ns = array_median(values, known);
    known = 0;
    for (size_t i = 0; i < count; i++)
        if (blames[places[i].rank_operation].known)
            values[known++] = blames[places[i].rank_operation].gpu_wait_ns;
    usual.gpu_wait_ns = array_median(values, known);
    free(values);
    return usual;
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void share_out(const struct job *job, struct blame *blames, const struct place *places, size_t count)
{
    struct usual usual = usual_of(blames, places, count);

    for (size_t i = 0; i < count; i++) {
        const struct rank_operation *of = &job->rank_operations.items[places[i].rank_operation];
        struct blame *blame = &blames[places[i].rank_operation];
        blame->usual_gpu_wait_ns = usual.gpu_wait_ns;
        if (!blame->known)
            continue;
        blame->own_ns = smaller(of->late_ns, blame->wait_ns - usual.wait_ns);
        blame->gpu_ns = smaller(blame->own_ns, blame->gpu_wait_ns - usual.gpu_wait_ns);
    }
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
        share_out(job, blames, &places.items[from], to - from);
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
    uint64_t pace; /* picoseconds a byte */
};
typedef ARRAY(struct transfer) transfer_list;

static void add_transfer(const struct job *job, size_t index, const struct rank_operation *of, transfer_list *transfers)
{
    const struct operation *operation = &job->operations.items[index];
    const struct rank_operation *receiver = of->record.next < 0 ? NULL : rank_in(job, operation, of->record.next);
    uint64_t active = of->record.active_ns;
    bool at_receiver = receiver != NULL && receiver->record.previous == of->record.rank &&
                       receiver->record.receive_active_ns > 2 * active;

    if (at_receiver)
        active = receiver->record.receive_active_ns;
    if (receiver == NULL || of->rank < 0 || receiver->rank < 0 || active == 0 || of->record.observed_bytes == 0 ||
        (of->record.flags & RANK_OPERATION_INCOMPLETE) != 0)
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
    };
    memcpy(transfer->pair.device, at_receiver ? receiver->record.device : of->record.device, DEVICE_NAME_BYTES);
    transfer->pace = active * 1000 / of->record.observed_bytes;
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

static uint64_t median_pace(const transfer_list *transfers)
{
    int64_t *paces = array_zeroed(transfers->count * sizeof *paces);

    for (size_t i = 0; i < transfers->count; i++)
        paces[i] = (int64_t)transfers->items[i].pace;
    int64_t pace = array_median(paces, transfers->count);
    free(paces);
    return (uint64_t)pace;
}

static void add_pair(pair_time_list *pairs, const struct transfer *transfer, uint64_t pace, int64_t *worst)
{
    struct pair_time *last = pairs->count == 0 ? NULL : &pairs->items[pairs->count - 1];
    const struct pair_time *add = &transfer->pair;
    int64_t excess = (int64_t)add->active_ns - (int64_t)(add->bytes * pace / 1000);

    if (last == NULL || last->step != add->step || last->from != add->from || last->to != add->to) {
        *(struct pair_time *)array_add(pairs) = *add;
        pairs->items[pairs->count - 1].excess_ns = excess;
        *worst = excess;
        return;
    }
    last->bytes += add->bytes;
    last->active_ns += add->active_ns;
    last->excess_ns += excess;
    if (excess > *worst) {
        *worst = excess;
        last->operation = add->operation;
        last->at_receiver = add->at_receiver;
        memcpy(last->device, add->device, sizeof last->device);
    }
}

uint64_t blame_pairs(const struct job *job, pair_time_list *pairs)
{
    transfer_list transfers = {0};
    int64_t worst = 0;

    for (size_t i = 0; i < job->operations.count; i++) {
        const struct operation *operation = &job->operations.items[i];
        for (size_t j = 0; operation->step >= 0 && j < operation->ranks; j++)
            add_transfer(job, i, &job->rank_operations.items[operation->first_rank + j], &transfers);
    }
    uint64_t pace = median_pace(&transfers);
    array_sort(&transfers, by_pair);
    for (size_t i = 0; i < transfers.count; i++)
        add_pair(pairs, &transfers.items[i], pace, &worst);
    array_fini(&transfers);
    return pace;
}
