/* SPDX-License-Identifier: BSD-2-Clause */
/* What a hit of a probe costs on this machine: measured at a function of this very program. One thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct cost {
    uint64_t entry_ns;
    uint64_t return_ns; /* what a probe at the return adds */
};

/*
 * The programs' descriptors; `multiple` as in attachment.h. Where it cannot be measured, COST_USUAL_NS each (logged):
 * what is known of such machines.
 */
#define COST_USUAL_NS 2000
void cost_measure(int entry_program, int return_program, bool multiple, struct cost *cost);
