/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Steps whose data went over TCP sockets though NCCL could have used RDMA. Invariant: one verdict a step when all of
 * its ranks did so, else one a rank; none where a queue pair of the rank carried anything.
 */
#include <stdlib.h>

#include "correlator/verdict/evidence.h"
#include "correlator/verdict/verdict_private.h"

struct tally { /* of one step */
    size_t ranks;
    size_t over_sockets;
    int32_t first; /* its transport with the most bytes */
};

static bool is_fallback(const struct transport *transport)
{
    return transport->step >= 0 && transport->kind == TRANSPORT_SOCKETS;
}

static struct tally *tally_steps(const struct job *job)
{
    struct tally *tallies = array_zeroed((job->steps.count + 1) * sizeof *tallies);

    for (size_t i = 0; i < job->transports.count; i++) {
        const struct transport *transport = &job->transports.items[i];
        if (transport->step < 0)
            continue;
        struct tally *tally = &tallies[transport->step];
        tally->ranks += transport->asked_bytes != 0;
        if (!is_fallback(transport))
            continue;
        if (tally->over_sockets++ == 0 || transport->tcp_bytes > job->transports.items[tally->first].tcp_bytes)
            tally->first = (int32_t)i;
    }
    return tallies;
}

/* By how much steps over sockets are longer than those without, median to median; 0: there are none to compare with. */
static int64_t step_cost(const struct job *job, const struct tally *tallies)
{
    int64_t *with = array_zeroed((job->steps.count + 1) * sizeof *with);
    int64_t *without = array_zeroed((job->steps.count + 1) * sizeof *without);
    size_t with_count = 0, without_count = 0;

    for (size_t i = 1; i < job->steps.count; i++) {
        int64_t duration = (int64_t)job->steps.items[i].duration_ns;
        if (tallies[i].over_sockets != 0)
            with[with_count++] = duration;
        else if (tallies[i].ranks != 0)
            without[without_count++] = duration;
    }
    int64_t cost = without_count == 0 ? 0 : array_middle(with, with_count) - array_middle(without, without_count);
    free(with);
    free(without);
    return cost > 0 ? cost : 0;
}

/* The step's operation for which the rank asked most. */
static int32_t operation_of(const struct job *job, const struct transport *transport)
{
    int32_t found = -1;
    uint64_t most = 0;

    for (size_t i = 0; i < job->rank_operations.count; i++) {
        const struct rank_operation *of = &job->rank_operations.items[i];
        if (of->rank != transport->rank || job->operations.items[of->operation].step != transport->step)
            continue;
        if (found < 0 || of->record.buffer_bytes > most) {
            found = of->operation;
            most = of->record.buffer_bytes;
        }
    }
    return found;
}

static void note(struct verdict *verdict, const struct transport *transport, int32_t row)
{
    *(struct verdict_evidence *)array_add(&verdict->numbers) = (struct verdict_evidence){
        .metric = "tcp_bytes",
        .source = VERDICT_OF_TRANSPORT,
        .decides = true,
        .priority = PRIORITY_NONE,
        .side = EVIDENCE_LIBRARY,
        .rank = transport->rank,
        .from_ns = transport->from_ns,
        .to_ns = transport->to_ns,
        .amount = transport->tcp_bytes,
        .usual = -1,
        .first_row = row,
        .last_row = row,
    };
}

static void judge_step(struct judge *judge, size_t index, bool all, int64_t cost_ns)
{
    struct job *job = judge->job;
    const struct transport *transport = &job->transports.items[index];
    int32_t operation = operation_of(job, transport);

    if (operation < 0)
        return;
    struct verdict *verdict = array_add(&job->verdicts);
    verdict->class = VERDICT_SOCKETS;
    verdict->step = transport->step;
    verdict->rank = all ? -1 : transport->rank;
    verdict->peer_rank = -1;
    verdict->operation = operation;
    verdict->size_ns = (uint64_t)cost_ns;
    verdict->confidence =
        (double)transport->tcp_bytes / ((double)transport->tcp_bytes + (double)transport->asked_bytes / 2);
    judge_say(verdict,
              "no queue pair of %s carried anything in the step, and NCCL's threads of rank %d sent %.1f KiB over TCP, "
              "where its calls asked for %.1f KiB",
              all ? "any rank" : "the rank", transport->rank, (double)transport->tcp_bytes / 1024,
              (double)transport->asked_bytes / 1024);
    if (cost_ns > 0)
        judge_say(verdict, "; steps over sockets are %.1f ms longer than those without (medians)", judge_ms(cost_ns));
    else
        judge_say(verdict, "; no steps without are known to be shorter, so what it costs is not known");
    for (size_t i = 0; i < job->transports.count; i++)
        if (is_fallback(&job->transports.items[i]) && job->transports.items[i].step == transport->step &&
            (all || i == index))
            note(verdict, &job->transports.items[i], (int32_t)i);
}

void judge_sockets(struct judge *judge)
{
    struct job *job = judge->job;
    struct tally *tallies = tally_steps(job);
    int64_t cost_ns = step_cost(job, tallies);

    for (size_t i = 0; i < job->transports.count; i++) {
        const struct transport *transport = &job->transports.items[i];
        if (!is_fallback(transport))
            continue;
        const struct tally *tally = &tallies[transport->step];
        bool all = tally->over_sockets == tally->ranks;
        if (!all || tally->first == (int32_t)i)
            judge_step(judge, i, all, cost_ns);
    }
    free(tallies);
}
