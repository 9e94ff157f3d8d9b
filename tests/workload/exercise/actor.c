/* SPDX-License-Identifier: BSD-2-Clause */
/* Files in the shared directory, their names beginning with the scenario's. */
#include "exercise/actor.h"

#include "meet.h"

#include <stdio.h>

enum { NAME_BYTES = 160 };

void actor_meet(struct actor *actor, const char *place)
{
    char name[NAME_BYTES];

    snprintf(name, sizeof name, "%.40s.%.60s", actor->scenario, place);
    meet_all(&actor->job, name, actor->rank);
}

void actor_share(struct actor *actor, const char *name, int from, void *bytes, size_t length_bytes)
{
    char path[NAME_BYTES];

    snprintf(path, sizeof path, "%.40s.%.100s", actor->scenario, name);
    if (actor->rank == from)
        meet_publish(&actor->job, path, bytes, length_bytes);
    else
        meet_read(&actor->job, path, bytes, length_bytes);
}
