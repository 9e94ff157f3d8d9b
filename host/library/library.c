/* SPDX-License-Identifier: BSD-2-Clause */
/* Which symbols make a library: the table of probe.def, looked up in a file's symbol tables. */
#include "host/library/library.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/marker.h"
#include "host/library/elf.h"

enum moment { ENTRY, RETURN };

const struct probe_spec probe_specs[] = {
#define PROBE_OF(duty, kind, symbol, program, when, variant, reads)                                                    \
    {DUTY_##duty, LIBRARY_##kind, symbol, #program, (when) == RETURN, variant, reads},
#define PROBE(kind, symbol, program, when, reads) PROBE_OF(ALWAYS, kind, symbol, program, when, 0, reads)
#include "host/probe/probe.def"
#undef PROBE
#undef PROBE_OF
};
const size_t probe_specs_count = sizeof probe_specs / sizeof probe_specs[0];

#define SPECS_COUNT (sizeof probe_specs / sizeof probe_specs[0])

_Static_assert(LIBRARY_KINDS <= ELF_GROUPS_MAX, "kinds of libraries");

static const struct {
    const char *text;
    const char *symbol;
    const char *file;
} kinds[LIBRARY_KINDS] = {
#define LIBRARY(name, text, symbol, file) [LIBRARY_##name] = {text, symbol, file},
#include "host/library/library.def"
#undef LIBRARY
};

/* The rows of probe_specs by kind. */
struct search {
    struct library_places *places;
    size_t specs[LIBRARY_KINDS][SPECS_COUNT];
    const char *names[LIBRARY_KINDS][SPECS_COUNT];
    struct elf_group groups[LIBRARY_KINDS];
};

static void search_init(struct search *search, struct library_places *places)
{
    *search = (struct search){.places = places};
    for (enum library_kind kind = 0; kind < LIBRARY_KINDS; kind++)
        search->groups[kind] = (struct elf_group){.hint = kinds[kind].symbol, .names = search->names[kind]};
    for (size_t i = 0; i < probe_specs_count; i++) {
        const enum library_kind kind = probe_specs[i].kind;
        const size_t at = search->groups[kind].names_count++;
        search->specs[kind][at] = i;
        search->names[kind][at] = probe_specs[i].symbol;
    }
}

static void add_place(void *context, size_t kind, size_t name, uint64_t file_offset)
{
    const struct search *search = context;
    struct library_places *places = search->places;
    places->kinds[kind] = true;
    if (places->count < LIBRARY_PLACES_MAX)
        places->places[places->count++] = (struct library_place){search->specs[kind][name], file_offset};
}

static int compare_places(const void *left, const void *right)
{
    const struct library_place *a = left;
    const struct library_place *b = right;
    return a->spec < b->spec ? -1 : a->spec > b->spec;
}

bool library_has_usual_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *file = slash == NULL ? path : slash + 1;
    bool usual = false;
    for (enum library_kind kind = 0; kind < LIBRARY_KINDS && !usual; kind++)
        usual = fnmatch(kinds[kind].file, file, 0) == 0;
    return usual;
}

bool library_has(const struct library_places *places, const char *symbol)
{
    for (size_t i = 0; i < places->count; i++)
        if (strcmp(probe_specs[places->places[i].spec].symbol, symbol) == 0)
            return true;
    return false;
}

/* Before 2.28 the library calls it also for what it does not write, once a data call and more: no probe there. */
static void spare_frequent(struct library_places *places)
{
    size_t kept = 0;
    const bool rare = library_has(places, "ncclAlltoAll"); /* came with 2.28 */
    for (size_t i = 0; i < places->count; i++)
        if (rare || strcmp(probe_specs[places->places[i].spec].program, "nccl_warning") != 0)
            places->places[kept++] = places->places[i];
    places->count = kept;
}

int library_find(int descriptor, struct library_places *places)
{
    struct search search;
    struct elf *elf;
    places->count = 0;
    memset(places->kinds, 0, sizeof places->kinds);
    int error = elf_open(&elf, descriptor);
    if (error != 0)
        return error;
    search_init(&search, places);
    error = elf_find(elf, search.groups, LIBRARY_KINDS, add_place, &search);
    elf_close(&elf);
    if (error < 0)
        return error;
    qsort(places->places, places->count, sizeof places->places[0], compare_places);
    spare_frequent(places);
    return 0;
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
