/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes a Perfetto trace: native TrackEvent packets, one after the other. All times are nanoseconds of one clock,
 * which the trace calls CLOCK_MONOTONIC. Events of one track are given in order of time. One thread.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "report/read/store_reader.h"

struct perfetto;

struct perfetto_track {
    uint64_t identity; /* not 0, unique in the trace */
    uint64_t parent;   /* 0 = none */
    const char *name;
    int64_t order;    /* among the tracks of its parent */
    int64_t process;  /* its number, above 0, where the track is a process; else 0 */
    const char *unit; /* of a counter track: those of one parent and unit share a scale; NULL for slices and instants */
};

struct perfetto_note { /* a debug annotation; STORE_NULL is left out */
    const char *name;
    struct store_value value;
};

/* Creates (truncates) the file; "-" is standard output. -errno after logging. */
int perfetto_open(struct perfetto **perfetto, const char *path);

#define PERFETTO_REALTIME  1u
#define PERFETTO_MONOTONIC 3u

struct perfetto_reading { /* of a clock: one of those above, or perfetto_clock_number */
    uint32_t clock;
    int64_t time_ns;
};

/* A clock of one's own, known by its name. */
uint32_t perfetto_clock_number(const char *name);

/* What clocks read at one moment. The first one that is given makes CLOCK_MONOTONIC the trace's own. */
void perfetto_clocks(struct perfetto *perfetto, const struct perfetto_reading *readings, size_t count);

/* Before the first event of the track. */
void perfetto_track(struct perfetto *perfetto, const struct perfetto_track *track);

void perfetto_slice_begin(struct perfetto *perfetto, uint64_t track, int64_t time_ns, const char *name,
                          const struct perfetto_note *notes, size_t notes_count);
void perfetto_slice_end(struct perfetto *perfetto, uint64_t track, int64_t time_ns);
void perfetto_instant(struct perfetto *perfetto, uint64_t track, int64_t time_ns, const char *name,
                      const struct perfetto_note *notes, size_t notes_count);
/* An instant at which an arrow begins, or ends: the one that has the same number, not 0. */
enum perfetto_end { PERFETTO_ARROW_BEGINS, PERFETTO_ARROW_ENDS };
void perfetto_arrow(struct perfetto *perfetto, uint64_t track, int64_t time_ns, const char *name, uint64_t number,
                    enum perfetto_end end);
void perfetto_counter(struct perfetto *perfetto, uint64_t track, int64_t time_ns, int64_t value);

/* Frees, sets *perfetto to NULL. The first error that writing had, logged; 0 when the file is whole. */
int perfetto_close(struct perfetto **perfetto);
