/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a file must define to be of interest, and where in it the probes of probe.def go. The file is recognised by its
 * symbols, whatever its name, also when the library is linked into a program. Pure but for reading the file; one
 * thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum library_kind {
#define LIBRARY(name, text, symbol, file) LIBRARY_##name,
#include "host/library/library.def"
#undef LIBRARY
    LIBRARY_KINDS
};

/* When probes are set. */
enum probe_duty {
    DUTY_ALWAYS,
    DUTY_RETURN, /* while there is time for it: what became of data calls */
    DUTY_MARKER, /* while there is time for it: the rare calls of the GPU's runtime */
    DUTY_DETAIL, /* for a bounded time, when asked for: its frequent calls */
    DUTY_DELAY,  /* while there is a job, and time for it: what keeps threads from running; at no place of a library */
    DUTIES
};

struct probe_spec {
    enum probe_duty duty;
    enum library_kind kind;
    const char *symbol;
    const char *program; /* in the kernel */
    bool at_return;
    uint32_t variant;  /* tells the program at which of its symbols it runs */
    const char *reads; /* for people */
};

extern const struct probe_spec probe_specs[];
extern const size_t probe_specs_count;

#define LIBRARY_PLACES_MAX 512
struct library_place {
    size_t spec; /* index into probe_specs */
    uint64_t file_offset;
};

struct library_places {
    struct library_place places[LIBRARY_PLACES_MAX]; /* in the order of probe_specs */
    size_t count;
    bool kinds[LIBRARY_KINDS]; /* a kind counts when one of its probes has a place */
};

/* Count 0 when the file is none of ours. -ENOEXEC, -EBADMSG, another -errno as elf.h; not logged. */
int library_find(int descriptor, struct library_places *places);

/* Whether a file is called as such a library usually is. */
bool library_has_usual_name(const char *path);

/* Whether a probe has a place at this symbol. */
bool library_has(const struct library_places *places, const char *symbol);

/* The kinds for people: "collective library, CUDA runtime". */
void library_describe(const struct library_places *places, char *text, size_t text_bytes);
