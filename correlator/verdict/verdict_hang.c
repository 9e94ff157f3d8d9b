/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What hangs: an operation that is the last one of its communicator, that some ranks have begun and that has not ended,
 * for longer than the job's steps take and their spread, and a second more. Named is who is missing: who was seen to
 * live and has not given the operation, or, where all have, who alone has sent nothing, or, where all who send have,
 * the ranks of the machine at which a ring stops. A rank that waits inside another operation that hangs is missing
 * because of that one, and is not named. Where all have given it only the wire tells, while it is watched. Invariant:
 * one verdict a named rank at most.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "correlator/job/companion.h"
#include "correlator/verdict/evidence.h"
#include "correlator/verdict/verdict_private.h"

#define PATIENCE_NS  1000000000 /* beside what the job's own steps take */
#define SPREAD_TIMES 6

struct hanging { /* an operation */
    int32_t operation;
    uint64_t began_ns;
    uint64_t until_ns; /* it had not ended then */
    bool is_stalled;   /* all who send have begun it, and `stalled` tells where it stops */
    struct stalled stalled;
};

struct ward {
    struct judge *judge;
    const struct host_evidence *host;
    int64_t patience_ns;
    ARRAY(struct hanging) hanging;
};

/* The communicator's members, which lie together. */
static size_t members_of(const struct host_evidence *host, const uint8_t *communicator, size_t *count)
{
    size_t first = 0, high = host->members.count;

    while (first < high) {
        size_t middle = (first + high) / 2;
        if (memcmp(host->members.items[middle].communicator, communicator, IDENTITY_BYTES) < 0)
            first = middle + 1;
        else
            high = middle;
    }
    for (*count = 0; first + *count < host->members.count &&
                     memcmp(host->members.items[first + *count].communicator, communicator, IDENTITY_BYTES) == 0;)
        ++*count;
    return first;
}

static const struct rank_operation *entered(const struct job *job, int32_t operation, int32_t communicator_rank)
{
    const struct operation *of = &job->operations.items[operation];

    for (size_t i = of->first_rank; i < of->first_rank + of->ranks; i++)
        if (job->rank_operations.items[i].record.rank == communicator_rank)
            return &job->rank_operations.items[i];
    return NULL;
}

static bool began_on_wire(const struct job *job, const struct operation *operation)
{
    for (size_t i = operation->first_rank; i < operation->first_rank + operation->ranks; i++) {
        const struct record_rank_operation *record = &job->rank_operations.items[i].record;
        if (record->observed_bytes != 0 || record->host_ready_ns != 0)
            return true;
    }
    return false;
}

/* A group of sends and receives is for those who are in it: who else should be, nobody knows. */
static bool is_for_all(const struct operation *operation)
{
    return operation->kind != OPERATION_GROUP;
}

static bool is_in(const struct job *job, const struct operation *operation, int32_t rank)
{
    for (size_t i = operation->first_rank; i < operation->first_rank + operation->ranks; i++)
        if (job->rank_operations.items[i].record.rank == rank)
            return true;
    return false;
}

/* Operations of one communicator that follow each other: groups only between the same ranks. */
static bool follows(const struct job *job, const struct operation *operation, const struct operation *other)
{
    size_t common = 0;

    if (memcmp(other->communicator, operation->communicator, IDENTITY_BYTES) != 0)
        return false;
    if (is_for_all(operation) || is_for_all(other))
        return true;
    for (size_t i = operation->first_rank; i < operation->first_rank + operation->ranks; i++)
        common += is_in(job, other, job->rank_operations.items[i].record.rank);
    return common > 1;
}

/* What hosts that run ahead have given after it, and no GPU has begun, says nothing of it. */
static bool is_last(const struct job *job, size_t index)
{
    const struct operation *operation = &job->operations.items[index];
    bool began = began_on_wire(job, operation);

    for (size_t i = index + 1; i < job->operations.count; i++) {
        const struct operation *other = &job->operations.items[i];
        if (follows(job, operation, other) &&
            (!began || (other->flags & RANK_OPERATION_NO_WIRE) != 0 || began_on_wire(job, other)))
            return false;
    }
    return true;
}

/* A rank that has not given the operation: it is gone, or its host is still heard of. */
static bool is_missing(const struct ward *ward, const struct hanging *hanging, const struct host_member *member)
{
    return member->rank >= 0 && is_for_all(&ward->judge->job->operations.items[hanging->operation]) &&
           entered(ward->judge->job, hanging->operation, member->communicator_rank) == NULL &&
           (member->gone_ns != 0 || member->heard_ns >= hanging->began_ns + (uint64_t)ward->patience_ns);
}

/* How long it was waited for: until the first of those who had begun it was gone, or is not heard of any more. */
static uint64_t waited_until(const struct ward *ward, int32_t operation)
{
    const struct job *job = ward->judge->job;
    uint64_t until_ns = 0;
    size_t count;
    size_t first = members_of(ward->host, job->operations.items[operation].communicator, &count);

    for (size_t i = first; i < first + count; i++) {
        const struct host_member *member = &ward->host->members.items[i];
        uint64_t own_ns =
            member->gone_ns != 0 && member->gone_ns < member->heard_ns ? member->gone_ns : member->heard_ns;
        if (entered(job, operation, member->communicator_rank) != NULL && (until_ns == 0 || own_ns < until_ns))
            until_ns = own_ns;
    }
    return until_ns;
}

/* The last sign of it: an enqueue, or a frame. */
static uint64_t last_sign(const struct job *job, const struct operation *operation)
{
    uint64_t last_ns = operation->start_ns > operation->end_ns ? operation->start_ns : operation->end_ns;

    for (size_t i = operation->first_rank; i < operation->first_rank + operation->ranks; i++) {
        const struct record_rank_operation *record = &job->rank_operations.items[i].record;
        last_ns = record->enqueued_ns > last_ns ? record->enqueued_ns : last_ns;
        last_ns = record->last_data_ns > last_ns ? record->last_data_ns : last_ns;
    }
    return last_ns;
}

/* Until when all NIC sides were heard of that were there when it began: what came behind that nobody saw. */
static uint64_t watched_until(const struct ward *ward, uint64_t began_ns)
{
    uint64_t until_ns = UINT64_MAX;

    for (size_t i = 0; i < ward->host->watches.count; i++) {
        uint64_t heard_ns = ward->host->watches.items[i].heard_ns;
        if (heard_ns >= began_ns && heard_ns < until_ns)
            until_ns = heard_ns;
    }
    return until_ns;
}

/*
 * All have given it, and each has sent something and does not hold up the others, or nobody has: it is over, or nothing
 * says that it is not. That rests on the wire, which has to have been watched for that long.
 */
static bool may_be_over(const struct ward *ward, struct hanging *hanging)
{
    const struct job *job = ward->judge->job;
    const struct operation *operation = &job->operations.items[hanging->operation];
    size_t silent = 0, count;
    size_t first = members_of(ward->host, operation->communicator, &count);

    for (size_t i = first; i < first + count; i++)
        if (is_missing(ward, hanging, &ward->host->members.items[i]))
            return false;
    if (watched_until(ward, hanging->began_ns) <= last_sign(job, operation) + (uint64_t)ward->patience_ns)
        return true;
    for (size_t i = operation->first_rank; i < operation->first_rank + operation->ranks; i++)
        silent += judge_sent_nothing(&job->rank_operations.items[i].record);
    hanging->is_stalled = silent == 0 && judge_find_stalled(job, hanging->operation, &hanging->stalled);
    return !hanging->is_stalled && (silent == 0 || !began_on_wire(job, operation));
}

static void find_hanging(struct ward *ward)
{
    const struct job *job = ward->judge->job;

    for (size_t i = 0; i < job->operations.count; i++) {
        const struct operation *operation = &job->operations.items[i];
        if (operation->ranks_count < 2 || !is_last(job, i))
            continue;
        struct hanging hanging = {
            .operation = (int32_t)i, .began_ns = operation->start_ns, .until_ns = waited_until(ward, (int32_t)i)};
        uint64_t last_ns = last_sign(job, operation);
        if (hanging.until_ns <= last_ns + (uint64_t)ward->patience_ns || may_be_over(ward, &hanging))
            continue;
        *(struct hanging *)array_add(&ward->hanging) = hanging;
    }
}

/* ---- who, and what was first ---- */

/* It is inside another operation that hangs, which began before. */
static bool waits_elsewhere(const struct ward *ward, int32_t rank)
{
    const struct job *job = ward->judge->job;

    for (size_t i = 0; i < ward->hanging.count; i++) {
        const struct operation *operation = &job->operations.items[ward->hanging.items[i].operation];
        for (size_t j = operation->first_rank; j < operation->first_rank + operation->ranks; j++)
            if (job->rank_operations.items[j].rank == rank)
                return true;
    }
    return false;
}

/* When the communicator's operation before was over for the last rank: what went wrong did so since. */
static uint64_t before_ns(const struct job *job, int32_t operation)
{
    for (int32_t i = operation; i-- > 0;)
        if (memcmp(job->operations.items[i].communicator, job->operations.items[operation].communicator,
                   IDENTITY_BYTES) == 0)
            return job->operations.items[i].end_ns;
    return 0;
}

static const struct host_failure *first_failure(const struct ward *ward, const struct hanging *hanging)
{
    uint64_t since_ns = before_ns(ward->judge->job, hanging->operation);

    for (size_t i = 0; i < ward->host->failures.count; i++)
        if (ward->host->failures.items[i].at_ns >= since_ns && ward->host->failures.items[i].at_ns != 0)
            return &ward->host->failures.items[i];
    return NULL;
}

static void note_failure(struct verdict *verdict, const struct host_failure *failure, const struct hanging *hanging)
{
    *(struct verdict_evidence *)array_add(&verdict->numbers) = (struct verdict_evidence){
        .metric = "failures",
        .source = VERDICT_OF_FAILURE,
        .decides = false,
        .priority = PRIORITY_NONE,
        .side = EVIDENCE_LIBRARY,
        .rank = failure->rank,
        .from_ns = hanging->began_ns < failure->at_ns ? hanging->began_ns : failure->at_ns,
        .to_ns = hanging->until_ns,
        .amount = 1,
        .usual = -1,
        .first_row = failure->row,
        .last_row = failure->row,
    };
}

static void say_failure(struct verdict *verdict, const struct host_failure *failure, const struct hanging *hanging)
{
    int64_t after_ns = (int64_t)(failure->at_ns - hanging->began_ns);

    judge_say(verdict, "; the first sign of a failure since the operation before: %s", failure_name(failure->cause));
    if (failure->rank >= 0)
        judge_say(verdict, " of rank %" PRId32, failure->rank);
    if (failure->communicator >= 0)
        judge_say(verdict, " on communicator %" PRId32, failure->communicator + 1);
    judge_say(verdict, ", %.1f ms %s the operation began", judge_ms(llabs(after_ns)),
              after_ns < 0 ? "before" : "after");
    if (failure->result != 0)
        judge_say(verdict, ", result %" PRId32, failure->result);
    if (failure->text_bytes != 0)
        judge_say(verdict, ": \"%.*s\"", (int)failure->text_bytes, failure->text);
}

/* A port that a rank uses and that went down since the operation before: hosts look at them once a second. */
static bool find_loss(const struct ward *ward, const struct hanging *hanging, struct rail_loss *loss)
{
    const struct job *job = ward->judge->job;

    return rails_lost(&job->evidence->rails, before_ns(job, hanging->operation), hanging->until_ns, loss);
}

static void say_loss(struct verdict *verdict, const struct rail_loss *loss, const struct hanging *hanging)
{
    int64_t after_ns = (int64_t)(loss->change->at_ns - hanging->began_ns);

    judge_say(verdict,
              "; the port %s/%u of rank %" PRId32
              "'s host was seen %s %.1f ms %s the operation began, and %.1f ms before "
              "that it had been active",
              loss->port->device, loss->port->number, loss->rank, rdma_port_state_name(loss->change->state),
              judge_ms(llabs(after_ns)), after_ns < 0 ? "before" : "after",
              judge_ms((int64_t)(loss->change->at_ns - loss->change->before_ns)));
    *(struct verdict_evidence *)array_add(&verdict->numbers) = (struct verdict_evidence){
        .metric = "ports_lost",
        .source = VERDICT_OF_RAIL,
        .decides = false,
        .priority = PRIORITY_NONE,
        .side = EVIDENCE_SENDER,
        .rank = loss->rank,
        .from_ns = loss->change->before_ns,
        .to_ns = loss->change->at_ns,
        .amount = 1,
        .usual = -1,
        .first_row = loss->change->row,
        .last_row = loss->change->row,
    };
}

static void say_ranks(struct verdict *verdict, const struct ward *ward, const struct hanging *hanging, bool missing)
{
    const struct job *job = ward->judge->job;
    const struct operation *operation = &job->operations.items[hanging->operation];
    unsigned said = 0;
    size_t count;
    size_t first = members_of(ward->host, operation->communicator, &count);

    for (size_t i = first; i < first + count; i++) {
        const struct host_member *member = &ward->host->members.items[i];
        const struct rank_operation *of = entered(job, hanging->operation, member->communicator_rank);
        bool is_said =
            missing ? is_missing(ward, hanging, member)
                    : of != NULL && (operation->flags & RANK_OPERATION_NO_WIRE) == 0 && of->record.host_ready_ns == 0;
        if (is_said && said++ < 8)
            judge_say(verdict, "%s%" PRId32, said == 1 ? "" : ", ", member->rank);
    }
    if (said > 8)
        judge_say(verdict, " and %u more", said - 8);
    if (said == 0)
        judge_say(verdict, "none");
}

/* Companions that are silent in their next operation too: which of them did not come to the one before nobody sees. */
static void list_candidates(struct verdict *verdict, const struct job *job)
{
    const struct rank_operation *of = judge_rank_in(job, verdict->operation, verdict->rank);
    struct companions *companions = companions_create(job);
    companion_list list = {0};

    if (of != NULL)
        companions_find(companions, (size_t)(of - job->rank_operations.items), &list);
    for (size_t i = 0; i < list.count; i++)
        if (list.items[i].next != COMPANION_NONE &&
            judge_sent_nothing(&job->rank_operations.items[list.items[i].next].record))
            judge_add_candidate(verdict, list.items[i].rank);
    array_fini(&list);
    companions_destroy(companions);
}

static void say_silent(struct verdict *verdict, const struct job *job, int32_t silent)
{
    const struct rank_operation *of = judge_rank_in(job, verdict->operation, silent);

    if (of != NULL && of->record.received_bytes != 0)
        judge_say(verdict,
                  "; data came to rank %" PRId32 ", and all others have sent: it alone has not, as when its GPU does "
                  "not begin the operation",
                  silent);
    else
        judge_say(verdict,
                  "; rank %" PRId32 " has sent nothing, as when its GPU does not begin the operation, and its "
                  "operations before are over",
                  silent);
    list_candidates(verdict, job);
    judge_say_candidates(verdict, "sent nothing");
}

/* Of the machine at which a ring stops who has sent nothing may not have begun; where all have, any may have stopped.
 */
static void list_stalled(struct verdict *verdict, const struct ward *ward, const struct hanging *hanging, bool begun)
{
    const struct job *job = ward->judge->job;
    size_t count;
    size_t first = members_of(ward->host, job->operations.items[hanging->operation].communicator, &count);

    for (size_t i = first; i < first + count; i++) {
        const struct host_member *member = &ward->host->members.items[i];
        const struct rank_operation *of = entered(job, hanging->operation, member->communicator_rank);
        if (of != NULL && member->machine == hanging->stalled.machine && (of->record.observed_bytes != 0) == begun)
            *(int32_t *)array_add(&verdict->candidates) = member->rank;
    }
}

static void say_stalled(struct verdict *verdict, const struct ward *ward, const struct hanging *hanging)
{
    list_stalled(verdict, ward, hanging, false);
    bool is_silent = verdict->candidates.count != 0;
    if (!is_silent)
        list_stalled(verdict, ward, hanging, true);
    judge_sort_candidates(verdict);
    judge_say(
        verdict,
        "; all ranks that send over the wire have begun, and what they sent has come; those of the machine of rank "
        "%" PRId32 " sent least, %" PRIu64 " KiB, and hold credit for more: they wait for a rank of their machine, "
        "as when its GPU does not ",
        verdict->rank, hanging->stalled.sent_bytes / 1024);
    judge_say(verdict, is_silent ? "begin the operation (those of it that have sent something have begun)"
                                 : "go on with the operation");
    if (verdict->candidates.count == 1)
        array_fini(&verdict->candidates);
}

/* `silent`: who is waited for, where nobody is missing; else -1. */
static void judge_hang(struct ward *ward, const struct hanging *hanging, int32_t rank, int32_t silent)
{
    struct job *job = ward->judge->job;
    const struct operation *operation = &job->operations.items[hanging->operation];
    const struct host_failure *failure = first_failure(ward, hanging);
    struct rail_loss loss;
    struct verdict *verdict = array_add(&job->verdicts);
    int64_t waited_ns = (int64_t)(hanging->until_ns - hanging->began_ns);

    verdict->class = VERDICT_HANG;
    verdict->step = -1;
    verdict->rank = rank >= 0 || failure == NULL ? rank : failure->rank;
    verdict->peer_rank = -1;
    verdict->operation = hanging->operation;
    verdict->size_ns = (uint64_t)waited_ns;
    verdict->bound_ns = operation->bound_ns;
    verdict->confidence = (double)waited_ns / (double)(waited_ns + ward->patience_ns);
    if (rank < 0 && failure == NULL && silent < 0 && !hanging->is_stalled)
        verdict->confidence /= 2;
    if (silent >= 0)
        verdict->rank = silent;
    judge_say(verdict,
              "%zu of %" PRId32 " ranks asked for the operation, and it had not ended %.1f ms later, which is when "
              "what was recorded ends (the job's own "
              "steps and their spread allow for %.1f ms); missing: ",
              operation->ranks, operation->ranks_count, judge_ms(waited_ns), judge_ms(ward->patience_ns));
    say_ranks(verdict, ward, hanging, true);
    if ((operation->flags & RANK_OPERATION_NO_WIRE) == 0) {
        judge_say(
            verdict,
            "; no buffer (credit) was seen to be offered by: "); /* that of a rank to which nothing was sent is not */
        say_ranks(verdict, ward, hanging, false);
    }
    if (silent >= 0)
        say_silent(verdict, job, silent);
    else if (rank < 0 && hanging->is_stalled)
        say_stalled(verdict, ward, hanging);
    if (find_loss(ward, hanging, &loss))
        say_loss(verdict, &loss, hanging);
    if (failure == NULL) {
        judge_say(verdict, "; no sign of a failure was seen: no error of a queue pair or of NCCL, no warning, no "
                           "abort, no process that ended");
        return;
    }
    say_failure(verdict, failure, hanging);
    note_failure(verdict, failure, hanging);
}

static bool has_verdict(const struct job *job, int32_t rank)
{
    for (size_t i = 0; i < job->verdicts.count; i++)
        if (job->verdicts.items[i].class == VERDICT_HANG && job->verdicts.items[i].rank == rank)
            return true;
    return false;
}

/* Names those who are missing from one operation; `all`: also those who wait elsewhere. */
static bool name_missing(struct ward *ward, const struct hanging *hanging, bool all)
{
    size_t count;
    bool named = false;
    size_t first = members_of(ward->host, ward->judge->job->operations.items[hanging->operation].communicator, &count);

    for (size_t i = first; i < first + count; i++) {
        const struct host_member *member = &ward->host->members.items[i];
        if (!is_missing(ward, hanging, member) || (!all && waits_elsewhere(ward, member->rank)))
            continue;
        named = true;
        if (!has_verdict(ward->judge->job, member->rank))
            judge_hang(ward, hanging, member->rank, -1);
    }
    return named;
}

/* Nobody is missing: the operation that all others wait for, and who is silent there, or where it stops. */
static void judge_silent(struct ward *ward)
{
    const struct job *job = ward->judge->job;
    struct silence silence;
    size_t stalled = 0;

    for (size_t i = 0; i < ward->hanging.count; i++) {
        if (!judge_find_silent(job, ward->hanging.items[i].operation, &silence))
            continue;
        struct hanging root = {.operation = silence.operation,
                               .began_ns = job->operations.items[silence.operation].start_ns,
                               .until_ns = waited_until(ward, silence.operation)};
        judge_hang(ward, &root, -1, silence.rank);
        return;
    }
    for (size_t i = 0; i < ward->hanging.count; i++)
        stalled = ward->hanging.items[i].is_stalled && stalled == 0 ? i : stalled;
    judge_hang(ward, &ward->hanging.items[stalled], -1, -1);
}

/* Who used a port that went down is waited for, whoever else is missing behind it. */
static bool name_loss(struct ward *ward)
{
    struct rail_loss loss;

    for (size_t i = 0; i < ward->hanging.count; i++) {
        if (!find_loss(ward, &ward->hanging.items[i], &loss))
            continue;
        judge_hang(ward, &ward->hanging.items[i], loss.rank, -1);
        return true;
    }
    return false;
}

static int64_t patience(const struct job *job)
{
    int64_t *durations = array_zeroed((job->steps.count + 1) * sizeof *durations);

    for (size_t i = 0; i < job->steps.count; i++)
        durations[i] = (int64_t)job->steps.items[i].duration_ns;
    int64_t usual = array_median(durations, job->steps.count);
    int64_t spread = array_spread(durations, job->steps.count);
    free(durations);
    return usual + array_multiple(spread, SPREAD_TIMES) + PATIENCE_NS;
}

void judge_hangs(struct judge *judge)
{
    struct ward ward = {.judge = judge};
    bool named = false;

    if (judge->job->evidence == NULL || judge->job->steps.count == 0)
        return;
    ward.host = &judge->job->evidence->host;
    ward.patience_ns = patience(judge->job);
    find_hanging(&ward);
    bool lost = name_loss(&ward);
    for (size_t i = 0; i < ward.hanging.count && !lost; i++)
        named |= name_missing(&ward, &ward.hanging.items[i], false);
    named |= lost;
    for (size_t i = 0; i < ward.hanging.count && !named; i++)
        named |= name_missing(&ward, &ward.hanging.items[i], true);
    if (!named && ward.hanging.count != 0)
        judge_silent(&ward);
    array_fini(&ward.hanging);
}
