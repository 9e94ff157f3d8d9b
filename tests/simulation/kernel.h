/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One rank's part in an operation: lanes that move slices from connections to connections, as NCCL's kernel does. The
 * proxies have it from kernel_queue on, the GPU from kernel_begin on. Ends, and is freed, when all lanes have. One
 * thread.
 */
#pragma once

#include "tests/simulation/connection.h"
#include "tests/simulation/slicing.h"

#define KERNEL_ENDS_MAX 3

struct kernel;

struct kernel *kernel_create(struct agenda *agenda, agenda_act *ended, void *subject, uint64_t argument);

struct kernel_lane {
    struct connection *receives[KERNEL_ENDS_MAX], *sends[KERNEL_ENDS_MAX]; /* NULL: no more */
    struct slicing slicing;
    uint32_t place, channel;
    uint32_t lag; /* a slice sent needs the one received so many before */
};
void kernel_add(struct kernel *kernel, const struct kernel_lane *lane);

/* `row`: of the operation, or NULL. */
void kernel_queue(struct kernel *kernel, uint64_t step, uint64_t proxy_late_ns, struct ledger_row *row);
void kernel_begin(struct kernel *kernel);

/* To be given to connections. */
void kernel_woken(void *lane, uint64_t argument);
