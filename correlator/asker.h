/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asks the NIC side for the windows of steps that got a verdict. Each step is asked about once a control link, a few a
 * second at most; what a link does not take is asked again, until newer steps matter more. One thread.
 */
#pragma once

#include "correlator/analysis.h"
#include "wire/option.h"

struct asker;

int asker_open(struct asker **asker, const struct option_list *urls, const char *key_file, uint64_t boot_id);

/* Looks at the latest run's verdicts. */
void asker_look(struct asker *asker, const struct analysis *analysis);

/* A no-op on NULL. */
void asker_close(struct asker **asker);
