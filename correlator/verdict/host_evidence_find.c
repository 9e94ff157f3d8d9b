/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Host evidence out of the tables of naming, hosted and posting. Invariant: a track's stays carry the row numbers of
 * those tables, one after the other, since both are sorted by thread and time.
 */
#include "correlator/verdict/host_evidence_find.h"

#include <stdlib.h>
#include <string.h>

enum marker_kind {
#define MARKER(name, number, text) MARKER_##name = (number),
#include "wire/marker.def"
#undef MARKER
};

/* ---- tracks ---- */

/* Continues the track before when it is the same one. */
static struct host_track *track_of(struct host_evidence *evidence, const struct host_track *wanted)
{
    struct host_track *last = evidence->tracks.count == 0 ? NULL : &evidence->tracks.items[evidence->tracks.count - 1];
    bool same = last != NULL && last->rank == wanted->rank && last->tid == wanted->tid &&
                last->source == wanted->source && last->role == wanted->role &&
                last->first_row + (int32_t)last->count == wanted->first_row;

    if (!same) {
        last = array_add(&evidence->tracks);
        *last = *wanted;
        last->first = evidence->stays.count;
    }
    last->count++;
    return last;
}

static void add_delay(struct host_evidence *evidence, const struct host_delay *delay, int32_t row)
{
    const struct record_host_delay *record = &delay->record;

    if (delay->rank < 0 || delay->to_ns <= delay->from_ns)
        return;
    track_of(evidence, &(struct host_track){
                           .rank = delay->rank,
                           .tid = record->tid,
                           .role = record->role,
                           .source = (record->flags & HOST_DELAY_ALONE) != 0 ? HOST_OF_STAY : HOST_OF_DELAY,
                           .first_row = row,
                       });
    *(struct host_stay *)array_add(&evidence->stays) = (struct host_stay){
        .from_ns = delay->from_ns,
        .to_ns = delay->to_ns,
        .amounts =
            {
                [HOST_SLEEP] = record->sleep_ns,
                [HOST_RUN_QUEUE] = record->run_queue_ns,
                [HOST_IO_WAIT] = record->io_wait_ns,
                [HOST_MAJOR_FAULTS] = record->major_faults,
                [HOST_MINOR_FAULTS] = record->minor_faults,
                [HOST_RETRANSMISSIONS] = record->tcp_retransmissions,
                [HOST_TCP_BYTES] = record->tcp_bytes,
            },
    };
}

static bool is_wait(const struct record_marker *record)
{
    return (record->flags & MARKER_SUBMITTED) == 0 && record->duration_ns != 0 &&
           (record->marker == MARKER_STREAM_SYNCHRONIZE || record->marker == MARKER_DEVICE_SYNCHRONIZE ||
            record->marker == MARKER_EVENT_SYNCHRONIZE);
}

/* A runtime's wait is often a driver's wait inside: the outer one is enough. */
static bool is_inside(const struct host_evidence *evidence, const struct host_track *track, uint64_t from_ns)
{
    return track->count > 1 && evidence->stays.items[evidence->stays.count - 1].to_ns > from_ns;
}

static void add_wait(struct host_evidence *evidence, const struct marker *marker, int32_t row)
{
    uint64_t duration_ns = marker->record.duration_ns;

    if (marker->rank < 0)
        return;
    struct host_track *track = track_of(
        evidence, &(struct host_track){marker->rank, marker->record.tid, HOST_DELAY_CALLS, HOST_OF_MARKER, row, 0, 0});
    bool inside = is_inside(evidence, track, marker->entered_ns);
    struct host_stay *stay = array_add(&evidence->stays);
    *stay = (struct host_stay){.from_ns = marker->entered_ns, .to_ns = marker->entered_ns + duration_ns};
    if (inside) /* it keeps its row, and counts for nothing */
        stay->from_ns = stay->to_ns = stay[-1].to_ns;
    else if (is_wait(&marker->record))
        stay->amounts[HOST_GPU_WAIT] = duration_ns;
}

static int by_thread(const void *a, const void *b)
{
    const struct host_track *left = a;
    const struct host_track *right = b;

    if (left->rank != right->rank)
        return left->rank < right->rank ? -1 : 1;
    if (left->tid != right->tid)
        return left->tid < right->tid ? -1 : 1;
    return (left->source > right->source) - (left->source < right->source);
}

static void find_tracks(struct host_evidence *evidence, const struct hosted *hosted)
{
    for (size_t i = 0; i < hosted->delays.count; i++)
        add_delay(evidence, &hosted->delays.items[i], (int32_t)i);
    for (size_t i = 0; i < hosted->markers.count; i++)
        add_wait(evidence, &hosted->markers.items[i], (int32_t)i);
    array_sort(&evidence->tracks, by_thread);
}

/* ---- posts ---- */

static int by_rank_and_time(const void *a, const void *b)
{
    const struct host_post *left = a;
    const struct host_post *right = b;

    if (left->rank != right->rank)
        return left->rank < right->rank ? -1 : 1;
    return (left->wire_ns > right->wire_ns) - (left->wire_ns < right->wire_ns);
}

static void find_posts(struct host_evidence *evidence, const struct naming *naming, const struct posting *posting)
{
    for (size_t i = 0; i < posting->posts.count; i++) {
        const struct posted *post = &posting->posts.items[i];
        int32_t member = naming->queue_pairs.items[post->queue_pair].member;
        int32_t rank = member < 0 ? -1 : naming->members.items[member].rank;
        if (rank >= 0 && post->message >= 0)
            *(struct host_post *)array_add(&evidence->posts) = (struct host_post){
                rank, post->posted_ns, naming->messages.items[post->message].first_ns, post->bound_ns, (int32_t)i};
    }
    array_sort(&evidence->posts, by_rank_and_time);
}

/* ---- ranks and what was followed of them ---- */

static void find_followed(struct host_evidence *evidence, const struct host_tables *tables)
{
    const struct naming *naming = tables->naming;

    for (size_t i = 0; i < tables->posting->followed.count; i++) {
        const struct followed *followed = &tables->posting->followed.items[i];
        if (followed->record.what != FOLLOW_DELAYS || followed->record.end != FOLLOWED_IN_TIME)
            continue;
        for (size_t j = 0; j < naming->members.count; j++)
            if (naming->members.items[j].stream == followed->stream && naming->members.items[j].rank >= 0)
                *(struct host_followed *)array_add(&evidence->followed) =
                    (struct host_followed){naming->members.items[j].rank, followed->from_ns, followed->to_ns};
    }
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

static int by_communicator(const void *a, const void *b)
{
    const struct host_member *left = a;
    const struct host_member *right = b;
    int order = memcmp(left->communicator, right->communicator, IDENTITY_BYTES);

    if (order == 0)
        order =
            (left->communicator_rank > right->communicator_rank) - (left->communicator_rank < right->communicator_rank);
    return order;
}

static void find_members(struct host_evidence *evidence, const struct host_tables *tables)
{
    for (size_t i = 0; i < tables->naming->members.count; i++) {
        const struct member *member = &tables->naming->members.items[i];
        uint64_t ended_ns = member->process < 0 ? 0 : tables->naming->processes.items[member->process].ended_ns;
        uint64_t last_ns = tables->intake->streams.items[member->stream].last_ns;
        struct host_member *known = array_add(&evidence->members);
        memcpy(known->communicator, member->record.identity, IDENTITY_BYTES);
        known->communicator_rank = member->record.rank;
        known->rank = member->rank;
        known->machine = member->stream;
        known->gone_ns = earlier(member->destroyed_ns, ended_ns);
        known->heard_ns = timeline_map(tables->timeline, member->stream, last_ns).ns;
    }
    array_sort(&evidence->members, by_communicator);
}

static struct host_watch *watch_of(struct host_evidence *evidence, uint64_t emitter_id)
{
    for (size_t i = 0; i < evidence->watches.count; i++)
        if (evidence->watches.items[i].emitter_id == emitter_id)
            return &evidence->watches.items[i];
    struct host_watch *made = array_add(&evidence->watches);
    made->emitter_id = emitter_id;
    return made;
}

static void find_watches(struct host_evidence *evidence, const struct host_tables *tables)
{
    for (size_t i = 0; i < tables->intake->streams.count; i++) {
        const struct intake_stream *stream = &tables->intake->streams.items[i];
        if (stream->kind != EMITTER_NIC)
            continue;
        uint64_t heard_ns = timeline_map(tables->timeline, i, stream->last_ns).ns;
        struct host_watch *watch = watch_of(evidence, stream->emitter_id);
        watch->heard_ns = heard_ns > watch->heard_ns ? heard_ns : watch->heard_ns;
    }
}

static void find_back_offs(struct host_evidence *evidence, const struct naming *naming)
{
    for (size_t i = 0; i < naming->counters.count; i++) {
        const struct counter_total *counter = &naming->counters.items[i];
        if (strncmp(counter->record.name, "probe_back_offs_total", sizeof counter->record.name) != 0)
            continue;
        for (size_t j = 0; j < naming->members.count; j++) {
            const struct member *member = &naming->members.items[j];
            if (member->stream != counter->stream || member->rank < 0)
                continue;
            while (evidence->back_offs.count <= (size_t)member->rank)
                array_add(&evidence->back_offs);
            if (counter->record.total > evidence->back_offs.items[member->rank]) /* it has several communicators */
                evidence->back_offs.items[member->rank] = counter->record.total;
        }
    }
}

/* ---- failures ---- */

static int compare_failures(const void *left, const void *right)
{
    const struct failure *a = *(const struct failure *const *)left;
    const struct failure *b = *(const struct failure *const *)right;

    if (a->at_ns != b->at_ns)
        return a->at_ns < b->at_ns ? -1 : 1;
    return (a > b) - (a < b);
}

const struct failure **host_failures_by_time(const struct naming *naming)
{
    const struct failure **ordered = array_zeroed((naming->failures.count + 1) * sizeof(const struct failure *));

    for (size_t i = 0; i < naming->failures.count; i++)
        ordered[i] = &naming->failures.items[i];
    qsort(ordered, naming->failures.count, sizeof(const struct failure *), compare_failures);
    return ordered;
}

/* A failure that concerns no one communicator concerns its process: whose rank that is. */
static int32_t rank_of_failure(const struct naming *naming, const struct failure *failure)
{
    int32_t rank = -1;

    if (failure->member >= 0)
        return naming->members.items[failure->member].rank;
    for (size_t i = 0; i < naming->members.count; i++) {
        const struct member *member = &naming->members.items[i];
        if (member->process != failure->process || failure->process < 0 || member->rank < 0)
            continue;
        if (rank >= 0 && rank != member->rank)
            return -1;
        rank = member->rank;
    }
    return rank;
}

static void find_failures(struct host_evidence *evidence, const struct naming *naming)
{
    const struct failure **ordered = host_failures_by_time(naming);

    for (size_t i = 0; i < naming->failures.count; i++)
        *(struct host_failure *)array_add(&evidence->failures) = (struct host_failure){
            .at_ns = ordered[i]->at_ns,
            .cause = ordered[i]->record.cause,
            .rank = rank_of_failure(naming, ordered[i]),
            .result = ordered[i]->record.result,
            .row = (int32_t)i,
            .communicator = ordered[i]->member < 0 ? -1 : naming->members.items[ordered[i]->member].communicator,
            .text = ordered[i]->record.text,
            .text_bytes = strnlen(ordered[i]->record.text, sizeof ordered[i]->record.text),
        };
    free(ordered);
}

void host_evidence_find(struct host_evidence *evidence, const struct host_tables *tables)
{
    find_tracks(evidence, tables->hosted);
    find_posts(evidence, tables->naming, tables->posting);
    find_followed(evidence, tables);
    find_members(evidence, tables);
    find_watches(evidence, tables);
    find_back_offs(evidence, tables->naming);
    find_failures(evidence, tables->naming);
}
