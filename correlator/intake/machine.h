/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which emitters have the same clock: those of one kernel, whose CLOCK_MONOTONICs differ by a constant (a time
 * namespace's), which their pairs with CLOCK_REALTIME tell. One thread.
 */
#pragma once

#include "correlator/intake/intake.h"

struct clock_pair {
    uint64_t monotonic_ns;
    uint64_t realtime_ns;
    uint64_t tai_ns;
    uint64_t bound_ns;
};
typedef ARRAY(struct clock_pair) clock_pair_list;

struct clock_kin { /* an emitter's clock beside its machine's */
    size_t machine;
    int64_t delta_ns;  /* the machine's minus the emitter's */
    uint64_t bound_ns; /* of that, and of a NIC side's time stamps */
    bool reads_late;   /* a NIC side whose frames have the time at which they were read, whenever they passed */
};

/*
 * Fills kin[stream] of each stream of the intake, given their pairs in order of time. Returns how many machines there
 * are; each is numbered by its first stream's place, and that stream's clock is the machine's.
 */
size_t machine_group(struct clock_kin *kin, const struct intake *intake, const clock_pair_list *pairs);
