/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading the kernel's clocks. Invariant: a pair's bound covers all three readings, so each clock was at its value at
 * some moment within bound_ns of monotonic_ns.
 */
#include "wire/clock.h"

#include <time.h>

#define PAIR_TRIES 5

static uint64_t read_ns(clockid_t id)
{
    struct timespec time;

    clock_gettime(id, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

uint64_t clock_now_ns(void)
{
    return read_ns(CLOCK_MONOTONIC);
}

void clock_read_pair(struct record_clock_pair *pair, int64_t offset_ns)
{
    pair->bound_ns = UINT64_MAX;
    for (int try = 0; try < PAIR_TRIES; try++) {
        uint64_t before_ns = read_ns(CLOCK_MONOTONIC);
        uint64_t realtime_ns = read_ns(CLOCK_REALTIME);
        uint64_t tai_ns = read_ns(CLOCK_TAI);
        uint64_t after_ns = read_ns(CLOCK_MONOTONIC);
        if (after_ns - before_ns >= pair->bound_ns)
            continue;
        pair->monotonic_ns = before_ns + (uint64_t)offset_ns;
        pair->realtime_ns = realtime_ns;
        pair->tai_ns = tai_ns;
        pair->bound_ns = after_ns - before_ns;
    }
}
