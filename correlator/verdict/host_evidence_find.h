/* SPDX-License-Identifier: BSD-2-Clause */
/* The node stage's part of host_evidence.h: whose threads, posts and failures those are that hosts told of. */
#pragma once

#include "correlator/detail/hosted.h"
#include "correlator/detail/posted.h"
#include "correlator/verdict/host_evidence.h"

struct host_tables {
    const struct naming *naming;
    const struct hosted *hosted;
    const struct posting *posting;
    const struct intake *intake;
    const struct timeline *timeline;
};

/* Fills `evidence`, which must be zeroed. It borrows the texts of naming's failures. */
void host_evidence_find(struct host_evidence *evidence, const struct host_tables *tables);

/* The failures of naming in order of time, which is the order of their rows; the caller frees it. */
const struct failure **host_failures_by_time(const struct naming *naming);
