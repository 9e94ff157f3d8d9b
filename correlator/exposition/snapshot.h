/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the analysis shows of agents, devices, losses and itself at present, beside the ledger's sums: small, and with
 * text of its own, so that it outlives the analysis. Counts never fall from one snapshot to the next. One thread at a
 * time.
 */
#pragma once

#include "correlator/analysis.h"

#define SNAPSHOT_TEXT_BYTES 65

enum snapshot_traffic {
#define TRAFFIC(name, text, field, unit, help) SNAPSHOT_##name,
#include "wire/metric/traffic.def"
#undef TRAFFIC
    SNAPSHOT_TRAFFIC,
};

struct snapshot_device {
    char host[SNAPSHOT_TEXT_BYTES];
    char device[SNAPSHOT_TEXT_BYTES];
    uint64_t traffic[3][SNAPSHOT_TRAFFIC]; /* by enum vantage */
    uint64_t lost_frames;
};

struct snapshot_agent { /* the latest start of it */
    uint64_t emitter_id;
    char kind[8];
    char host[SNAPSHOT_TEXT_BYTES];
    char instance[SNAPSHOT_TEXT_BYTES];
    uint64_t batches; /* of all its starts */
    uint64_t clock_error_ns;
    bool clock_known;
    bool ended;
    uint64_t heard_ns; /* reference clock */
};

struct snapshot_rank {
    int32_t rank;
    char host[SNAPSHOT_TEXT_BYTES];
    char pod[SNAPSHOT_TEXT_BYTES];
};

struct snapshot_communicator {
    uint8_t identity[IDENTITY_BYTES];
    int32_t ranks_count;
};

struct snapshot_gap { /* of one cause */
    const char *cause;
    uint64_t count;
    uint64_t duration_ns;
    uint64_t lost;
};

struct snapshot {
    int32_t ranks_count;
    char slurm_job[SNAPSHOT_TEXT_BYTES];
    ARRAY(struct snapshot_device) devices;
    ARRAY(struct snapshot_agent) agents;
    ARRAY(struct snapshot_rank) ranks;
    ARRAY(struct snapshot_communicator) communicators;
    ARRAY(struct snapshot_gap) gaps;
    uint64_t damaged;
    uint64_t duplicates;
    uint64_t held_bytes;
    uint64_t limit_bytes;
    bool realtime_known;
    int64_t realtime_minus_reference_ns;
};

void snapshot_fini(struct snapshot *snapshot);

/* Makes it anew of the analysis, which has run. */
void snapshot_take(struct snapshot *snapshot, const struct analysis *analysis);
