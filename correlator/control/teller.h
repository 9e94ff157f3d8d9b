/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tells the NIC sides which queue pairs the host sides know: which to count, and which flows belong together. Each one
 * when it is new or has changed, and all again to whoever connects anew; a few hundred at a time, at most four times a
 * second; what a link does not take is told later. What is remembered is bounded: queue pairs beyond are not told,
 * which is counted. One thread.
 */
#pragma once

#include "correlator/analysis.h"
#include "correlator/control/control.h"

#define TELLER_PAIRS_MAX 65536u

struct teller;

/* The controls must outlive it. */
void teller_create(struct teller **teller, struct controls *controls);

/* Looks at the latest run's queue pairs. */
void teller_look(struct teller *teller, const struct analysis *analysis);

/* Queue pairs that were not told of for want of room. */
uint64_t teller_refused(const struct teller *teller);

/* A no-op on NULL. */
void teller_destroy(struct teller **teller);
