/* SPDX-License-Identifier: BSD-2-Clause */
/* Which symbols make a library: the table of probe.def, looked up in a file's symbol tables. */
#include "host/library.h"

#include <stdio.h>
#include <stdlib.h>

#include "host/elf.h"

enum moment { ENTRY, RETURN };

const struct probe_spec probe_specs[] = {
#define PROBE(kind, symbol, program, when, reads) {LIBRARY_##kind, symbol, #program, (when) == RETURN, reads},
#include "host/probe.def"
#undef PROBE
};
const size_t probe_specs_count = sizeof probe_specs / sizeof probe_specs[0];

#define SPECS_COUNT (sizeof probe_specs / sizeof probe_specs[0])

static const struct {
    const char *text;
    const char *symbol;
} kinds[LIBRARY_KINDS] = {
#define LIBRARY(name, text, symbol) [LIBRARY_##name] = {text, symbol},
#include "host/library.def"
#undef LIBRARY
};

struct search {
    struct library_places *places;
    size_t specs[SPECS_COUNT]; /* the kind's rows of probe_specs */
};

static void add_place(void *context, size_t name, uint64_t file_offset)
{
    const struct search *search = context;
    struct library_places *places = search->places;
    if (places->count < LIBRARY_PLACES_MAX)
        places->places[places->count++] = (struct library_place){search->specs[name], file_offset};
}

static int find_kind(struct elf *elf, enum library_kind kind, struct library_places *places)
{
    struct search search = {.places = places};
    const char *names[SPECS_COUNT];
    size_t count = 0;
    for (size_t i = 0; i < probe_specs_count; i++) {
        if (probe_specs[i].kind != kind)
            continue;
        search.specs[count] = i;
        names[count++] = probe_specs[i].symbol;
    }
    const int found = count == 0 ? 0 : elf_find(elf, kinds[kind].symbol, names, count, add_place, &search);
    places->kinds[kind] = found > 0;
    return found < 0 ? found : 0;
}

static int compare_places(const void *left, const void *right)
{
    const struct library_place *a = left;
    const struct library_place *b = right;
    return a->spec < b->spec ? -1 : a->spec > b->spec;
}

int library_find(int descriptor, struct library_places *places)
{
    struct elf *elf;
    places->count = 0;
    int error = elf_open(&elf, descriptor);
    if (error != 0)
        return error;
    for (enum library_kind kind = 0; kind < LIBRARY_KINDS && error == 0; kind++)
        error = find_kind(elf, kind, places);
    elf_close(&elf);
    if (error == 0)
        qsort(places->places, places->count, sizeof places->places[0], compare_places);
    return error;
}

void library_describe(const struct library_places *places, char *text, size_t text_bytes)
{
    size_t length = 0;
    text[0] = '\0';
    for (enum library_kind kind = 0; kind < LIBRARY_KINDS && length < text_bytes; kind++)
        if (places->kinds[kind])
            length +=
                (size_t)snprintf(text + length, text_bytes - length, "%s%s", length == 0 ? "" : ", ", kinds[kind].text);
}
