/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From what a driver stamps a frame with to nanoseconds of CLOCK_MONOTONIC. A stamp may be of the port's own clock
 * (ticks, nanoseconds, or seconds and nanoseconds in one word, which is read beside CLOCK_MONOTONIC again and again),
 * or of CLOCK_REALTIME or CLOCK_TAI; which one, the first stamps show. A stamp that cannot be (of the future, or of
 * long ago) is not believed: its frame gets the time at which it is read. No DPDK inside; no allocation. One thread a
 * stamp.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "wire/record.h"

/* The clocks that it reads: the port's and ours. */
struct stamp_clocks {
    int (*read_port)(void *context, uint64_t *raw); /* 0, or -errno: the port's clock cannot be read */
    uint64_t (*now_ns)(void *context);              /* CLOCK_MONOTONIC */
    void (*read_pair)(void *context, struct record_clock_pair *pair);
    void *context;
};

enum stamp_kind {
    STAMP_UNDECIDED = 0, /* no stamp has been seen */
    STAMP_PORT,
    STAMP_REALTIME_NS,
    STAMP_REALTIME_US,
    STAMP_TAI_NS,
    STAMP_NONE, /* no stamps, or none that are understood */
};

/* The port's clock beside ours: time = ns + (raw - this raw) * rate. */
struct stamp_line {
    uint64_t raw;
    uint64_t ns;
    uint64_t rate; /* nanoseconds a tick, times 2^32 */
};

struct stamp_sample {
    uint64_t raw; /* goes on where the clock begins again */
    uint64_t ns;
    uint64_t bound_ns;
};

struct stamp {
    struct stamp_clocks clocks;
    char name[32]; /* of the port, for messages */
    enum stamp_kind kind;
    bool has_line;
    bool is_split;     /* the port's clock counts seconds above bit 32, and nanoseconds below */
    unsigned raw_bits; /* after which the port's clock begins again */
    struct stamp_line line;
    struct stamp_sample last;
    struct stamp_sample base; /* the rate is taken from here to the last one */
    struct stamp_sample next_base;
    struct record_clock_pair pair;
    uint64_t checked_ns;
    uint64_t check_due_ns;
    uint64_t line_bound_ns; /* how far the line was from a reading at most, and what that reading is known to */
    uint64_t refused;       /* stamps that were not believed */
    uint64_t steps;         /* times at which the port's clock was found set to something else */
};

/* Reads the port's clock for some 50 ms when it has one. */
void stamp_init(struct stamp *stamp, const struct stamp_clocks *clocks, const char *name);

/* Looks whether the clocks still go together, every 100 ms; costs a comparison when it is not due. */
void stamp_check(struct stamp *stamp, uint64_t now_ns);

/* A frame's time. `now_ns`: CLOCK_MONOTONIC, read before the frame was handed out. */
uint64_t stamp_time(struct stamp *stamp, uint64_t raw, uint64_t now_ns);

/* How far a time that is made of a stamp may be from the moment of the stamp; 0 where there are no stamps. */
uint64_t stamp_bound_ns(const struct stamp *stamp);

/* A frame without a stamp came: there are none. */
static inline void stamp_missing(struct stamp *stamp)
{
    stamp->kind = STAMP_NONE;
}
