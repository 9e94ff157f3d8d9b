/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The joins of naming.h, once its tables are filled: communicators out of members, the two ends of connections, flows
 * with the queue pairs at their ends, roles, ranks. Called once by naming_build.
 */
#pragma once

#include "correlator/naming.h"

void naming_join(struct naming *naming);

/* Gives every member its job rank (naming_rank.c). Needs the communicators joined. */
void naming_rank(struct naming *naming);
