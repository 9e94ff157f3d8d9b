/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Gaps. A hole in the numbers that a reported LOSS_LINK_FULL explains is listed once, as that loss. An emitter is
 * silent when it was not heard for SILENCE_NS before the end of what was heard at all and never said that it ends: ten
 * heartbeats.
 */
#include "correlator/intake/gap.h"

#define SILENCE_NS 1000000000ULL

struct finder {
    gap_list *gaps;
    const struct intake *intake;
    const struct timeline *timeline;
};

static struct gap *add(struct finder *finder, size_t stream, uint64_t from_ns, uint64_t to_ns, uint32_t cause)
{
    struct gap *gap = array_add(finder->gaps);
    gap->stream = stream;
    gap->from_ns = timeline_map(finder->timeline, stream, from_ns).ns;
    gap->to_ns = timeline_map(finder->timeline, stream, to_ns).ns;
    gap->cause = cause;
    return gap;
}

static void add_reported(struct finder *finder)
{
    struct intake_walk walk = {.intake = finder->intake, .skips_runs = true};
    union record record;

    while (intake_next(&walk, &record)) {
        if (record.header.kind != RECORD_LOSS)
            continue;
        const struct record_loss *loss = &record.loss;
        struct gap *gap = add(finder, walk.stream, loss->from_ns, loss->to_ns, loss->cause);
        gap->lost = loss->lost;
        gap->port = loss->header.source;
    }
}

static bool reported(const struct finder *finder, size_t stream, uint64_t from_ns, uint64_t to_ns)
{
    for (size_t i = 0; i < finder->gaps->count; i++) {
        const struct gap *gap = &finder->gaps->items[i];
        if (gap->stream == stream && gap->cause == LOSS_LINK_FULL && gap->from_ns <= to_ns && gap->to_ns >= from_ns)
            return true;
    }
    return false;
}

static void add_holes(struct finder *finder, size_t stream)
{
    const struct intake_stream *heard = &finder->intake->streams.items[stream];
    uint64_t expected = 0;
    uint64_t since_ns = heard->greeted ? heard->hello.started_ns : heard->batches.items[0].sent_ns;

    for (size_t i = 0; i < heard->batches.count; i++) {
        const struct intake_batch *batch = &heard->batches.items[i];
        uint64_t from = timeline_map(finder->timeline, stream, since_ns).ns;
        uint64_t to = timeline_map(finder->timeline, stream, batch->sent_ns).ns;
        if (batch->sequence > expected && !reported(finder, stream, from, to))
            add(finder, stream, since_ns, batch->sent_ns, GAP_BATCHES_LOST)->lost = batch->sequence - expected;
        expected = batch->last_sequence + 1;
        since_ns = batch->last_sent_ns;
    }
    if (heard->forgotten_count > 0)
        add(finder, stream, heard->batches.items[0].sent_ns, heard->forgotten_to_ns, GAP_FORGOTTEN)->lost =
            heard->forgotten_count;
}

/* When the next boot of the same emitter began, or 0. */
static uint64_t next_boot_ns(const struct finder *finder, size_t stream, uint64_t after_ns)
{
    const struct intake_stream *heard = &finder->intake->streams.items[stream];
    uint64_t earliest = 0;

    for (size_t i = 0; i < finder->intake->streams.count; i++) {
        const struct intake_stream *other = &finder->intake->streams.items[i];
        if (i == stream || other->kind != heard->kind || other->emitter_id != heard->emitter_id || !other->greeted)
            continue;
        uint64_t started = timeline_map(finder->timeline, i, other->hello.started_ns).ns;
        if (started >= after_ns && (earliest == 0 || started < earliest))
            earliest = started;
    }
    return earliest;
}

static void add_silence(struct finder *finder, size_t stream, uint64_t end_ns)
{
    const struct intake_stream *heard = &finder->intake->streams.items[stream];
    uint64_t last = timeline_map(finder->timeline, stream, heard->last_ns).ns;
    uint64_t next = next_boot_ns(finder, stream, last);

    if (next == 0 && (heard->ended || end_ns < last + SILENCE_NS))
        return;
    struct gap *gap = add(finder, stream, 0, 0, next != 0 ? GAP_RESTARTED : GAP_SILENT);
    gap->from_ns = last;
    gap->to_ns = next != 0 ? next : end_ns;
}

static uint64_t end_of_all(const struct finder *finder)
{
    uint64_t end = 0;

    for (size_t i = 0; i < finder->intake->streams.count; i++) {
        uint64_t last = timeline_map(finder->timeline, i, finder->intake->streams.items[i].last_ns).ns;
        if (finder->timeline->clocks.items[i].source != TIMELINE_NONE && last > end)
            end = last;
    }
    return end;
}

static int by_stream_and_time(const void *a, const void *b)
{
    const struct gap *left = a;
    const struct gap *right = b;

    if (left->stream != right->stream)
        return left->stream < right->stream ? -1 : 1;
    return (left->from_ns > right->from_ns) - (left->from_ns < right->from_ns);
}

void gap_find(gap_list *gaps, const struct intake *intake, const struct timeline *timeline)
{
    struct finder finder = {.gaps = gaps, .intake = intake, .timeline = timeline};
    uint64_t end = end_of_all(&finder);

    add_reported(&finder);
    for (size_t i = 0; i < intake->streams.count; i++) {
        add_holes(&finder, i);
        add_silence(&finder, i, end);
    }
    array_sort(gaps, by_stream_and_time);
}

bool gap_touches(const gap_list *gaps, const struct intake *intake, uint16_t kind, uint64_t from_ns, uint64_t to_ns)
{
    for (size_t i = 0; i < gaps->count; i++) {
        const struct gap *gap = &gaps->items[i];
        if (intake->streams.items[gap->stream].kind == kind && gap->from_ns <= to_ns && gap->to_ns >= from_ns)
            return true;
    }
    return false;
}

const char *gap_cause_name(uint32_t cause)
{
    switch (cause) {
    case LOSS_LINK_FULL:
        return "link full";
    case LOSS_PORT_DROP:
        return "port drop";
    case LOSS_RING_FULL:
        return "ring full";
    case LOSS_TABLE_FULL:
        return "table full";
    case LOSS_OVERWRITTEN:
        return "overwritten";
    case GAP_BATCHES_LOST:
        return "batches lost";
    case GAP_SILENT:
        return "silent";
    case GAP_RESTARTED:
        return "restarted";
    case GAP_FORGOTTEN:
        return "memory";
    default:
        return "unknown";
    }
}
