/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From one boot of an agent to the next. Invariant: what is joined was in both: the earlier entry had not ended, the
 * later one is called late by its agent, and nothing that both know differs.
 */
#include "correlator/naming/naming_late.h"

#include <stdlib.h>
#include <string.h>

static bool goes_on(const struct intake *intake, size_t before, size_t after)
{
    const struct intake_stream *earlier = &intake->streams.items[before];
    const struct intake_stream *later = &intake->streams.items[after];

    return earlier->kind == EMITTER_HOST && later->kind == EMITTER_HOST && earlier->greeted && later->greeted &&
           earlier->hello.started_ns < later->hello.started_ns &&
           memcmp(earlier->hello.kernel_boot, later->hello.kernel_boot, sizeof later->hello.kernel_boot) == 0;
}

static bool same_process(const struct process *a, const struct process *b)
{
    return a->record.pid == b->record.pid && a->record.started_ns == b->record.started_ns && a->record.started_ns != 0;
}

static void find_processes(struct naming_late *late, struct naming *naming, const struct intake *intake)
{
    for (size_t i = 0; i < naming->processes.count; i++) {
        struct process *later = &naming->processes.items[i];
        late->processes[i] = (int32_t)i;
        for (size_t j = 0; j < naming->processes.count && late->processes[i] == (int32_t)i; j++) {
            struct process *earlier = &naming->processes.items[j];
            if (!goes_on(intake, earlier->stream, later->stream) || !same_process(earlier, later))
                continue;
            late->processes[i] = (int32_t)j;
        }
    }
}

/* The first boot's entry of what several boots have described. */
static void follow(int32_t *same, size_t count)
{
    for (size_t i = 0; i < count; i++)
        while (same[same[i]] != same[i])
            same[i] = same[same[i]];
}

static bool differ(uint64_t a, uint64_t b, uint64_t unknown)
{
    return a != unknown && b != unknown && a != b;
}

static bool same_member(const struct record_communicator *earlier, const struct record_communicator *later)
{
    return (later->flags & COMMUNICATOR_LATE) != 0 && earlier->pointer == later->pointer &&
           earlier->destroyed_ns == 0 && !differ(earlier->hash, later->hash, 0) &&
           !differ((uint64_t)earlier->rank, (uint64_t)later->rank, UINT64_MAX) &&
           !differ((uint64_t)earlier->ranks_count, (uint64_t)later->ranks_count, 0);
}

static void take_over_member(struct member *earlier, const struct member *later)
{
    struct record_communicator *record = &earlier->record;
    const struct record_communicator *more = &later->record;

    record->flags |= more->flags & (COMMUNICATOR_FINALIZED | COMMUNICATOR_REVOKED);
    record->destroyed_ns = more->destroyed_ns;
    record->ending = more->ending;
    earlier->destroyed_ns = later->destroyed_ns;
    if (record->identity_kind == IDENTITY_UNKNOWN && more->identity_kind != IDENTITY_UNKNOWN) {
        record->identity_kind = more->identity_kind;
        memcpy(record->identity, more->identity, IDENTITY_BYTES);
    }
    record->hash = record->hash != 0 ? record->hash : more->hash;
    record->rank = record->rank >= 0 ? record->rank : more->rank;
    record->ranks_count = record->ranks_count != 0 ? record->ranks_count : more->ranks_count;
    record->cuda_device = record->cuda_device >= 0 ? record->cuda_device : more->cuda_device;
}

static void find_members(struct naming_late *late, struct naming *naming, const struct intake *intake)
{
    for (size_t i = 0; i < naming->members.count; i++) {
        const struct member *later = &naming->members.items[i];
        late->members[i] = (int32_t)i;
        for (size_t j = 0; j < naming->members.count && (later->record.flags & COMMUNICATOR_LATE) != 0; j++) {
            struct member *earlier = &naming->members.items[j];
            if (late->processes[earlier->process] != late->processes[later->process] ||
                !goes_on(intake, earlier->stream, later->stream) || !same_member(&earlier->record, &later->record))
                continue;
            late->members[i] = (int32_t)j;
            take_over_member(earlier, later);
            break;
        }
    }
}

struct place { /* of a queue pair, to be compared with others */
    int32_t process;
    const struct queue_pair *pair;
    int32_t index;
};

static int by_place(const void *a, const void *b)
{
    const struct place *left = a;
    const struct place *right = b;
    int order = (left->process > right->process) - (left->process < right->process);

    if (order == 0)
        order = memcmp(left->pair->record.device, right->pair->record.device, DEVICE_NAME_BYTES);
    if (order == 0)
        order = (left->pair->record.qpn > right->pair->record.qpn) - (left->pair->record.qpn < right->pair->record.qpn);
    return order;
}

static void take_over_queue_pair(struct queue_pair *earlier, const struct queue_pair *later)
{
    earlier->record.state = later->record.state;
    earlier->record.destroyed_ns = later->record.destroyed_ns;
    earlier->destroyed_ns = later->destroyed_ns;
}

/* Of the earlier ones with the same place the one that lived when the later boot began. */
static void find_queue_pair(struct naming_late *late, struct naming *naming, const struct intake *intake,
                            const struct place *places, size_t count, size_t which)
{
    const struct place *later = &places[which];

    for (size_t i = 0; i < count; i++) {
        const struct place *earlier = &places[i];
        if (i == which || !goes_on(intake, earlier->pair->stream, later->pair->stream) ||
            earlier->pair->record.destroyed_ns != 0)
            continue;
        late->queue_pairs[later->index] = earlier->index;
        take_over_queue_pair(&naming->queue_pairs.items[earlier->index], later->pair);
        return;
    }
}

static void find_queue_pairs(struct naming_late *late, struct naming *naming, const struct intake *intake)
{
    ARRAY(struct place) places = {0};

    for (size_t i = 0; i < naming->queue_pairs.count; i++) {
        const struct queue_pair *pair = &naming->queue_pairs.items[i];
        late->queue_pairs[i] = (int32_t)i;
        *(struct place *)array_add(&places) = (struct place){late->processes[pair->process], pair, (int32_t)i};
    }
    array_sort(&places, by_place);
    for (size_t begin = 0, end; begin < places.count; begin = end) {
        for (end = begin + 1; end < places.count && by_place(&places.items[begin], &places.items[end]) == 0;)
            end++;
        for (size_t i = begin; i < end; i++)
            if ((places.items[i].pair->record.flags & QUEUE_PAIR_LATE) != 0)
                find_queue_pair(late, naming, intake, places.items + begin, end - begin, i - begin);
    }
    array_fini(&places);
}

void naming_late_find(struct naming_late *late, struct naming *naming, const struct intake *intake)
{
    late->processes = array_zeroed(naming->processes.count * sizeof *late->processes);
    late->members = array_zeroed(naming->members.count * sizeof *late->members);
    late->queue_pairs = array_zeroed(naming->queue_pairs.count * sizeof *late->queue_pairs);
    find_processes(late, naming, intake);
    follow(late->processes, naming->processes.count);
    for (size_t i = 0; i < naming->processes.count; i++)
        if (late->processes[i] != (int32_t)i && naming->processes.items[i].ended_ns != 0)
            naming->processes.items[late->processes[i]].ended_ns = naming->processes.items[i].ended_ns;
    find_members(late, naming, intake);
    follow(late->members, naming->members.count);
    find_queue_pairs(late, naming, intake);
    follow(late->queue_pairs, naming->queue_pairs.count);
}

void naming_late_fini(struct naming_late *late)
{
    free(late->processes);
    free(late->members);
    free(late->queue_pairs);
}
