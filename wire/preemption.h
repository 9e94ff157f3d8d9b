/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How the kernel preempts itself, which probes depend on: before Linux 6.6 a kernel that preempts everywhere
 * (preempt=full) skips runs of probes now and then, and counts none of them. Reads files below `root` ("" = this
 * machine's). Any thread.
 */
#pragma once

#include <stdbool.h>

enum preemption {
    PREEMPTION_UNKNOWN,
    PREEMPTION_FULL,     /* also of a real-time kernel */
    PREEMPTION_OTHER,    /* none, voluntary, lazy */
    PREEMPTION_HARMLESS, /* the kernel is newer: it does not matter */
};

enum preemption preemption_read(const char *root);
