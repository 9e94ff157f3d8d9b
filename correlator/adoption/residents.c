/* SPDX-License-Identifier: BSD-2-Clause */
/* Members by process: counted, then laid. Invariant: begins[p] to begins[p + 1] are those of process p. */
#include "correlator/adoption/residents.h"

#include <stdlib.h>

static bool has_several(const struct residents *residents, const struct naming *naming, size_t process)
{
    for (size_t i = residents->begins[process]; i < residents->begins[process + 1]; i++)
        for (size_t j = residents->begins[process]; j < i; j++)
            if (naming->members.items[residents->members[i]].communicator ==
                naming->members.items[residents->members[j]].communicator)
                return true;
    return false;
}

void residents_find(struct residents *residents, const struct naming *naming)
{
    size_t processes = naming->processes.count;
    size_t *next = array_zeroed((processes + 1) * sizeof *next);

    residents->members = array_zeroed(naming->members.count * sizeof *residents->members);
    residents->begins = array_zeroed((processes + 1) * sizeof *residents->begins);
    residents->several = array_zeroed(processes * sizeof *residents->several);
    for (size_t i = 0; i < naming->members.count; i++)
        if (naming->members.items[i].process >= 0)
            residents->begins[naming->members.items[i].process + 1]++;
    for (size_t i = 0; i < processes; i++)
        next[i + 1] = residents->begins[i + 1] += residents->begins[i];
    for (size_t i = 0; i < naming->members.count; i++)
        if (naming->members.items[i].process >= 0)
            residents->members[next[naming->members.items[i].process]++] = (int32_t)i;
    for (size_t i = 0; i < processes; i++)
        residents->several[i] = has_several(residents, naming, i);
    free(next);
}

void residents_fini(struct residents *residents)
{
    free(residents->members);
    free(residents->begins);
    free(residents->several);
}
