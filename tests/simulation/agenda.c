/* SPDX-License-Identifier: BSD-2-Clause */
/* A binary heap; (time, number) orders it, so that runs are repeatable. */
#include "tests/simulation/agenda.h"

#include <stdlib.h>

struct entry {
    uint64_t at_ns;
    uint64_t number;
    agenda_act *act;
    void *subject;
    uint64_t argument;
};

struct agenda {
    struct entry *entries;
    size_t count, room;
    uint64_t now_ns, number, happened;
};

static bool before(const struct entry *a, const struct entry *b)
{
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->number < b->number;
}

struct agenda *agenda_create(void)
{
    struct agenda *agenda = calloc(1, sizeof *agenda);

    if (agenda == NULL)
        abort();
    return agenda;
}

void agenda_destroy(struct agenda *agenda)
{
    free(agenda->entries);
    free(agenda);
}

static void make_room(struct agenda *agenda)
{
    if (agenda->count < agenda->room)
        return;
    agenda->room = agenda->room == 0 ? 1024 : 2 * agenda->room;
    agenda->entries = realloc(agenda->entries, agenda->room * sizeof *agenda->entries);
    if (agenda->entries == NULL)
        abort();
}

void agenda_add(struct agenda *agenda, uint64_t at_ns, agenda_act *act, void *subject, uint64_t argument)
{
    struct entry entry = {at_ns < agenda->now_ns ? agenda->now_ns : at_ns, agenda->number++, act, subject, argument};

    make_room(agenda);
    size_t at = agenda->count++;
    for (; at > 0 && before(&entry, &agenda->entries[(at - 1) / 2]); at = (at - 1) / 2)
        agenda->entries[at] = agenda->entries[(at - 1) / 2];
    agenda->entries[at] = entry;
}

static void sink(struct agenda *agenda, struct entry entry)
{
    size_t at = 0;

    for (size_t child = 1; child < agenda->count; child = 2 * at + 1) {
        if (child + 1 < agenda->count && before(&agenda->entries[child + 1], &agenda->entries[child]))
            child++;
        if (!before(&agenda->entries[child], &entry))
            break;
        agenda->entries[at] = agenda->entries[child];
        at = child;
    }
    agenda->entries[at] = entry;
}

bool agenda_step(struct agenda *agenda)
{
    if (agenda->count == 0)
        return false;
    struct entry next = agenda->entries[0];
    agenda->count--;
    if (agenda->count > 0)
        sink(agenda, agenda->entries[agenda->count]);
    agenda->now_ns = next.at_ns;
    agenda->happened++;
    next.act(next.subject, next.argument);
    return true;
}

uint64_t agenda_now_ns(const struct agenda *agenda)
{
    return agenda->now_ns;
}

uint64_t agenda_happened(const struct agenda *agenda)
{
    return agenda->happened;
}
