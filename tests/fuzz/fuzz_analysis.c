/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any bytes as a string of batches, through the whole analysis. Checked: each rank operation belongs to an operation,
 * and each record to a rank operation.
 */
#include "correlator/analysis.h"

#include <stdlib.h>
#include <string.h>

#include "wire/log.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes);

static void check(const struct job *job)
{
    for (size_t i = 0; i < job->rank_operations.count; i++)
        if (job->rank_operations.items[i].operation < 0 ||
            (size_t)job->rank_operations.items[i].operation >= job->operations.count)
            abort();
    for (size_t i = 0; i < job->rank_operation_of.count; i++)
        if ((size_t)job->rank_operation_of.items[i] >= job->rank_operations.count)
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes)
{
    struct analysis *analysis = analysis_create(ANALYSIS_MEMORY_BYTES);
    size_t at = 0;

    log_init("fuzz", LOG_ERROR);
    while (length_bytes - at >= sizeof(struct batch_header)) {
        struct batch_header header;
        memcpy(&header, bytes + at, sizeof header);
        size_t left = length_bytes - at - sizeof header;
        size_t records = header.records_bytes < left ? header.records_bytes : left;
        analysis_add_batch(analysis, bytes + at, sizeof header + records);
        at += sizeof header + records;
    }
    analysis_run(analysis);
    check(&analysis->job);
    analysis_destroy(&analysis);
    return 0;
}
