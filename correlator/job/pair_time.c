/* SPDX-License-Identifier: BSD-2-Clause */
/* Pairs. Invariant: a pair's pace is of transfers of which all was seen; its place is the one that lost most. */
#include "correlator/job/pair_time.h"

#include <stdlib.h>
#include <string.h>

#define ACTIVE_MAX_NS (1ULL << 50) /* thirteen days: beyond, it is damage */

/* An operation's ranks are in order. */
static const struct rank_operation *rank_in(const struct job *job, const struct operation *operation, int32_t rank)
{
    const struct rank_operation *ranks = &job->rank_operations.items[operation->first_rank];
    size_t low = 0;
    size_t high = operation->ranks;

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (ranks[middle].record.rank < rank)
            low = middle + 1;
        else
            high = middle;
    }
    return low < operation->ranks && ranks[low].record.rank == rank ? &ranks[low] : NULL;
}

struct transfer { /* what one rank sent to one other in one operation: many, so no more than they are sorted by */
    int32_t step;
    int32_t from; /* the job's ranks */
    int32_t to;
    int32_t operation;
    uint32_t sender; /* rank operations */
    uint32_t receiver;
    int64_t pace; /* picoseconds a byte */
};
typedef ARRAY(struct transfer) transfer_list;

static bool is_at_receiver(const struct rank_operation *of, const struct rank_operation *receiver)
{
    return receiver->record.previous == of->record.rank &&
           receiver->record.receive_active_ns > 2 * of->record.active_ns;
}

/* How long the last of what was sent was on the way, where both ends saw the same bytes. */
static void set_transit(struct pair_time *pair, const struct rank_operation *of, const struct rank_operation *receiver)
{
    if (receiver->record.previous != of->record.rank || receiver->record.received_ns == 0 ||
        receiver->record.received_bytes != of->record.observed_bytes || of->record.last_data_ns == 0)
        return;
    pair->transit_ns = (int64_t)(receiver->record.received_ns - of->record.last_data_ns);
    pair->transit_bound_ns = job_frames_bound_ns(&of->record) + job_frames_bound_ns(&receiver->record);
}

static void add_transfer(const struct job *job, size_t index, const struct rank_operation *of, transfer_list *transfers)
{
    const struct operation *operation = &job->operations.items[index];
    const struct rank_operation *receiver = of->record.next < 0 ? NULL : rank_in(job, operation, of->record.next);

    if (receiver == NULL || of->rank < 0 || receiver->rank < 0)
        return;
    uint64_t active = is_at_receiver(of, receiver) ? receiver->record.receive_active_ns : of->record.active_ns;
    if (active == 0 || active > ACTIVE_MAX_NS || of->record.observed_bytes == 0 ||
        (of->record.flags & RANK_OPERATION_INCOMPLETE) != 0)
        return;
    *(struct transfer *)array_add(transfers) = (struct transfer){
        .step = operation->step,
        .from = of->rank,
        .to = receiver->rank,
        .operation = (int32_t)index,
        .sender = (uint32_t)(of - job->rank_operations.items),
        .receiver = (uint32_t)(receiver - job->rank_operations.items),
        .pace = (int64_t)(active * 1000 / of->record.observed_bytes),
    };
}

static struct pair_time pair_of(const struct job *job, const struct transfer *transfer)
{
    const struct rank_operation *of = &job->rank_operations.items[transfer->sender];
    const struct rank_operation *receiver = &job->rank_operations.items[transfer->receiver];
    bool at_receiver = is_at_receiver(of, receiver);
    struct pair_time pair = {
        .step = transfer->step,
        .from = transfer->from,
        .to = transfer->to,
        .bytes = of->record.observed_bytes,
        .active_ns = at_receiver ? receiver->record.receive_active_ns : of->record.active_ns,
        .at_receiver = at_receiver,
        .operation = transfer->operation,
        .from_ns = of->record.first_data_ns,
        .to_ns = at_receiver ? receiver->record.received_ns : of->record.last_data_ns,
    };

    memcpy(pair.device, at_receiver ? receiver->record.device : of->record.device, DEVICE_NAME_BYTES);
    set_transit(&pair, of, receiver);
    return pair;
}

static int by_pair(const void *a, const void *b)
{
    const struct transfer *left = a;
    const struct transfer *right = b;

    if (left->step != right->step)
        return left->step < right->step ? -1 : 1;
    if (left->from != right->from)
        return left->from < right->from ? -1 : 1;
    return (left->to > right->to) - (left->to < right->to);
}

static int64_t median_pace(const struct transfer *transfers, size_t count)
{
    int64_t *values = array_zeroed(count * sizeof *values);

    for (size_t i = 0; i < count; i++)
        values[i] = transfers[i].pace;
    int64_t median = array_select(values, count, 500);
    free(values);
    return median;
}

uint64_t pair_time_usual_ns(uint64_t bytes, uint64_t pace)
{
    double usual = (double)bytes * (double)pace / 1000;

    return usual < (double)ACTIVE_MAX_NS ? (uint64_t)usual : ACTIVE_MAX_NS;
}

/* Sums up the transfers of one pair in one step; place and port are those of the transfer that lost most. */
static void add_pair(const struct job *job, pair_time_list *pairs, const struct transfer *transfers, size_t count,
                     uint64_t pace)
{
    struct pair_time *pair = array_add(pairs);
    int64_t *transits = array_zeroed(count * sizeof *transits);
    int64_t worst = INT64_MIN;

    for (size_t i = 0; i < count; i++) {
        struct pair_time add = pair_of(job, &transfers[i]);
        int64_t excess = (int64_t)add.active_ns - (int64_t)pair_time_usual_ns(add.bytes, pace);
        struct pair_time sum = *pair;
        if (excess > worst) {
            *pair = add;
            worst = excess;
        }
        transits[i] = add.transit_ns;
        pair->bytes = sum.bytes + add.bytes;
        pair->active_ns = sum.active_ns + add.active_ns;
        pair->excess_ns = sum.excess_ns + excess;
    }
    pair->pace = (uint64_t)median_pace(transfers, count);
    pair->transit_ns = array_select(transits, count, 500);
    free(transits);
}

static size_t pairs_in(const transfer_list *transfers)
{
    size_t count = transfers->count > 0;

    for (size_t i = 1; i < transfers->count; i++)
        count += by_pair(&transfers->items[i - 1], &transfers->items[i]) != 0;
    return count;
}

uint64_t pair_time_find(const struct job *job, pair_time_list *pairs)
{
    transfer_list transfers = {0};

    for (size_t i = 0; i < job->operations.count; i++) {
        const struct operation *operation = &job->operations.items[i];
        for (size_t j = 0; operation->step >= 0 && j < operation->ranks; j++)
            add_transfer(job, i, &job->rank_operations.items[operation->first_rank + j], &transfers);
    }
    uint64_t pace = (uint64_t)median_pace(transfers.items, transfers.count);
    array_sort(&transfers, by_pair);
    array_reserve(pairs, pairs_in(&transfers));
    for (size_t from = 0, to; from < transfers.count; from = to) {
        for (to = from; to < transfers.count && by_pair(&transfers.items[from], &transfers.items[to]) == 0;)
            to++;
        add_pair(job, pairs, &transfers.items[from], to - from, pace);
    }
    array_fini(&transfers);
    return pace;
}
