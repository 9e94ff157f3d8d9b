/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tells of every executable mapping that any process makes, at once: mmap records of perf events, one descriptor a CPU.
 * Costs a process nothing but at such a mapping. One thread.
 */
#pragma once

#include <stdint.h>

#include "host/process/process.h"

struct watch;

/* -EPERM, -EACCES and others, logged with what to do. */
int watch_open(struct watch **watch);
void watch_close(struct watch **watch);

/* Polls readable when there is something to read. */
int watch_descriptor(const struct watch *watch);

/* `at_ns`: CLOCK_MONOTONIC of the kernel, as the probes' times. The mapping is the process's by then, or gone. */
typedef void watch_visit(void *context, pid_t pid, const struct mapping *mapping, uint64_t at_ns);

/* Visits all that is there. Returns how many records were lost since the last call. */
uint64_t watch_read(struct watch *watch, watch_visit *visit, void *context);
