/* SPDX-License-Identifier: BSD-2-Clause */
/* Which members live in which process: counted once, since it is asked for each connection. Pure; any thread. */
#pragma once

#include "correlator/naming/naming.h"

struct residents {
    int32_t *members; /* process by process, in their own order */
    size_t *begins;   /* by process, and one more: where its members begin */
    bool *several;    /* by process: several ranks of one communicator live there */
};

void residents_find(struct residents *residents, const struct naming *naming);
void residents_fini(struct residents *residents);
