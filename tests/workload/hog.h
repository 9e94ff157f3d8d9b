/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A real-time thread that takes a CPU away from a thread that wants to run there: contention of a known length. Needs
 * the right to set real-time priorities; without it the program ends, saying so. One at a time.
 */
#pragma once

#include <stdint.h>

/* The calling thread wants to run, and may not for the time. */
void hog_own_cpu(uint64_t duration_ns);
