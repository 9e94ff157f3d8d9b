/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The job stage's first half: records -> operations across ranks. A collective is (communicator, n-th collective).
 * Groups of point-to-point calls have no number in common: two ranks' groups are one operation when the n-th send of
 * the one to the other is in the one and the n-th receive in the other. Invariant: each record belongs to exactly one
 * rank operation, each of those to exactly one operation.
 */
#include "correlator/job/job.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "correlator/hash.h"
#include "correlator/job/path.h"
#include "correlator/job/step.h"
#include "correlator/job/transport.h"
#include "correlator/node/arrival.h"
#include "correlator/turn.h"
#include "correlator/verdict/verdict.h"

struct unit { /* one rank's part of one operation: a record, or the records of one group */
    const struct record_rank_operation *record;
    uint64_t start_ns; /* first enqueue of the operation: only then sorted by it */
    uint32_t index;    /* of the record */
    uint32_t leader;   /* a unit of the same operation, itself for one of them */
    int32_t rank;      /* the record's */
};

struct key { /* what a record is sorted by: itself is far away */
    uint64_t communicator[IDENTITY_BYTES / sizeof(uint64_t)];
    uint64_t number; /* of its group, or sequence */
    int32_t rank;
    uint32_t index : 31;
    uint32_t is_group : 1;
};

struct end { /* one side of one send: both sides have equal (communicator, from, to, sequence) */
    const struct record_rank_operation *record;
    int32_t from;
    int32_t to;
    size_t unit;
};

struct known { /* an answer of rank_of */
    uint8_t communicator[IDENTITY_BYTES];
    int32_t rank;
    int32_t answer;
    bool is_known;
};
#define KNOWN_COUNT 32768 /* a power of two */

struct builder {
    struct job *job;
    const struct record_rank_operation *records;
    ARRAY(struct unit) units; /* one a record */
    struct known *known;      /* by what was asked, as far as there is room */
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
        builder->units.items[right].leader = (uint32_t)left;
    else
        builder->units.items[left].leader = (uint32_t)right;
}

static int by_collective(const void *a, const void *b)
{
    const struct key *left = a;
    const struct key *right = b;
    int order = 0;

    for (size_t i = 0; order == 0 && i < sizeof left->communicator / sizeof left->communicator[0]; i++)
        order = compare_numbers(left->communicator[i], right->communicator[i]);
    if (order == 0)
        order = (int)left->is_group - (int)right->is_group;
    if (order == 0 && left->is_group)
        order = (left->rank > right->rank) - (left->rank < right->rank);
    if (order == 0)
        order = compare_numbers(left->number, right->number);
    return order != 0 ? order : (left->rank > right->rank) - (left->rank < right->rank);
}

static struct key key_of(const struct record_rank_operation *record, size_t index)
{
    struct key key = {.number = record->group != 0 ? record->group : record->sequence,
                      .rank = record->rank,
                      .index = (uint32_t)index & INT32_MAX,
                      .is_group = record->group != 0};

    memcpy(key.communicator, record->communicator, sizeof key.communicator);
    for (size_t i = 0; i < sizeof key.communicator / sizeof key.communicator[0]; i++)
        key.communicator[i] = be64toh(key.communicator[i]); /* in the order of its bytes */
    return key;
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
    struct key *keys = array_zeroed((count + 1) * sizeof *keys);

    for (size_t i = 0; i < count; i++)
        keys[i] = key_of(&builder->records[i], i);
    array_order(keys, count, sizeof *keys, by_collective);
    array_reserve(&builder->units, count);
    builder->units.count = count;
    for (size_t i = 0; i < count; i++) {
        struct unit *unit = &builder->units.items[i];
        *unit = (struct unit){.record = &builder->records[keys[i].index], .index = keys[i].index, .rank = keys[i].rank};
        bool same = i > 0 && same_operation(unit->record, builder->units.items[i - 1].record);
        unit->leader = same ? builder->units.items[i - 1].leader : (uint32_t)i;
    }
    free(keys);
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
        order = (left->rank > right->rank) - (left->rank < right->rank);
    return order != 0 ? order : compare_numbers(left->index, right->index);
}

static void order_units(struct builder *builder)
{
    size_t count = builder->units.count;
    uint64_t *starts = array_zeroed(count * sizeof *starts);

    for (size_t i = 0; i < count; i++) {
        struct unit *unit = &builder->units.items[i];
        unit->leader = (uint32_t)leader_of(builder, i);
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
    operation->flags = RANK_OPERATION_NO_WIRE;
    operation->first_rank = job->rank_operations.count;
}

static int32_t rank_of(struct builder *builder, const struct record_rank_operation *record)
{
    const struct job_ranks *ranks = &builder->job->ranks;
    uint64_t words[IDENTITY_BYTES / sizeof(uint64_t)], hash = hash_number(HASH_START, (uint32_t)record->rank);

    memcpy(words, record->communicator, sizeof words);
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        hash = hash_number(hash, words[i]);
    struct known *known = &builder->known[hash % KNOWN_COUNT];
    if (!known->is_known || known->rank != record->rank ||
        memcmp(known->communicator, record->communicator, IDENTITY_BYTES) != 0) {
        memcpy(known->communicator, record->communicator, IDENTITY_BYTES);
        known->rank = record->rank;
        known->answer = ranks->rank_of(ranks->context, record->communicator, record->rank);
        known->is_known = true;
    }
    return known->answer;
}

static void add_unit(struct builder *builder, const struct unit *unit, bool same_rank)
{
    struct job *job = builder->job;

    if (same_rank) {
        add_record(&job->rank_operations.items[job->rank_operations.count - 1].record, unit->record);
    } else {
        struct rank_operation *of = &job->rank_operations.items[job->rank_operations.count++]; /* reserved */
        *of = (struct rank_operation){.record = *unit->record,
                                      .operation = (int32_t)job->operations.count - 1,
                                      .rank = rank_of(builder, unit->record)};
        job->operations.items[of->operation].ranks++;
    }
    job->rank_operation_of.items[unit->index] = (int32_t)job->rank_operations.count - 1;
}

static void add_units(struct builder *builder)
{
    struct job *job = builder->job;
    const struct unit *last = NULL;

    array_reserve(&job->rank_operation_of, builder->units.count);
    array_reserve(&job->rank_operations, builder->units.count);
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

/* The one of all ranks that have some of it on the wire. */
static uint8_t algorithm_of(const struct job *job, const struct operation *operation)
{
    uint8_t algorithm = ALGORITHM_UNKNOWN;
    bool known = false;

    for (size_t i = 0; i < operation->ranks; i++) {
        const struct record_rank_operation *record = &job->rank_operations.items[operation->first_rank + i].record;
        if ((record->flags & RANK_OPERATION_NO_WIRE) != 0)
            continue;
        if (known && record->algorithm != algorithm)
            return ALGORITHM_UNKNOWN;
        algorithm = record->algorithm;
        known = true;
    }
    return algorithm;
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
    }
    operation->algorithm = algorithm_of(job, operation);
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

static void lay_out(struct job *job, struct job_ranks ranks, const struct evidence *evidence,
                    const struct record_rank_operation *records, size_t count)
{
    struct builder builder = {.job = job, .records = records};

    memset(job, 0, sizeof *job);
    job->ranks = ranks;
    job->evidence = evidence;
    builder.known = array_zeroed(KNOWN_COUNT * sizeof *builder.known);
    gather(&builder, count);
    order_units(&builder);
    add_units(&builder);
    array_fini(&builder.units);
    free(builder.known);
}

static void judge(struct job *job)
{
    for (size_t i = 0; i < job->operations.count; i++)
        sum_operation(job, &job->operations.items[i]);
    number_groups(job);
    turn_list_all(&job->turns, job);
    arrival_find(job);
    step_find(job);
    path_find(job);
    transport_find(job);
    verdict_find(job);
    array_fini(&job->turns);
}

void job_build(struct job *job, struct job_ranks ranks, const struct evidence *evidence,
               const struct record_rank_operation *records, size_t count)
{
    lay_out(job, ranks, evidence, records, count);
    judge(job);
}

void job_take(struct job *job, struct job_ranks ranks, const struct evidence *evidence,
              struct record_rank_operation **records, size_t count)
{
    lay_out(job, ranks, evidence, *records, count);
    free(*records);
    *records = NULL;
    judge(job);
}

void verdict_fini(struct verdict *verdict)
{
    array_fini(&verdict->numbers);
    array_fini(&verdict->candidates);
}

void job_fini(struct job *job)
{
    array_fini(&job->operations);
    array_fini(&job->rank_operations);
    array_fini(&job->rank_operation_of);
    array_fini(&job->steps);
    array_fini(&job->rank_steps);
    array_fini(&job->path);
    array_fini(&job->transports);
    for (size_t i = 0; i < job->verdicts.count; i++)
        verdict_fini(&job->verdicts.items[i]);
    array_fini(&job->verdicts);
}

const char *arrival_of_name(enum arrival_of of)
{
    static const char *const names[] = {NULL, "enqueue", "host", "gpu"};
    return names[of];
}

const char *step_kind_name(enum step_kind kind)
{
    static const char *const names[] = {
#define STEP_KIND(name, text, meaning) text,
#include "correlator/job/step_kind.def"
#undef STEP_KIND
    };
    return names[kind];
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
