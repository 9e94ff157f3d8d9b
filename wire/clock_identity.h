/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which CLOCK_MONOTONIC a process has: that of a start of a kernel, which a time namespace shifts. Any thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct clock_identity {
    uint8_t kernel_boot[16]; /* zeros: not known */
    uint64_t time_namespace; /* its number in that kernel; 0: it has none (before Linux 5.6) */
};

/* This process's; what cannot be read is zeros. */
void clock_identity_read(struct clock_identity *identity);

/* True when both are known to be one clock, to the nanosecond. */
bool clock_identity_same(const struct clock_identity *a, const struct clock_identity *b);
