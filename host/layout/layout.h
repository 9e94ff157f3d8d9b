/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where a collective library keeps a communicator's rank, number of ranks, device and hash: its structure is private
 * and moves with every version, also in patches, so it is read out of the code of ncclCommUserRank, ncclCommCount and
 * ncclCommCuDevice in the very file. One thread.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct layout {
    uint32_t rank_bytes; /* offset of the rank; the number of ranks and the device follow, 4 bytes each */
    bool has_hash;       /* the 8 bytes before it are commHash, the same on every rank: from NCCL 2.18 on */
    uint32_t version;    /* as ncclGetVersion gives it; 0 = not known */
};

/* -ENOENT: the file has no such functions, or their code is none that is understood; else as elf.h. Not logged. */
int layout_find(int descriptor, struct layout *layout);
