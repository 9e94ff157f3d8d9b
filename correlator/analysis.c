/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The whole analysis. Invariant: every table behind the intake follows from the intake alone: made anew by each run, or
 * what it would be then.
 */
#include "correlator/analysis.h"

#include <stdlib.h>
#include <string.h>

#include "correlator/adoption/adoption.h"
#include "correlator/hash.h"
#include "correlator/node/node.h"
#include "correlator/rail/rail_find.h"
#include "correlator/relay/relayed.h"
#include "correlator/store/store.h"
#include "correlator/traffic/traffic.h"
#include "wire/capture.h"

struct analysis *analysis_create(size_t memory_bytes)
{
    struct analysis *analysis = array_zeroed(sizeof *analysis);

    intake_init(&analysis->intake, memory_bytes);
    analysis->segments = segments_create(0);
    analysis->feed = relayed_feed_create();
    return analysis;
}

void analysis_judge_in_windows(struct analysis *analysis, size_t records)
{
    segments_destroy(&analysis->segments);
    analysis->segments = segments_create(records);
}

int analysis_add_batch(struct analysis *analysis, const void *batch, size_t length_bytes)
{
    return intake_add(&analysis->intake, batch, length_bytes);
}

int analysis_add_capture(struct analysis *analysis, const char *path)
{
    struct capture_reader *reader;
    const void *batch;
    size_t length_bytes;
    int more;
    int error = capture_reader_open(&reader, path);

    if (error != 0)
        return error;
    while ((more = capture_read(reader, &batch, &length_bytes)) > 0)
        intake_add(&analysis->intake, batch, length_bytes);
    capture_reader_close(&reader);
    return more;
}

static void forget_run(struct analysis *analysis)
{
    if (!analysis->ran)
        return;
    evidence_fini(&analysis->evidence);
    memset(&analysis->evidence, 0, sizeof analysis->evidence);
    posting_fini(&analysis->posting);
    hosted_fini(&analysis->hosted);
    array_fini(&analysis->records);
    array_fini(&analysis->pins);
    counted_fini(&analysis->counted);
    naming_fini(&analysis->naming);
    array_fini(&analysis->gaps);
    timeline_fini(&analysis->timeline);
    analysis->ran = false;
}

static int32_t rank_of(const void *context, const uint8_t *communicator, int32_t communicator_rank)
{
    const struct naming *naming = context;
    int32_t member = naming_member(naming, communicator, communicator_rank);

    return member < 0 ? -1 : naming->members.items[member].rank;
}

#define CUT_STEPS 2 /* behind a cut, whose steps may lack something: streams are not cut at the same time */

static int64_t median_duration(const struct job *job)
{
    int64_t *durations = array_zeroed((job->steps.count + 1) * sizeof *durations);

    for (size_t i = 0; i < job->steps.count; i++)
        durations[i] = (int64_t)job->steps.items[i].duration_ns;
    int64_t median = array_median(durations, job->steps.count);
    free(durations);
    return median;
}

/* What was cut out of memory was, or was of, the begin of the first steps that are left. */
static void mark_cut(struct analysis *analysis)
{
    struct job *job = &analysis->job;
    uint64_t whole_from_ns = 0;

    for (size_t i = 0; i < analysis->gaps.count; i++) {
        const struct gap *gap = &analysis->gaps.items[i];
        if (gap->cause == GAP_FORGOTTEN && gap->to_ns > whole_from_ns)
            whole_from_ns = gap->to_ns;
    }
    if (whole_from_ns == 0)
        return;
    whole_from_ns += CUT_STEPS * (uint64_t)median_duration(job);
    for (size_t i = 0; i < job->steps.count; i++)
        job->steps.items[i].partial = job->steps.items[i].start_ns < whole_from_ns;
}

static bool has_hosts(const struct intake *intake)
{
    for (size_t i = 0; i < intake->streams.count; i++)
        if (intake->streams.items[i].kind == EMITTER_HOST)
            return true;
    return false;
}

/* A job stage's journal tells as much as it heard. */
static bool is_job_stage(const struct analysis *analysis)
{
    bool hears_nodes = analysis->stage == ANALYSIS_JOB;

    for (size_t i = 0; i < analysis->intake.streams.count && analysis->stage == ANALYSIS_BOTH; i++)
        hears_nodes |= analysis->intake.streams.items[i].kind == EMITTER_NODE;
    return hears_nodes;
}

static void find_operations(struct analysis *analysis)
{
    if (is_job_stage(analysis))
        relayed_feed_take(analysis->feed, &analysis->intake, &analysis->timeline);
    else if (analysis->stage == ANALYSIS_BOTH && !has_hosts(&analysis->intake))
        traffic_run(&analysis->records, &analysis->naming);
    else
        node_run(&analysis->records, &analysis->naming, &analysis->intake, &analysis->timeline, &analysis->gaps);
    analysis->another_clock_count = relayed_feed_another_clock(analysis->feed);
    analysis->implausible_count = relayed_feed_implausible(analysis->feed);
}

/* What rank_of answers. */
static uint64_t digest_ranks(const struct naming *naming)
{
    uint64_t hash = HASH_START;

    for (size_t i = 0; i < naming->members.count; i++) {
        const struct member *member = &naming->members.items[i];
        hash = hash_mix(hash, member->record.identity, IDENTITY_BYTES);
        hash = hash_number(hash, (uint64_t)(uint32_t)member->record.rank << 32 | (uint32_t)member->rank);
    }
    return hash;
}

/* Without windows all are needed anew each time, and none while they are judged. */
static void judge_at_once(struct analysis *analysis, struct job_ranks ranks)
{
    struct segment_records records = relayed_feed_records(analysis->feed);
    struct record_rank_operation *copies = array_zeroed((records.count + 1) * sizeof *copies);
    size_t count = records.count;

    for (size_t i = 0; i < count; i++)
        copies[i] = records.items[records.order[i]];
    relayed_feed_forget(analysis->feed);
    job_fini(&analysis->job);
    job_take(&analysis->job, ranks, &analysis->evidence, &copies, count);
}

static void judge_feed(struct analysis *analysis, struct job_ranks ranks)
{
    struct segment_records records = relayed_feed_records(analysis->feed);

    if (segments_size(analysis->segments) > UINT32_MAX) {
        judge_at_once(analysis, ranks);
        return;
    }
    if (!segments_run(analysis->segments, &analysis->job, ranks, &analysis->evidence, &records)) {
        relayed_feed_forget(analysis->feed);
        relayed_feed_take(analysis->feed, &analysis->intake, &analysis->timeline);
        records = relayed_feed_records(analysis->feed);
        segments_run(analysis->segments, &analysis->job, ranks, &analysis->evidence, &records);
    }
    relayed_feed_drop(analysis->feed, segments_needed_from(analysis->segments));
}

/* A node stage judges nothing. */
static void build_job(struct analysis *analysis, struct job_ranks ranks)
{
    if (is_job_stage(analysis)) {
        judge_feed(analysis, ranks);
        return;
    }
    struct segment_records records = {.items = analysis->records.items, .tells = true};
    uint32_t *order = NULL;
    if (analysis->stage != ANALYSIS_NODE)
        records.count = analysis->records.count;
    if (records.count > segments_size(analysis->segments))
        records.order = order = relayed_in_time(records.items, records.count);
    segments_run(analysis->segments, &analysis->job, ranks, &analysis->evidence, &records);
    free(order);
}

void analysis_run(struct analysis *analysis)
{
    forget_run(analysis);
    timeline_build(&analysis->timeline, &analysis->intake);
    gap_find(&analysis->gaps, &analysis->intake, &analysis->timeline);
    naming_build(&analysis->naming, &analysis->intake, &analysis->timeline);
    if (!is_job_stage(analysis))
        adoption_run(&analysis->naming, &(struct lane_losses){.gaps = &analysis->gaps, .intake = &analysis->intake});
    counted_build(&analysis->counted, &analysis->naming, &analysis->intake, &analysis->timeline);
    pin_find(&analysis->pins, &analysis->naming, &analysis->intake, &analysis->timeline);
    find_operations(analysis);
    struct job_ranks ranks = {.context = &analysis->naming,
                              .rank_of = rank_of,
                              .mark = analysis->step_on,
                              .digest = digest_ranks(&analysis->naming)};
    hosted_build(&analysis->hosted, &analysis->naming, &analysis->intake, &analysis->timeline);
    posting_build(&analysis->posting, &analysis->naming, &analysis->intake, &analysis->timeline);
    struct host_tables tables = {&analysis->naming, &analysis->hosted, &analysis->posting, &analysis->intake,
                                 &analysis->timeline};
    evidence_find(&analysis->evidence, &analysis->naming, &analysis->counted, &analysis->intake);
    host_evidence_find(&analysis->evidence.host, &tables);
    rails_find(&analysis->evidence.rails, &analysis->naming, &analysis->intake, &analysis->timeline);
    analysis->evidence.limits = analysis->limits;
    build_job(analysis, ranks);
    mark_cut(analysis);
    analysis->runs++;
    analysis->ran = true;
}

int analysis_write(const struct analysis *analysis, const char *store_path)
{
    struct store *store;
    int error = store_open(&store, store_path);

    if (error != 0)
        return error;
    store_begin_anew(store);
    error = store_write(store, analysis);
    store_close(&store);
    return error;
}

void analysis_destroy(struct analysis **analysis)
{
    if (*analysis == NULL)
        return;
    forget_run(*analysis);
    job_fini(&(*analysis)->job);
    segments_destroy(&(*analysis)->segments);
    relayed_feed_destroy(&(*analysis)->feed);
    intake_fini(&(*analysis)->intake);
    free(*analysis);
    *analysis = NULL;
}
