/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asks the NIC side for the windows of steps that got a verdict. Each step is asked about once a control link, and
 * again where it has grown since, a few a second at most; what a link does not take is asked again, until newer steps
 * matter more. One thread.
 */
#pragma once

#include "correlator/analysis.h"
#include "correlator/control/control.h"

struct asker;

/* The controls must outlive it. */
void asker_create(struct asker **asker, struct controls *controls);

/* Looks at the latest run's verdicts. */
void asker_look(struct asker *asker, const struct analysis *analysis);

/* A no-op on NULL. */
void asker_destroy(struct asker **asker);
