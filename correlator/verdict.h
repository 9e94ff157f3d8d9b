/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who held back a step, by how much and why. A rank is blamed for what it added itself: its lateness at an operation,
 * as far as its own wait since its operation before is longer than that wait usually is; what it inherited from an
 * operation that ended late, or from a peer that gave no credit, is not its own. A link is blamed for the time that its
 * messages themselves took beyond what the same bytes take on the job's median link. How much counts is taken from the
 * job's own spread. Part of the job stage.
 */
#pragma once

#include "correlator/job.h"

/* Fills the verdicts, in order of step. */
void verdict_find(struct job *job);

/* Takes away the verdicts that rest on what no source sees; `fields` are those that are seen (enum source_field). */
void verdict_withhold(struct job *job, uint32_t fields);

/* Says which classes are not given for want of what: "gpu late, network slow: no source of messages". False: none. */
bool verdict_withheld(uint32_t fields, char *text, size_t bytes);
