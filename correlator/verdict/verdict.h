/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who held back a step, by how much and why. A rank is blamed for what it added itself: its lateness at an operation,
 * as far as its own wait since its operation before is longer than that wait usually is; what it inherited from an
 * operation that ended late, or from a peer that gave no credit, is not its own. A link is blamed for the time that its
 * messages themselves took beyond what the same bytes take on the job's median link. How much counts is taken from the
 * job's own spread. Why a link was slow is said where something was counted beside it (evidence.h). Part of the job
 * stage.
 */
#pragma once

#include "correlator/job/job.h"

/* Fills the verdicts, in order of step. None rests on what no source sees of its rank (job->evidence). */
void verdict_find(struct job *job);

/* Says which classes are not given for want of what: "gpu late, network slow: no source of messages". False: none. */
bool verdict_withheld(uint32_t fields, char *text, size_t bytes);

enum verdict_sight {
    VERDICT_SIGHT_NONE,  /* the class is not given of what is seen like this */
    VERDICT_SIGHT_PART,  /* it is given where something is seen, but not seeing it proves nothing */
    VERDICT_SIGHT_WHOLE, /* nothing that it rests on is left out */
};

/*
 * How well a class can be told by a port that sees these fields (enum source_field) and leaves out what `port_flags`
 * (enum port_flag) say. `missing` says what is not seen; empty when nothing is.
 */
enum verdict_sight verdict_sight(enum verdict_class class, uint32_t fields, uint32_t port_flags, char *missing,
                                 size_t bytes);
