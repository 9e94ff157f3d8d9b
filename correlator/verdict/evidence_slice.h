/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What of the evidence belongs to a time: changes, stays, posts and what was followed that touch it, and all that
 * belongs to no time. Rows in it are numbers of its own, that evidence_slice_row turns into the tables' again: so
 * verdicts outlive a renumbering of these. Borrows the rest from the evidence that it was cut from. One thread.
 */
#pragma once

#include "correlator/verdict/evidence.h"

struct evidence_slice {
    struct evidence evidence;
    ARRAY(int32_t) changes; /* by row of the slice: row of the table */
    ARRAY(int32_t) stays;
    ARRAY(int32_t) posts;
};

void evidence_slice_init(struct evidence_slice *slice, const struct evidence *of, uint64_t from_ns, uint64_t to_ns);
void evidence_slice_fini(struct evidence_slice *slice);

/* Equal slices have equal ones, however rows are numbered; who lives, and what failed, is left out. */
uint64_t evidence_slice_digest(const struct evidence_slice *slice);

/* The row of its table; of transports and failures as it is. */
int32_t evidence_slice_row(const struct evidence_slice *slice, uint8_t source, int32_t row);
