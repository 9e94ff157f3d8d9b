/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How many bytes of an operation each channel has, where the library gives it a range of its own: NCCL 2.20 and later.
 * Any thread.
 */
#pragma once

#include "tests/simulation/slicing.h"

struct sharing {
    uint32_t version; /* as ncclGetVersion has it, from 22000 on */
    enum slicing_protocol protocol;
    enum operation_kind operation;
    uint64_t bytes; /* AllGather, ReduceScatter: a rank's part */
    uint32_t ranks, channels, threads;
};

uint64_t sharing_bytes(const struct sharing *sharing, uint32_t channel);

/* What the chunks of an AllReduce's last round are multiples of. */
uint32_t sharing_unit(const struct sharing *sharing);

/* What full chunks are multiples of. */
uint32_t sharing_grain(const struct sharing *sharing);
