/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What was told of processes. Invariant: what was told of one thread stands together, in order of time, so that a
 * verdict can name the rows that it rests on.
 */
#include "correlator/detail/hosted.h"

#include <string.h>

struct builder {
    struct hosted *hosted;
    const struct naming *naming;
    const struct timeline *timeline;
};

static int32_t process_of(const struct naming *naming, size_t stream, uint32_t number)
{
    for (size_t i = 0; i < naming->processes.count; i++)
        if (naming->processes.items[i].stream == stream && naming->processes.items[i].record.process == number)
            return (int32_t)i;
    return -1;
}

static bool calls(const struct naming *naming, const struct member *member, uint32_t tid)
{
    for (size_t i = 0; i < member->calls.count; i++)
        if (naming->calls.items[member->calls.items[i]].record.tid == tid)
            return true;
    return false;
}

struct thread {
    uint32_t tid;
    uint32_t communicator; /* that it serves; 0 = none known */
};

/* The one rank that a process has. Where it has several: that of the communicator which the thread serves or calls. */
static int32_t rank_of(const struct naming *naming, int32_t process, const struct thread *thread)
{
    int32_t rank = -1;

    for (size_t i = 0; i < naming->members.count; i++) {
        const struct member *member = &naming->members.items[i];
        if (member->process != process || member->rank < 0)
            continue;
        if (thread != NULL && member->record.communicator != thread->communicator &&
            (thread->communicator != 0 || !calls(naming, member, thread->tid)))
            continue;
        if (rank >= 0 && member->rank != rank)
            return -1;
        rank = member->rank;
    }
    return rank;
}

static int32_t rank_of_thread(const struct naming *naming, int32_t process, struct thread thread)
{
    int32_t rank = rank_of(naming, process, NULL);

    return rank >= 0 ? rank : rank_of(naming, process, &thread);
}

static void take_marker(struct builder *builder, size_t stream, const struct record_marker *record)
{
    struct marker *marker = array_add(&builder->hosted->markers);
    marker->process = process_of(builder->naming, stream, record->header.source);
    marker->rank = rank_of_thread(builder->naming, marker->process, (struct thread){.tid = record->tid});
    marker->entered_ns = timeline_map(builder->timeline, stream, record->entered_ns).ns;
    marker->record = *record;
}

static void take_delay(struct builder *builder, size_t stream, const struct record_host_delay *record)
{
    struct host_delay *delay = array_add(&builder->hosted->delays);
    delay->process = process_of(builder->naming, stream, record->header.source);
    delay->rank = rank_of_thread(builder->naming, delay->process, (struct thread){record->tid, record->communicator});
    delay->from_ns = timeline_map(builder->timeline, stream, record->from_ns).ns;
    delay->to_ns = timeline_map(builder->timeline, stream, record->to_ns).ns;
    delay->record = *record;
}

static int compare(uint64_t left, uint64_t right)
{
    return (left > right) - (left < right);
}

static int by_thread(const void *a, const void *b)
{
    const struct host_delay *left = a;
    const struct host_delay *right = b;
    int order = (left->process > right->process) - (left->process < right->process);

    if (order == 0)
        order = compare(left->record.tid, right->record.tid);
    if (order == 0)
        order = compare(left->record.flags & HOST_DELAY_ALONE, right->record.flags & HOST_DELAY_ALONE);
    return order != 0 ? order : compare(left->from_ns, right->from_ns);
}

static int by_caller(const void *a, const void *b)
{
    const struct marker *left = a;
    const struct marker *right = b;
    int order = (left->process > right->process) - (left->process < right->process);

    if (order == 0)
        order = compare(left->record.tid, right->record.tid);
    return order != 0 ? order : compare(left->entered_ns, right->entered_ns);
}

void hosted_build(struct hosted *hosted, const struct naming *naming, const struct intake *intake,
                  const struct timeline *timeline)
{
    struct builder builder = {.hosted = hosted, .naming = naming, .timeline = timeline};
    struct intake_walk walk = {.intake = intake, .skips_runs = true};
    union record record;

    memset(hosted, 0, sizeof *hosted);
    while (intake_next(&walk, &record)) {
        size_t stream = walk.stream;
        uint32_t number = record.header.source;
        if (record.header.kind != RECORD_MARKER && record.header.kind != RECORD_HOST_DELAY)
            continue;
        if (process_of(naming, stream, number) < 0)
            hosted->orphans_count++;
        else if (record.header.kind == RECORD_MARKER)
            take_marker(&builder, stream, &record.marker);
        else
            take_delay(&builder, stream, &record.host_delay);
    }
    array_sort(&hosted->delays, by_thread);
    array_sort(&hosted->markers, by_caller);
}

void hosted_fini(struct hosted *hosted)
{
    array_fini(&hosted->markers);
    array_fini(&hosted->delays);
}
