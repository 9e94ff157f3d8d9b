/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a launch of RCCL's device kernel does, on CPU threads: a channel (a block of the kernel) is one thread, and in a
 * send/recv work the send is one more. Covered: ring for all five collectives, tree for all-reduce, send/recv; the
 * protocols Simple, LL and LL128. The process stops with a message at CollNet, registered buffers, all-to-all pivot,
 * one-rank reductions, and reductions other than sum, product, maximum and minimum.
 */
#pragma once

#include "fact.h"

#include <stdbool.h>

struct launch { /* as RCCL passes it */
    const struct devcomm *devcomm;
    uint64_t channels; /* a bit for each channel */
    const struct work *works;
    struct facts *facts;
    struct fact_times times;
};

/* Whether a kernel of this name can be emulated. */
bool kernel_is_known(const char *name);

/* Returns when the kernel would have ended; writes and frees the facts. */
void kernel_run(struct launch *launch);
