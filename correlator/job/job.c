/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The job stage's first half: records -> operations across ranks. A collective is (communicator, n-th collective).
 * Groups of point-to-point calls have no number in common: two ranks' groups are one operation when the n-th send of
 * the one to the other is in the one and the n-th receive in the other. Invariant: each record belongs to exactly one
 * rank operation, each of those to exactly one operation.
 */
#include "correlator/job/job.h"

#include <stdlib.h>
#include <string.h>

#include "correlator/job/step.h"
#include "correlator/job/transport.h"
#include "correlator/node/arrival.h"
#include "correlator/verdict/verdict.h"

struct unit { /* one rank's part of one operation: a record, or the records of one group */
    const struct record_rank_operation *record;
    size_t index;      /* of the record */
    size_t leader;     /* a unit of the same operation, itself for one of them */
    uint64_t start_ns; /* first enqueue of the operation: only then sorted by it */
    int32_t operation;
};

struct end { /* one side of one send: both sides have equal (communicator, from, to, sequence) */
    const struct record_rank_operation *record;
    int32_t from;
    int32_t to;
    size_t unit;
};

struct builder {
    struct job *job;
    const struct record_rank_operation *records;
    ARRAY(struct unit) units; /* one a record */
};

static int compare_numbers(uint64_t left, uint64_t right)
{
    return (left > right) - (left < right);
}

static size_t leader_of(struct builder *builder, size_t unit)
{
    while (builder->units.items[unit].leader != unit)
        unit = builder->units.items[unit].leader;
    return unit;
}

static void unite(struct builder *builder, size_t a, size_t b)
{
    size_t left = leader_of(builder, a);
    size_t right = leader_of(builder, b);

    if (left < right)
        builder->units.items[right].leader = left;
    else
        builder->units.items[left].leader = right;
}

static int by_collective(const void *a, const void *b)
{
    const struct record_rank_operation *left = ((const struct unit *)a)->record;
    const struct record_rank_operation *right = ((const struct unit *)b)->record;
    int order = memcmp(left->communicator, right->communicator, IDENTITY_BYTES);

    if (order == 0)
        order = (left->group != 0) - (right->group != 0);
    if (order == 0 && left->group != 0)
        order = (left->rank > right->rank) - (left->rank < right->rank);
    if (order == 0)
        order = left->group != 0 ? compare_numbers(left->group, right->group)
                                 : compare_numbers(left->sequence, right->sequence);
    if (order == 0)
        order = (left->rank > right->rank) - (left->rank < right->rank);
    return order;
}

static bool same_operation(const struct record_rank_operation *a, const struct record_rank_operation *b)
{
    if (memcmp(a->communicator, b->communicator, IDENTITY_BYTES) != 0 || (a->group != 0) != (b->group != 0))
        return false;
    return a->group != 0 ? a->group == b->group && a->rank == b->rank : a->sequence == b->sequence;
}

static int by_pair(const void *a, const void *b)
{
    const struct end *left = a;
    const struct end *right = b;
    int order = memcmp(left->record->communicator, right->record->communicator, IDENTITY_BYTES);

    if (order == 0)
        order = (left->from > right->from) - (left->from < right->from);
    if (order == 0)
        order = (left->to > right->to) - (left->to < right->to);
    return order != 0 ? order : compare_numbers(left->record->sequence, right->record->sequence);
}

static void unite_pairs(struct builder *builder)
{
    ARRAY(struct end) ends = {0};

    for (size_t i = 0; i < builder->units.count; i++) {
        const struct record_rank_operation *record = builder->units.items[i].record;
        bool sends = record->operation == OPERATION_SEND;
        if (record->group == 0)
            continue;
        struct end *end = array_add(&ends);
        end->record = record;
        end->from = sends ? record->rank : record->peer;
        end->to = sends ? record->peer : record->rank;
        end->unit = i;
    }
    array_sort(&ends, by_pair);
    for (size_t i = 1; i < ends.count; i++)
        if (by_pair(&ends.items[i - 1], &ends.items[i]) == 0)
            unite(builder, ends.items[i - 1].unit, ends.items[i].unit);
    array_fini(&ends);
}

static void gather(struct builder *builder, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct unit *unit = array_add(&builder->units);
        unit->record = &builder->records[i];
        unit->index = i;
    }
    array_sort(&builder->units, by_collective);
    for (size_t i = 0; i < count; i++) {
        struct unit *unit = &builder->units.items[i];
        bool same = i > 0 && same_operation(unit->record, builder->units.items[i - 1].record);
        unit->leader = same ? builder->units.items[i - 1].leader : i;
    }
    unite_pairs(builder);
}

/* Units in the order that operations are to have, those of one operation together and by rank. */
static int by_start(const void *a, const void *b)
{
    const struct unit *left = a;
    const struct unit *right = b;
    int order = compare_numbers(left->start_ns, right->start_ns);

    if (order == 0)
        order = compare_numbers(left->leader, right->leader);
    if (order == 0)
        order = (left->record->rank > right->record->rank) - (left->record->rank < right->record->rank);
    return order != 0 ? order : compare_numbers(left->index, right->index);
}

static void order_units(struct builder *builder)
{
    size_t count = builder->units.count;
    uint64_t *starts = array_zeroed(count * sizeof *starts);

    for (size_t i = 0; i < count; i++) {
        struct unit *unit = &builder->units.items[i];
        unit->leader = leader_of(builder, i);
        uint64_t *start = &starts[unit->leader];
        if (*start == 0 || unit->record->enqueued_ns < *start)
            *start = unit->record->enqueued_ns;
    }
    for (size_t i = 0; i < count; i++)
        builder->units.items[i].start_ns = starts[builder->units.items[i].leader];
    free(starts);
    array_sort(&builder->units, by_start);
}

static void take_earlier(uint64_t *into, uint64_t ns)
{
    if (ns != 0 && (*into == 0 || ns < *into))
        *into = ns;
}

static void take_later(uint64_t *into, uint64_t ns)
{
    if (ns > *into)
        *into = ns;
}

static void take_rank(int32_t *into, int32_t rank, bool first)
{
    if (first || *into == -1)
        *into = rank;
    else if (rank != -1 && rank != *into)
        *into = -2; /* several */
}

/* Adds one more call of a group to what the rank did in it. */
static void add_record(struct record_rank_operation *sum, const struct record_rank_operation *record)
{
    if (sum->gpu_ready_ns == 0 || (record->gpu_ready_ns != 0 && record->gpu_ready_ns < sum->gpu_ready_ns)) {
        uint16_t kept = sum->flags & (uint16_t)~RANK_OPERATION_GPU_READY_LATEST;
        sum->flags = kept | (record->flags & RANK_OPERATION_GPU_READY_LATEST);
        sum->gpu_ready_ns = record->gpu_ready_ns;
        sum->held_ns = record->held_ns;
    }
    bool no_wire = (sum->flags & record->flags & RANK_OPERATION_NO_WIRE) != 0;
    sum->flags |= record->flags & (uint16_t) ~(RANK_OPERATION_GPU_READY_LATEST | RANK_OPERATION_NO_WIRE);
    sum->flags &= (uint16_t)(no_wire ? 0xffff : ~RANK_OPERATION_NO_WIRE);
    sum->buffer_bytes += record->buffer_bytes;
    sum->expected_bytes += record->expected_bytes;
    sum->observed_bytes += record->observed_bytes;
    sum->received_bytes += record->received_bytes;
    sum->active_ns += record->active_ns;
    sum->receive_active_ns += record->receive_active_ns;
    sum->retransmitted_frames += record->retransmitted_frames;
    sum->marked_frames += record->marked_frames;
    take_earlier(&sum->enqueued_ns, record->enqueued_ns);
    take_earlier(&sum->host_ready_ns, record->host_ready_ns);
    take_earlier(&sum->first_data_ns, record->first_data_ns);
    take_later(&sum->last_data_ns, record->last_data_ns);
    take_later(&sum->end_ns, record->end_ns);
    take_later(&sum->received_ns, record->received_ns);
    take_later(&sum->bound_ns, record->bound_ns);
    take_rank(&sum->next, record->next, false);
    take_rank(&sum->previous, record->previous, false);
}

static void open_operation(struct job *job, const struct unit *unit)
{
    struct operation *operation = array_add(&job->operations);

    memcpy(operation->communicator, unit->record->communicator, IDENTITY_BYTES);
    operation->kind = unit->record->group != 0 ? OPERATION_GROUP : unit->record->operation;
    operation->sequence = unit->record->sequence;
    operation->step = -1;
    operation->place = -1;
    operation->ranks_count = unit->record->ranks_count;
    operation->start_ns = unit->start_ns;
    operation->algorithm = unit->record->algorithm;
    operation->flags = RANK_OPERATION_NO_WIRE;
    operation->first_rank = job->rank_operations.count;
}

static void add_unit(struct builder *builder, const struct unit *unit, bool same_rank)
{
    struct job *job = builder->job;

    if (same_rank) {
        add_record(&job->rank_operations.items[job->rank_operations.count - 1].record, unit->record);
    } else {
        struct rank_operation *of = array_add(&job->rank_operations);
        of->record = *unit->record;
        of->operation = (int32_t)job->operations.count - 1;
        of->rank = job->ranks.rank_of(job->ranks.context, unit->record->communicator, unit->record->rank);
        job->operations.items[of->operation].ranks++;
    }
    job->rank_operation_of.items[unit->index] = (int32_t)job->rank_operations.count - 1;
}

static void add_units(struct builder *builder)
{
    struct job *job = builder->job;
    const struct unit *last = NULL;

    for (size_t i = 0; i < builder->units.count; i++)
        array_add(&job->rank_operation_of);
    for (size_t i = 0; i < builder->units.count; i++) {
        const struct unit *unit = &builder->units.items[i];
        bool same = last != NULL && last->leader == unit->leader && last->start_ns == unit->start_ns;
        if (!same)
            open_operation(job, unit);
        add_unit(builder, unit, same && last->record->rank == unit->record->rank);
        last = unit;
    }
}

static void sum_operation(struct job *job, struct operation *operation)
{
    bool no_wire = true;

    operation->ranks_seen = (uint32_t)operation->ranks;
    for (size_t i = 0; i < operation->ranks; i++) {
        const struct record_rank_operation *record = &job->rank_operations.items[operation->first_rank + i].record;
        no_wire &= (record->flags & RANK_OPERATION_NO_WIRE) != 0;
        operation->flags |= record->flags & (RANK_OPERATION_INCOMPLETE | RANK_OPERATION_UNKNOWN_ALGORITHM);
        take_later(&operation->end_ns, record->end_ns);
        take_later(&operation->buffer_bytes, record->buffer_bytes);
        take_later(&operation->bound_ns, record->bound_ns);
        if (record->algorithm != operation->algorithm)
            operation->algorithm = ALGORITHM_UNKNOWN;
    }
    if (!no_wire)
        operation->flags &= (uint16_t)~RANK_OPERATION_NO_WIRE;
}

/* Groups are counted for each communicator in order of their first enqueue. */
static void number_groups(struct job *job)
{
    for (size_t i = 0; i < job->operations.count; i++) {
        struct operation *operation = &job->operations.items[i];
        if (operation->kind != OPERATION_GROUP)
            continue;
        operation->sequence = 0;
        for (size_t j = i; j-- > 0;) {
            const struct operation *before = &job->operations.items[j];
            if (before->kind == OPERATION_GROUP &&
                memcmp(before->communicator, operation->communicator, IDENTITY_BYTES) == 0) {
                operation->sequence = before->sequence + 1;
                break;
            }
        }
    }
}

void job_build(struct job *job, struct job_ranks ranks, const struct evidence *evidence,
               const struct record_rank_operation *records, size_t count)
{
    struct builder builder = {.job = job, .records = records};

    memset(job, 0, sizeof *job);
    job->ranks = ranks;
    job->evidence = evidence;
    gather(&builder, count);
    order_units(&builder);
    add_units(&builder);
    array_fini(&builder.units);
    for (size_t i = 0; i < job->operations.count; i++)
        sum_operation(job, &job->operations.items[i]);
    number_groups(job);
    arrival_find(job);
    step_find(job);
    transport_find(job);
    verdict_find(job);
}

void job_fini(struct job *job)
{
    array_fini(&job->operations);
    array_fini(&job->rank_operations);
    array_fini(&job->rank_operation_of);
    array_fini(&job->steps);
    array_fini(&job->rank_steps);
    array_fini(&job->transports);
    for (size_t i = 0; i < job->verdicts.count; i++)
        array_fini(&job->verdicts.items[i].numbers);
    array_fini(&job->verdicts);
}

const char *arrival_of_name(enum arrival_of of)
{
    static const char *const names[] = {NULL, "enqueue", "host", "gpu"};
    return names[of];
}

const char *verdict_class_name(enum verdict_class class)
{
    static const char *const names[] = {
#define VERDICT_CLASS(name, text, fields, meaning, more) text,
#include "correlator/verdict/verdict_class.def"
#undef VERDICT_CLASS
    };
    return names[class];
}

uint32_t verdict_class_more(enum verdict_class class)
{
    static const uint32_t mores[] = {
#define VERDICT_CLASS(name, text, fields, meaning, more) (more),
#include "correlator/verdict/verdict_class.def"
#undef VERDICT_CLASS
    };
    return mores[class];
}
