/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where in a sum of a thread's delays the time lay: a sum is of a tenth of a second or more, a lateness often of less
 * than a thousandth. What a sum has beyond what quiet sums have is laid into the times in which the thread's rank was
 * late, each its part, and where that is most of the sum. Invariant: what is laid into the latenesses of one sum is
 * never more than the sum has beyond the usual.
 */
#include <stdlib.h>

#include "correlator/verdict/evidence.h"
#include "correlator/verdict/verdict_private.h"

struct lateness { /* by rank, from_ns */
    int32_t rank;
    uint64_t from_ns;
    uint64_t to_ns;
    uint64_t size_ns;
};

struct dense {
    const struct host_evidence *host;
    ARRAY(struct lateness) late;
    bool known[HOST_KINDS_MAX];
    double usual[HOST_KINDS_MAX]; /* what nine of ten quiet sums stay below, in a nanosecond */
};

static int by_rank_and_time(const void *a, const void *b)
{
    const struct lateness *left = a;
    const struct lateness *right = b;

    if (left->rank != right->rank)
        return left->rank < right->rank ? -1 : 1;
    return (left->from_ns > right->from_ns) - (left->from_ns < right->from_ns);
}

struct dense *dense_create(const struct judge *judge)
{
    const struct job *job = judge->job;
    struct dense *dense = array_zeroed(sizeof *dense);

    dense->host = &job->evidence->host;
    for (size_t i = 0; i < job->verdicts.count; i++) {
        const struct verdict *verdict = &job->verdicts.items[i];
        const struct rank_operation *of = judge_rank_in(job, verdict->operation, verdict->rank);
        if ((verdict->class != VERDICT_HOST_LATE && verdict->class != VERDICT_GPU_LATE) || of == NULL)
            continue;
        uint64_t to_ns = of->record.first_data_ns > of->arrival_ns ? of->record.first_data_ns : of->arrival_ns;
        *(struct lateness *)array_add(&dense->late) =
            (struct lateness){verdict->rank, of->before_ns < to_ns ? of->before_ns : to_ns, to_ns, verdict->size_ns};
    }
    array_sort(&dense->late, by_rank_and_time);
    return dense;
}

void dense_destroy(struct dense *dense)
{
    array_fini(&dense->late);
    free(dense);
}

/* How much of the rank's lateness lies in a time: of one that reaches beyond it its part. */
static double lateness_in(const struct dense *dense, int32_t rank, uint64_t from_ns, uint64_t to_ns)
{
    size_t low = 0, high = dense->late.count;
    double sum = 0;

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (dense->late.items[middle].rank < rank)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < dense->late.count && dense->late.items[low].rank == rank && dense->late.items[low].from_ns < to_ns;
         low++) {
        const struct lateness *late = &dense->late.items[low];
        uint64_t from = late->from_ns > from_ns ? late->from_ns : from_ns;
        uint64_t to = late->to_ns < to_ns ? late->to_ns : to_ns;
        if (to > from)
            sum += (double)late->size_ns * (double)(to - from) / (double)(late->to_ns - late->from_ns);
    }
    return sum;
}

static int by_size(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;

    return (left > right) - (left < right);
}

static double quiet_rate(const struct dense *dense, const struct host_kind *kind)
{
    double *rates = array_zeroed((dense->host->stays.count + 1) * sizeof *rates);
    size_t count = 0;

    for (size_t i = 0; i < dense->host->tracks.count; i++) {
        const struct host_track *track = &dense->host->tracks.items[i];
        if (!host_evidence_sums(track, kind))
            continue;
        for (size_t j = track->first; j < track->first + track->count; j++) {
            const struct host_stay *stay = &dense->host->stays.items[j];
            if (stay->to_ns > stay->from_ns && lateness_in(dense, track->rank, stay->from_ns, stay->to_ns) == 0)
                rates[count++] = (double)stay->amounts[kind->amount] / (double)(stay->to_ns - stay->from_ns);
        }
    }
    qsort(rates, count, sizeof *rates, by_size);
    double usual = count == 0 ? 1 : rates[(count - 1) * 9 / 10];
    free(rates);
    return usual;
}

static double usual_of(struct dense *dense, size_t kind)
{
    if (!dense->known[kind])
        dense->usual[kind] = quiet_rate(dense, &host_kinds[kind]);
    dense->known[kind] = true;
    return dense->usual[kind];
}

uint64_t dense_ns(struct dense *dense, size_t kind, const struct host_sum *sum, int32_t rank, uint64_t from_ns,
                  uint64_t to_ns, uint64_t size_ns)
{
    struct host_pool pool = host_evidence_pool(dense->host, &host_kinds[kind], rank, sum->tid, from_ns, to_ns);

    if (pool.to_ns <= pool.from_ns || host_kinds[kind].amount >= HOST_DURATIONS)
        return 0;
    double usual = usual_of(dense, kind) * (double)(pool.to_ns - pool.from_ns);
    double beyond = (double)pool.amount - usual;
    double late = lateness_in(dense, rank, pool.from_ns, pool.to_ns);
    if (beyond <= usual || late < (double)size_ns / 2)
        return 0;
    double part = beyond * (double)size_ns / (late > (double)size_ns ? late : (double)size_ns);
    uint64_t most_ns = to_ns - from_ns < size_ns ? to_ns - from_ns : size_ns;
    return part < (double)most_ns ? (uint64_t)part : most_ns;
}
