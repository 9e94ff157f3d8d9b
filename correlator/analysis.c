/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The whole analysis. Invariant: every table behind the intake is made anew by each run, from the intake alone.
 */
#include "correlator/analysis.h"

#include <stdlib.h>
#include <string.h>

#include "correlator/node/node.h"
#include "correlator/store/store.h"
#include "wire/capture.h"

struct analysis *analysis_create(size_t memory_bytes)
{
    struct analysis *analysis = array_zeroed(sizeof *analysis);

    intake_init(&analysis->intake, memory_bytes);
    return analysis;
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
    job_fini(&analysis->job);
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

void analysis_run(struct analysis *analysis)
{
    forget_run(analysis);
    timeline_build(&analysis->timeline, &analysis->intake);
    gap_find(&analysis->gaps, &analysis->intake, &analysis->timeline);
    naming_build(&analysis->naming, &analysis->intake, &analysis->timeline);
    counted_build(&analysis->counted, &analysis->naming, &analysis->intake, &analysis->timeline);
    pin_find(&analysis->pins, &analysis->naming, &analysis->intake, &analysis->timeline);
    node_run(&analysis->records, &analysis->naming, &analysis->intake, &analysis->timeline, &analysis->gaps);
    struct job_ranks ranks = {.context = &analysis->naming, .rank_of = rank_of};
    hosted_build(&analysis->hosted, &analysis->naming, &analysis->intake, &analysis->timeline);
    posting_build(&analysis->posting, &analysis->naming, &analysis->intake, &analysis->timeline);
    struct host_tables tables = {&analysis->naming, &analysis->hosted, &analysis->posting, &analysis->intake,
                                 &analysis->timeline};
    evidence_find(&analysis->evidence, &analysis->naming, &analysis->counted, &analysis->intake);
    host_evidence_find(&analysis->evidence.host, &tables);
    job_build(&analysis->job, ranks, &analysis->evidence, analysis->records.items, analysis->records.count);
    analysis->ran = true;
}

int analysis_write(const struct analysis *analysis, const char *store_path)
{
    struct store *store;
    int error = store_open(&store, store_path);

    if (error != 0)
        return error;
    error = store_write(store, analysis);
    store_close(&store);
    return error;
}

void analysis_destroy(struct analysis **analysis)
{
    if (*analysis == NULL)
        return;
    forget_run(*analysis);
    intake_fini(&(*analysis)->intake);
    free(*analysis);
    *analysis = NULL;
}
