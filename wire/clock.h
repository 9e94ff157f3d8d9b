/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading clocks, and the four-time-stamp exchange with the correlator's clock over a link of its own.
 * All times are nanoseconds.
 */
#pragma once

#include <stdint.h>

#include "wire/record.h"

/* CLOCK_MONOTONIC of this process (a time namespace shifts it). */
uint64_t clock_now_ns(void);

/*
 * CLOCK_MONOTONIC, CLOCK_REALTIME and CLOCK_TAI read together: the closest of several tries, bound_ns says how close.
 * `offset_ns` is added to the monotonic time (for an emitter whose own clock is not this process's).
 */
void clock_read_pair(struct record_clock_pair *pair, int64_t offset_ns);

/* What goes over the clock link: the question and its answer. */
struct clock_question {
    uint32_t magic;
    uint32_t number;
    uint64_t sent_ns;
};
struct clock_answer {
    struct clock_question question;
    uint64_t reference_boot;
    uint64_t received_ns;
    uint64_t replied_ns;
};
#define CLOCK_MAGIC 0x4b4c4351u /* "QCLK" */
