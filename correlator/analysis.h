/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The whole analysis: batches in, a store out. What comes out depends on the set of batches alone: not on their order,
 * not on duplicates, not on whether they came over a link or out of capture files, not on how often it ran in between.
 *
 *     analysis_create -> analysis_add_batch ... -> analysis_run -> analysis_write -> analysis_destroy
 *
 * More batches may be added after a run; the next run starts over with all of them. One thread.
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
#include "correlator/naming/naming.h"
#include "correlator/node/node.h"
#include "correlator/verdict/evidence_find.h"
#include "correlator/verdict/host_evidence_find.h"

#define ANALYSIS_MEMORY_BYTES (1024u * 1024u * 1024u)

struct analysis {
    struct intake intake;
    struct timeline timeline;
    gap_list gaps;
    struct naming naming;
    struct counted counted;
    pin_list pins;
    struct evidence evidence;
    rank_operation_records records;
    struct job job;
    struct hosted hosted;
    struct posting posting;
    bool ran; /* the tables below intake are those of the last run */
};

/* Keeps at most memory_bytes of batches (see intake.h). Never NULL. */
struct analysis *analysis_create(size_t memory_bytes);

/* 1: new, 0: heard before, -EBADMSG: no batch (counted, left out). */
int analysis_add_batch(struct analysis *analysis, const void *batch, size_t length_bytes);

/* All of a capture file. A file cut or damaged is taken up to there: then -EBADMSG, logged. */
int analysis_add_capture(struct analysis *analysis, const char *path);

void analysis_run(struct analysis *analysis);

/* Replaces the rows of the store, in one transaction. -errno after logging; the store then holds what it held. */
int analysis_write(const struct analysis *analysis, const char *store_path);

/* A no-op on NULL. */
void analysis_destroy(struct analysis **analysis);
