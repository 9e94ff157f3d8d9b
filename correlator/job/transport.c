/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Transports. Invariant: a rank is called to have used sockets only when bytes fit: with no queue pair that carried
 * anything, its library's threads sent at least half of what was asked for (of a ring of two each rank sends as much as
 * the buffer in an AllReduce, half as much in the others).
 */
#include "correlator/job/transport.h"

#include <stdlib.h>

#include "correlator/verdict/evidence.h"

#define ASKED_LEAST_BYTES 65536 /* below that, what the library says to itself over TCP weighs more */

static void judge(struct transport *transport)
{
    if (transport->rdma_bytes != 0)
        transport->kind = TRANSPORT_RDMA;
    else if (transport->tcp_bytes == 0)
        transport->kind = TRANSPORT_NONE;
    else if (transport->asked_bytes >= ASKED_LEAST_BYTES && transport->tcp_bytes >= transport->asked_bytes / 2)
        transport->kind = TRANSPORT_SOCKETS;
    else
        transport->kind = TRANSPORT_UNKNOWN;
}

struct asking { /* what one rank asked for, by step; the last one: in all */
    uint64_t from_ns;
    uint64_t to_ns;
    uint64_t asked_bytes;
    uint64_t rdma_bytes;
};

static int32_t ranks_of(const struct job *job)
{
    int32_t ranks = 0;

    for (size_t i = 0; i < job->rank_operations.count; i++)
        if (job->rank_operations.items[i].rank >= ranks)
            ranks = job->rank_operations.items[i].rank + 1;
    return ranks;
}

static void ask(struct asking *asking, const struct rank_operation *of)
{
    uint64_t enqueued_ns = of->record.enqueued_ns;

    asking->asked_bytes += of->record.buffer_bytes;
    asking->rdma_bytes += of->record.observed_bytes;
    if (asking->from_ns == 0 || enqueued_ns < asking->from_ns)
        asking->from_ns = enqueued_ns;
}

/* By rank: steps + 1 each. The times of a step are those of the rank's step; all goes on as long as its threads. */
static struct asking *ask_all(const struct job *job, int32_t ranks)
{
    size_t width = job->steps.count + 1;
    struct asking *askings = array_zeroed((size_t)ranks * width * sizeof *askings);
    const struct host_evidence *host = &job->evidence->host;

    for (size_t i = 0; i < job->rank_operations.count; i++) {
        const struct rank_operation *of = &job->rank_operations.items[i];
        int32_t step = job->operations.items[of->operation].step;
        if (of->rank < 0)
            continue;
        ask(&askings[(size_t)of->rank * width + width - 1], of);
        if (step >= 0)
            ask(&askings[(size_t)of->rank * width + (size_t)step], of);
    }
    for (size_t i = 0; i < job->rank_steps.count; i++) {
        const struct rank_step *step = &job->rank_steps.items[i];
        struct asking *asking = &askings[(size_t)step->rank * width + (size_t)step->step];
        asking->from_ns = step->start_ns;
        asking->to_ns = step->end_ns;
    }
    for (size_t i = 0; i < host->tracks.count; i++) {
        const struct host_track *track = &host->tracks.items[i];
        uint64_t to_ns = host->stays.items[track->first + track->count - 1].to_ns;
        if (track->source != HOST_OF_DELAY || track->rank >= ranks)
            continue;
        struct asking *whole = &askings[(size_t)track->rank * width + width - 1];
        whole->to_ns = to_ns > whole->to_ns ? to_ns : whole->to_ns;
    }
    return askings;
}

static void add_transport(struct job *job, const struct asking *asking, int32_t rank, int32_t step)
{
    struct transport *transport = array_add(&job->transports);

    *transport = (struct transport){
        .rank = rank,
        .step = step,
        .from_ns = asking->from_ns,
        .to_ns = asking->to_ns,
        .asked_bytes = asking->asked_bytes,
        .rdma_bytes = asking->rdma_bytes,
        .tcp_bytes = host_evidence_total(&job->evidence->host, HOST_TCP_BYTES, rank, HOST_DELAY_SERVES, asking->from_ns,
                                         asking->to_ns),
    };
    judge(transport);
}

void transport_find(struct job *job)
{
    int32_t ranks = ranks_of(job);
    size_t width = job->steps.count + 1;

    if (job->evidence == NULL || ranks == 0)
        return;
    struct asking *askings = ask_all(job, ranks);
    for (int32_t rank = 0; rank < ranks; rank++) {
        const struct asking *own = &askings[(size_t)rank * width];
        if (own[width - 1].to_ns <= own[width - 1].from_ns)
            continue;
        add_transport(job, &own[width - 1], rank, -1);
        for (size_t step = 0; step + 1 < width; step++)
            if (own[step].to_ns > own[step].from_ns)
                add_transport(job, &own[step], rank, (int32_t)step);
    }
    free(askings);
}
