/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The whole analysis: batches in, a store out. What comes out depends on the set of batches alone: not on their order,
 * not on duplicates, not on whether they came over a link or out of capture files, not on how often it ran in between.
 *
 *     analysis_create -> analysis_add_batch ... -> analysis_run -> analysis_write -> analysis_destroy
 *
 * More batches may be added after a run; the next run starts over with all of them, but for the steps of a long job
 * that have not changed since (segment.h), and the records of node stages (relayed_feed.h). One thread.
 */
#pragma once

#include "correlator/detail/counted.h"
#include "correlator/detail/hosted.h"
#include "correlator/detail/pin.h"
#include "correlator/detail/posted.h"
#include "correlator/intake/gap.h"
#include "correlator/intake/intake.h"
#include "correlator/intake/timeline.h"
#include "correlator/job/job.h"
#include "correlator/job/segment.h"
#include "correlator/naming/naming.h"
#include "correlator/node/node.h"
#include "correlator/relay/relayed_feed.h"
#include "correlator/verdict/evidence_find.h"
#include "correlator/verdict/host_evidence_find.h"

#define ANALYSIS_MEMORY_BYTES (1024u * 1024u * 1024u)

enum analysis_stage {
    ANALYSIS_BOTH, /* frames and calls -> operations of ranks -> verdicts; where node stages were heard as ANALYSIS_JOB
                    */
    ANALYSIS_NODE, /* the first half: what relay.h then tells */
    ANALYSIS_JOB,  /* the second half, from what node stages told */
};

struct analysis {
    enum analysis_stage stage; /* set by the owner before the first run */
    struct step_mark step_on;  /* set by the owner before a run */
    struct intake intake;
    struct timeline timeline;
    gap_list gaps;
    struct naming naming;
    struct counted counted;
    pin_list pins;
    struct evidence evidence;
    rank_operation_records records;
    struct relayed_feed *feed;    /* a job stage has its records from there */
    uint64_t another_clock_count; /* records of node stages that could not be used (relayed_feed.h) */
    uint64_t implausible_count;
    struct segments *segments;
    struct job job; /* of the last run, or zeroed; what has not changed stays from run to run */
    struct hosted hosted;
    struct posting posting;
    struct verdict_limits limits; /* set by the owner, any time */
    uint64_t runs;                /* so far */
    bool ran;                     /* the tables below intake are those of the last run */
};

/* Keeps at most memory_bytes of batches (see intake.h). Never NULL. */
struct analysis *analysis_create(size_t memory_bytes);

/* Before the first run: a job of more records than this is judged in windows of so many (segment.h); 0: never. */
void analysis_judge_in_windows(struct analysis *analysis, size_t records);

/* 1: new, 0: heard before, -EBADMSG: no batch (counted, left out). */
int analysis_add_batch(struct analysis *analysis, const void *batch, size_t length_bytes);

/* All of a capture file. A file cut or damaged is taken up to there: then -EBADMSG, logged. */
int analysis_add_capture(struct analysis *analysis, const char *path);

void analysis_run(struct analysis *analysis);

/* Replaces the rows of the store, in one transaction. -errno after logging; the store then holds what it held. */
int analysis_write(const struct analysis *analysis, const char *store_path);

/* A no-op on NULL. */
void analysis_destroy(struct analysis **analysis);
